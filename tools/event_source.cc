#include "tools/event_source.h"

#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <system_error>

#include "journal/base/json.h"
#include "journal/base/seeded_rng.h"
#include "journal/format/records_text.h"

namespace holdfast {
namespace {

constexpr int kWindowLogMax = 27;  // 128 MiB
constexpr std::string_view kZstdMagic("\x28\xb5\x2f\xfd", 4);
constexpr size_t kJsonDepthMax = 200;

// Cuts a stream of bytes into lines.
class LineCutter {
 public:
  using Visit = std::function<Status(uint64_t number, std::string_view line)>;
  explicit LineCutter(const Visit& visit) : visit_(visit) {}

  Status Take(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t line_end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, line_end);
      if (line_.size() + piece.size() > kEventLineBytesMax) {
        return Invalid("line {}: longer than {} bytes", number_ + 1, kEventLineBytesMax);
      }
      line_ += piece;
      if (line_end == std::string_view::npos) return absl::OkStatus();
      RETURN_IF_ERROR(EndLine());
      bytes.remove_prefix(line_end + 1);
    }
    return absl::OkStatus();
  }
  Status Finish() { return line_.empty() ? absl::OkStatus() : EndLine(); }
  uint64_t lines() const { return number_; }

 private:
  Status EndLine() {
    std::string_view line = line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const Status status = visit_(++number_, line);
    line_.clear();
    return status;
  }

  const Visit& visit_;
  std::string line_;
  uint64_t number_ = 0;
};

// Unpacks a stream as it comes.
class Unpacker {
 public:
  explicit Unpacker(LineCutter& lines)
      : context_(ZSTD_createDCtx(), &ZSTD_freeDCtx), lines_(lines) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kWindowLogMax);
  }

  Status Take(std::string_view bytes) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (in.pos < in.size || more_) {
      ZSTD_outBuffer out{unpacked_.data(), unpacked_.size(), 0};
      wanted_ = ZSTD_decompressStream(context_.get(), &out, &in);
      if (ZSTD_isError(wanted_) != 0) {
        return Invalid("after line {}: bad zstd stream: {}", lines_.lines(),
                       ZSTD_getErrorName(wanted_));
      }
      more_ = out.pos == out.size && wanted_ != 0;
      RETURN_IF_ERROR(lines_.Take({unpacked_.data(), out.pos}));
    }
    return absl::OkStatus();
  }
  Status Finish() const {
    if (wanted_ != 0) return Invalid("after line {}: the zstd stream is cut short", lines_.lines());
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
  LineCutter& lines_;
  std::string unpacked_ = std::string(ZSTD_DStreamOutSize(), '\0');
  size_t wanted_ = 0;  // 0: between two frames
  bool more_ = false;  // unpacked bytes may wait inside
};

Status RequireText(const Json& event, const char* name) {
  const Json* attribute = event.Find(name);
  if (attribute == nullptr) return Invalid("the required attribute \"{}\" is missing", name);
  if (attribute->string() == nullptr) return Invalid("the attribute \"{}\" is not a string", name);
  if (attribute->string()->empty()) return Invalid("the attribute \"{}\" is empty", name);
  return absl::OkStatus();
}

bool IsAttributeName(std::string_view name) {
  if (name == "data_base64") return true;
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

}  // namespace

Status ReadLines(const std::string& path, const LineCutter::Visit& visit) {
  constexpr size_t kBlockBytes = size_t{64} << 10;
  const auto error = [&path](std::string_view what) {
    return Unavailable(Detail::kIo, "{}: {}: {}", path, what,
                       std::generic_category().message(errno));
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return error("cannot open");
  LineCutter lines(visit);
  std::unique_ptr<Unpacker> unpacker;
  std::string block(kBlockBytes, '\0');
  for (bool first = true; file; first = false) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    if (file.bad()) return error("cannot read");
    const std::string_view bytes(block.data(), static_cast<size_t>(file.gcount()));
    if (first && bytes.starts_with(kZstdMagic)) unpacker = std::make_unique<Unpacker>(lines);
    const Status taken = unpacker != nullptr ? unpacker->Take(bytes) : lines.Take(bytes);
    if (!taken.ok()) return Annotate(taken, path);
  }
  if (!file.eof()) return error("cannot read");
  if (unpacker != nullptr) {
    if (const Status finished = unpacker->Finish(); !finished.ok()) return Annotate(finished, path);
  }
  const Status finished = lines.Finish();
  return finished.ok() ? finished : Annotate(finished, path);
}

Status ValidateCloudEvent(std::string_view line) {
  ASSIGN_OR_RETURN(const Json event, Json::Parse(line, {.bytes_max = kEventLineBytesMax,
                                                        .depth_max = kJsonDepthMax}));
  if (event.object() == nullptr) return Invalid("not a JSON object");
  for (const char* name : {"specversion", "id", "source", "type"}) {
    RETURN_IF_ERROR(RequireText(event, name));
  }
  const std::string& version = *event.Find("specversion")->string();
  if (version != "1.0")
    return Invalid("specversion is {}, and only 1.0 is known", NameText(version));
  for (const auto& [name, value] : *event.object()) {
    if (!IsAttributeName(name)) {
      return Invalid("the attribute name {} is not made of lower-case letters and digits",
                     NameText(name));
    }
  }
  if (event.Find("data") != nullptr && event.Find("data_base64") != nullptr) {
    return Invalid("both \"data\" and \"data_base64\" are given");
  }
  return absl::OkStatus();
}

StatusOr<std::vector<std::string>> ReadCloudEvents(const std::string& path) {
  std::vector<std::string> events;
  RETURN_IF_ERROR(ReadLines(path, [&events](uint64_t number, std::string_view line) {
    if (line.empty()) return absl::OkStatus();
    Status valid = ValidateCloudEvent(line);
    if (!valid.ok()) return Annotate(valid, fmt::format("line {}", number));
    events.emplace_back(line);
    return valid;
  }));
  if (events.empty()) return Invalid("{}: no events", path);
  return events;
}

std::vector<std::string> MakeCloudEvents(uint64_t seed, uint64_t count) {
  constexpr uint64_t kItemsMax = 64;
  SeededRng rng(seed);
  std::vector<std::string> events;
  for (uint64_t i = 0; i < count; ++i) {
    std::string items;
    for (uint64_t left = rng.OneIn(8) ? rng.Below(kItemsMax) : rng.Below(4); left > 0; --left) {
      items += fmt::format(R"({{"sku":"{:08x}","quantity":{}}},)", rng.Next() & 0xffffffff,
                           1 + rng.Below(9));
    }
    if (!items.empty()) items.pop_back();
    events.push_back(
        fmt::format(R"({{"specversion":"1.0","id":"order-{:06}","source":"/shop/{}",)"
                    R"("type":"shop.order.placed","datacontenttype":"application/json",)"
                    R"("data":{{"order":{},"customer":"{:016x}","items":[{}]}}}})",
                    i + 1, 1 + rng.Below(9), i + 1, rng.Next(), items));
  }
  return events;
}

}  // namespace holdfast
