#include "tools/store_access.h"

#include "journal/io/open_storage.h"

namespace holdfast {

StatusOr<std::unique_ptr<Engine>> OpenForReading(const std::string& directory, LogSink& log) {
  EngineOptions options;
  options.directory = directory;
  options.read_only = true;
  options.log = &log;
  return Engine::Open(options);
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

StatusOr<std::unique_ptr<Storage>> OpenFilesForReading(const std::string& directory, LogSink& log) {
  return OpenStorage(directory, {.create = false, .read_only = true, .log = &log});
}

StatusOr<std::unique_ptr<Storage>> OpenFilesForWriting(const std::string& directory, IoBackend io,
                                                       LogSink& log) {
  return OpenStorage(directory, {.io = io, .create = false, .log = &log});
}

}  // namespace holdfast
