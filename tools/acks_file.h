// What a workload was told to be durable, as lines in a file that outlives it; and the event of an
// id.
//
//   try ID                                  about to submit the end of this delivery
//   put ID                                  it is durable
//   ack ID TOPIC CLIENT PARTITION OFFSET    its removal and the client's next offset are durable
//   dead ID                                 its dead letter and its removal are durable
//
// Each line is one append of the operating system, so a kill may cut the last one only. Names are
// written with %XX for every byte that is not a letter, a digit or one of -._~ (and "%" alone for
// the empty name). The next run ends a cut line with a word that no line can end in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "journal/base/status.h"

namespace holdfast {

enum class AckKind { kTry, kPut, kAck, kDead };

struct AckLine {
  AckKind kind = AckKind::kPut;
  std::string id;
  std::string topic, client;  // of kAck
  uint64_t partition = 0;
  uint64_t next = 0;  // the client's next offset
};

// The line with its end.
std::string FormatAckLine(const AckLine& line);
// Errors: kInvalidArgument  not a line of this format
StatusOr<AckLine> ParseAckLine(std::string_view text);

// Appends lines.
// Threads: any.
class AcksFile {
 public:
  // Made if it is missing; continued otherwise.
  static StatusOr<std::unique_ptr<AcksFile>> Open(const std::string& path);
  ~AcksFile();
  AcksFile(const AcksFile&) = delete;
  AcksFile& operator=(const AcksFile&) = delete;

  // One write.
  // Errors: kUnavailable  kIo: the line is not there, or not whole
  Status Append(const AckLine& line);

 private:
  AcksFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status AppendText(std::string_view text);

  const std::string path_;
  const int fd_;
};

struct AcksRead {
  uint64_t lines = 0;
  uint64_t cut = 0;  // lines that a kill cut short; they say nothing
};
// Visits every whole line of the file, in order.
// Errors: kUnavailable  it cannot be read
//         kInvalidArgument  a line that no kill explains; names its number
StatusOr<AcksRead> ReadAcksFile(const std::string& path,
                                const std::function<void(const AckLine&)>& visit);

// The id of a delivery with an event of `event_bytes`, made from one that the engine issued.
std::string WorkloadId(std::string_view issued, uint64_t event_bytes);
// The event of a delivery: a function of its id alone, size included. Ids of one size share no
// bytes but by chance; about half of the events compress.
// Errors: kInvalidArgument  not an id of a workload
StatusOr<std::string> WorkloadEvent(std::string_view id);

}  // namespace holdfast
