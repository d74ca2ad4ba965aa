// Storage on plain system calls. The io_uring backend is the same with another write queue.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "journal/io/open_storage.h"
#include "journal/io/posix_file.h"
#include "journal/io/storage.h"

namespace holdfast {

// Holds the directory open, so that neither a chdir of the host nor a rename of a parent moves it.
// Directories are made with mode 0750 and files with 0640, less the umask: events are private.
// Threads: any.
class PosixStorage : public Storage {
 public:
  // `reason` tells why it is this backend and not another. For errors see OpenStorage().
  static StatusOr<std::unique_ptr<PosixStorage>> Open(const std::string& directory,
                                                      const OpenStorageOptions& options,
                                                      std::string reason);

  // What a storage is made of; Owns `directory_fd`.
  struct Parts {
    int directory_fd = -1;
    std::string path;
    std::string reason;
    bool read_only = false;
    LogSink* log = nullptr;
  };
  explicit PosixStorage(Parts parts);
  ~PosixStorage() override;
  PosixStorage(const PosixStorage&) = delete;
  PosixStorage& operator=(const PosixStorage&) = delete;

  using Storage::OpenFile;
  StatusOr<std::unique_ptr<File>> OpenFile(const std::string& name, OpenMode mode,
                                           FileUse use) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  Status MakeFolder(const std::string& folder) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& name) override;
  Status SyncFolder(const std::string& folder) override;
  StatusOr<uint64_t> FreeBytes() override;
  StatusOr<std::unique_ptr<WriteQueue>> NewWriteQueue() override;
  std::string host_boot_id() override;
  std::string backend() const override { return "posix"; }
  std::string backend_reason() const override;
  std::string display_path() const override { return parts_.path; }

 protected:
  // Finds or makes the directory and opens it.
  static StatusOr<Parts> OpenParts(const std::string& directory, const OpenStorageOptions& options,
                                   std::string reason);

 private:
  std::string PathOf(const std::string& name) const;
  Status RefuseIfReadOnly(const std::string& name) const;
  StatusOr<int> OpenFolder(const std::string& folder);

  const Parts parts_;
  // Shared with the files; whichever goes last frees it.
  const std::shared_ptr<DirectRefusal> refusal_;
};

}  // namespace holdfast
