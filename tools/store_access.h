// How the commands open a store, and what they call it when they cannot.
#pragma once

#include <memory>
#include <string>

#include "holdfast/engine.h"
#include "journal/base/status.h"
#include "journal/io/storage.h"
#include "tools/console.h"
#include "tools/options.h"

namespace holdfast {

// All of these borrow the console, which shows how far a long recovery has come, and the log.

// The recovered state, in memory: locks and writes nothing.
StatusOr<std::unique_ptr<Engine>> OpenForReading(const std::string& directory, Console& console,
                                                 LogSink& log);
// Recovers for writing, but makes no store where there is none, and goes on with the segment size
// that it has.
StatusOr<std::unique_ptr<Engine>> OpenExisting(const std::string& directory, WriterOptions writer,
                                               Console& console, LogSink& log);

// Recovers for writing; makes the store if there is none.
EngineOptions OptionsForWriting(const std::string& directory, const WriterOptions& writer,
                                LogSink& log);

// Of the newest segment that the store uses: who only looks after a store makes more of its size,
// not of the default one, which may be more than its disk has.
// Errors: as Survey
StatusOr<uint64_t> SegmentBytesOf(Storage& storage);

// The files of a store, for those who look at bytes: read only, or to change them.
StatusOr<std::unique_ptr<Storage>> OpenFilesForReading(const std::string& directory, LogSink& log);
StatusOr<std::unique_ptr<Storage>> OpenFilesForWriting(const std::string& directory, IoBackend io,
                                                       LogSink& log);

}  // namespace holdfast
