// CloudEvents to deliver: from a file of JSON lines, or made up.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/base/status.h"

namespace holdfast {

// The longest line that is taken.
inline constexpr size_t kEventLineBytesMax = size_t{16} << 20;

// Visits each line of a text file, which may be one zstd stream or several; told by its first
// bytes. Lines end in \n or \r\n; the end of the last one may be missing. Memory: one line and the
// decompressor's window (at most 128 MiB). Stops at the first error that `visit` returns.
// Errors: kUnavailable      the file cannot be read
//         kInvalidArgument  a line over the limit, or a stream that is cut or not valid; names the
//         line
Status ReadLines(const std::string& path,
                 const std::function<Status(uint64_t number, std::string_view line)>& visit);

// OK if `line` is one CloudEvent in JSON with the required attributes; otherwise what is wrong with
// it.
Status ValidateCloudEvent(std::string_view line);

// All events of the file, byte for byte as they stand there; empty lines are passed over.
// Errors: as ReadLines; kInvalidArgument  a line is not a CloudEvent, or there is none; names the
// line
StatusOr<std::vector<std::string>> ReadCloudEvents(const std::string& path);

// `count` valid CloudEvents of 200 bytes to some kilobytes, the same ones for each seed.
std::vector<std::string> MakeCloudEvents(uint64_t seed, uint64_t count);

}  // namespace holdfast
