// The storages that one suite runs over: plain system calls, io_uring, the simulated disk.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "journal/io/aligned_buffer.h"
#include "journal/io/open_storage.h"
#include "tests/sim/sim_storage.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace holdfast {

enum class StorageCase { kPosix, kUring, kSimulated };

inline std::string CaseName(const testing::TestParamInfo<StorageCase>& info) {
  switch (info.param) {
    case StorageCase::kPosix:
      return "Posix";
    case StorageCase::kUring:
      return "Uring";
    case StorageCase::kSimulated:
      return "Simulated";
  }
  return "?";
}

inline StatusOr<std::unique_ptr<Storage>> OpenCase(StorageCase storage, const std::string& path) {
  switch (storage) {
    case StorageCase::kPosix:
      return OpenPosixStorage(path, {});
    case StorageCase::kUring:
      return OpenUringStorage(path, {});
    case StorageCase::kSimulated:
      return std::make_unique<SimStorage>(SimDisk(), SimStorageOptions{.wait_really = true});
  }
  return Invalid("no such case");
}

// Opens the storage of the case in a directory of its own; a kernel without io_uring skips, with
// the reason.
class StorageTest : public testing::TestWithParam<StorageCase> {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Storage>> opened = OpenCase(GetParam(), dir_.path());
    if (GetParam() == StorageCase::kUring && opened.status().code() == StatusCode::kUnavailable) {
      GTEST_SKIP() << opened.status().ToString();
    }
    ASSERT_OK(opened);
    storage_ = *std::move(opened);
  }

  std::unique_ptr<File> Open(const std::string& name, bool direct = true) {
    StatusOr<std::unique_ptr<File>> file =
        storage_->OpenFile(name, OpenMode::kCreate, {.direct = direct});
    CHECK(file.ok());
    return *std::move(file);
  }

  TempDir dir_;
  std::unique_ptr<Storage> storage_;
};

inline std::string ReadAll(File& file) {
  const StatusOr<uint64_t> size = file.Size();
  CHECK(size.ok());
  std::string text(*size + 1, '?');
  const StatusOr<size_t> got =
      file.ReadAt(0, {reinterpret_cast<std::byte*>(text.data()), text.size()});
  CHECK(got.ok());
  text.resize(*got);
  return text;
}

inline AlignedBuffer Filled(uint64_t bytes, char fill) {
  AlignedBuffer buffer(bytes);
  std::memset(buffer.data(), fill, buffer.size());
  return buffer;
}

}  // namespace holdfast
