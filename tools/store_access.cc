#include "tools/store_access.h"

#include <optional>
#include <utility>

#include "journal/io/open_storage.h"
#include "recovery/survey.h"

namespace holdfast {
namespace {

class NewestSegment final : public SurveyVisitor {
 public:
  void OnSegment(const SegmentSurvey& segment) override {
    if (segment.newest && segment.segment_bytes > 0) bytes_ = segment.segment_bytes;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = EngineOptions().segment_bytes;
};

StatusOr<std::unique_ptr<Engine>> OpenShown(EngineOptions options, Console& console) {
  std::optional<Progress> progress;
  options.on_recovery_progress = [&](const RecoveryProgress& now) {
    if (!progress.has_value()) progress.emplace(console, "bytes recovered", now.bytes_total);
    progress->Update(now.bytes_done);
  };
  return Engine::Open(options);
}

}  // namespace

StatusOr<std::unique_ptr<Engine>> OpenForReading(const std::string& directory, Console& console,
                                                 LogSink& log) {
  EngineOptions options;
  options.directory = directory;
  options.read_only = true;
  options.log = &log;
  return OpenShown(std::move(options), console);
}

StatusOr<std::unique_ptr<Engine>> OpenExisting(const std::string& directory, WriterOptions writer,
                                               Console& console, LogSink& log) {
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<Storage> files, OpenFilesForReading(directory, log));
    ASSIGN_OR_RETURN(writer.segment_bytes, SegmentBytesOf(*files));
  }
  return OpenShown(OptionsForWriting(directory, writer, log), console);
}

EngineOptions OptionsForWriting(const std::string& directory, const WriterOptions& writer,
                                LogSink& log) {
  EngineOptions options;
  options.directory = directory;
  options.io = writer.io;
  options.durability = writer.durability;
  options.commit_interval = writer.commit_interval;
  options.segment_bytes = writer.segment_bytes;
  options.lock_wait = writer.lock_wait;
  options.log = &log;
  return options;
}

StatusOr<uint64_t> SegmentBytesOf(Storage& storage) {
  NewestSegment newest;
  ASSIGN_OR_RETURN(const SurveyReport report, Survey(storage, newest, {.records = false}));
  (void)report;  // Only its visitor was wanted; damage is for the open to refuse.
  return newest.bytes();
}

StatusOr<std::unique_ptr<Storage>> OpenFilesForReading(const std::string& directory, LogSink& log) {
  return OpenStorage(directory, {.create = false, .read_only = true, .log = &log});
}

StatusOr<std::unique_ptr<Storage>> OpenFilesForWriting(const std::string& directory, IoBackend io,
                                                       LogSink& log) {
  return OpenStorage(directory, {.io = io, .create = false, .log = &log});
}

}  // namespace holdfast
