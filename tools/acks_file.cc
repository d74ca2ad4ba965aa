#include "tools/acks_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include "journal/base/checksum.h"
#include "journal/base/escape.h"
#include "journal/base/seeded_rng.h"
#include "journal/format/records_text.h"

namespace holdfast {
namespace {

constexpr std::string_view kCutWord = " cut";
constexpr size_t kShownBytesMax = 200;
constexpr uint64_t kClaimedBytesMax = uint64_t{64} << 20;  // Of what an id may claim.

struct Verb {
  AckKind kind;
  std::string_view word;
  size_t words;  // in a line
};
constexpr std::array<Verb, 4> kVerbs = {
    Verb{AckKind::kTry, "try", 2}, Verb{AckKind::kPut, "put", 2}, Verb{AckKind::kAck, "ack", 6},
    Verb{AckKind::kDead, "dead", 2}};

std::string EscapeName(std::string_view name) {
  if (name.empty()) return "%";
  return Escape(name, '%', kUnreserved);
}

std::optional<std::string> UnescapeName(std::string_view escaped) {
  if (escaped == "%") return std::string();
  std::string name;
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '%') {
      if (!kUnreserved.Has(escaped[i])) return std::nullopt;
      name += escaped[i];
      continue;
    }
    uint8_t byte = 0;
    if (i + 2 >= escaped.size()) return std::nullopt;
    const char* const digits = escaped.data() + i + 1;
    const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
    name += static_cast<char>(byte);
    i += 2;
  }
  if (name.empty()) return std::nullopt;
  return name;
}

std::optional<uint64_t> ParseDecimal(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t space = text.find(' ');
    words.push_back(text.substr(0, space));
    if (space == std::string_view::npos) return words;
    text.remove_prefix(space + 1);
  }
}

Status IoError(const std::string& path, std::string_view what) {
  return Unavailable(Detail::kIo, "{}: {}: {}", path, what, std::generic_category().message(errno));
}

}  // namespace

std::string FormatAckLine(const AckLine& line) {
  switch (line.kind) {
    case AckKind::kTry:
      return fmt::format("try {}\n", EscapeName(line.id));
    case AckKind::kPut:
      return fmt::format("put {}\n", EscapeName(line.id));
    case AckKind::kDead:
      return fmt::format("dead {}\n", EscapeName(line.id));
    case AckKind::kAck:
      break;
  }
  return fmt::format("ack {} {} {} {} {}\n", EscapeName(line.id), EscapeName(line.topic),
                     EscapeName(line.client), line.partition, line.next);
}

StatusOr<AckLine> ParseAckLine(std::string_view text) {
  const std::vector<std::string_view> words = Split(text);
  for (const Verb& verb : kVerbs) {
    if (words[0] != verb.word || words.size() != verb.words) continue;
    AckLine line{.kind = verb.kind};
    std::optional<std::string> id = UnescapeName(words[1]);
    if (!id.has_value() || id->empty()) break;
    line.id = std::move(*id);
    if (verb.kind != AckKind::kAck) return line;
    std::optional<std::string> topic = UnescapeName(words[2]);
    std::optional<std::string> client = UnescapeName(words[3]);
    const std::optional<uint64_t> partition = ParseDecimal(words[4]);
    const std::optional<uint64_t> next = ParseDecimal(words[5]);
    if (!topic.has_value() || !client.has_value() || !partition.has_value() || !next.has_value())
      break;
    line.topic = std::move(*topic);
    line.client = std::move(*client);
    line.partition = *partition;
    line.next = *next;
    return line;
  }
  return Invalid("not a line of an acks file: {}", NameText(text.substr(0, kShownBytesMax)));
}

StatusOr<std::unique_ptr<AcksFile>> AcksFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return IoError(path, "cannot open");
  std::unique_ptr<AcksFile> file(new AcksFile(path, fd));
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (size < 0) return IoError(path, "cannot seek");
  char last = '\n';
  if (size > 0 && ::pread(fd, &last, 1, size - 1) != 1) return IoError(path, "cannot read");
  if (last != '\n') RETURN_IF_ERROR(file->AppendText(std::string(kCutWord) + "\n"));
  return file;
}

AcksFile::~AcksFile() { ::close(fd_); }

Status AcksFile::Append(const AckLine& line) { return AppendText(FormatAckLine(line)); }

Status AcksFile::AppendText(std::string_view text) {
  ssize_t written = 0;
  do {
    written = ::write(fd_, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return IoError(path_, "cannot append");
  if (static_cast<size_t>(written) != text.size()) {
    return Unavailable(Detail::kIo, "{}: a line of {} bytes was cut to {}", path_, text.size(),
                       written);
  }
  return absl::OkStatus();
}

StatusOr<AcksRead> ReadAcksFile(const std::string& path,
                                const std::function<void(const AckLine&)>& visit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError(path, "cannot open");
  AcksRead read;
  std::string text;
  while (std::getline(file, text)) {
    ++read.lines;
    if (file.eof() || text.ends_with(kCutWord)) {
      ++read.cut;
      continue;
    }
    StatusOr<AckLine> line = ParseAckLine(text);
    if (!line.ok()) return Annotate(line.status(), fmt::format("{}, line {}", path, read.lines));
    visit(*line);
  }
  if (file.bad()) return IoError(path, "cannot read");
  return read;
}

std::string WorkloadId(std::string_view issued, uint64_t event_bytes) {
  return fmt::format("{}.{}", issued, event_bytes);
}

StatusOr<std::string> WorkloadEvent(std::string_view id) {
  const size_t dot = id.rfind('.');
  const std::optional<uint64_t> bytes =
      dot == std::string_view::npos ? std::nullopt : ParseDecimal(id.substr(dot + 1));
  if (!bytes.has_value() || *bytes > kClaimedBytesMax) {
    return Invalid("not an id of a workload: {}", NameText(id.substr(0, kShownBytesMax)));
  }
  SeededRng rng(Checksum(AsBytes(id), 0));
  const bool compressible = rng.OneIn(2);
  std::string event;
  event.reserve(*bytes + sizeof(uint64_t));
  while (event.size() < *bytes) {
    const uint64_t word = rng.Next();
    if (compressible) {
      event += fmt::format("{:x}, an event; ", word & 0xffff);
    } else {
      event.append(reinterpret_cast<const char*>(&word), sizeof word);
    }
  }
  event.resize(*bytes);
  return event;
}

}  // namespace holdfast
