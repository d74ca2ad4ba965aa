#include "tools/cli_parts.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>

#include "journal/base/json.h"

namespace holdfast {
namespace {

IoBackend BackendOf(std::string_view word) {
  if (word == "uring") return IoBackend::kUring;
  if (word == "posix") return IoBackend::kPosix;
  return IoBackend::kAuto;
}

}  // namespace

CLI::App& AddCommand(CLI::App& parent, const CommandText& text) {
  CLI::App& command = *parent.add_subcommand(text.name, text.what);
  command.footer("Examples:\n" + std::string(text.examples) + "\n" + kExitCodes + "\n");
  return command;
}

std::optional<std::string> ParseName(std::string_view word) {
  constexpr std::string_view kBase64 = "base64:";
  if (!word.starts_with(kBase64)) return std::string(word);
  return FromBase64(word.substr(kBase64.size()));
}

std::optional<uint64_t> ParseNumber(std::string_view word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

std::optional<absl::Duration> ParseAge(const std::string& word) {
  constexpr uint64_t kDaysMax = 1'000'000;
  absl::Duration age;
  if (word.ends_with('d')) {
    const std::optional<uint64_t> days =
        ParseNumber(std::string_view(word).substr(0, word.size() - 1));
    if (!days.has_value() || *days > kDaysMax) return std::nullopt;
    age = *days * absl::Hours(24);
  } else if (!absl::ParseDuration(word, &age) || age < absl::ZeroDuration()) {
    return std::nullopt;
  }
  return age;
}

const CLI::Validator& WholeNumber() {
  static const auto& validator = *new CLI::Validator(
      [](std::string& word) {
        return ParseNumber(word).has_value() ? std::string() : "not a whole number: " + word;
      },
      "");
  return validator;
}

void WriterArguments::AddLockWait(CLI::App& command) {
  command
      .add_option("--lock-wait", lock_wait_ms_,
                  "milliseconds to wait for what a killed writer has in flight")
      ->check(CLI::Range(0, 600'000))
      ->capture_default_str();
}

void WriterArguments::AddOpenOptions(CLI::App& command) {
  AddLockWait(command);
  command.add_option("--io", io_, "how to reach the disk: auto, uring or posix")
      ->check(CLI::IsMember({"auto", "uring", "posix"}))
      ->capture_default_str();
}

void WriterArguments::AddWriterOptions(CLI::App& command) {
  AddOpenOptions(command);
  command.add_option("--durability", durability_, "when an operation counts: synced or written")
      ->check(CLI::IsMember({"synced", "written"}))
      ->capture_default_str();
  command
      .add_option("--commit-interval", commit_interval_ms_,
                  "milliseconds between flushes; 0 writes through")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  command.add_option("--segment-bytes", writer_.segment_bytes, "size of new journal files")
      ->check(WholeNumber())
      ->capture_default_str();
}

WriterOptions WriterArguments::Fetch() const {
  WriterOptions writer = writer_;
  writer.io = BackendOf(io_);
  writer.durability = durability_ == "written" ? Durability::kWritten : Durability::kSynced;
  writer.commit_interval = absl::Milliseconds(commit_interval_ms_);
  writer.lock_wait = absl::Milliseconds(lock_wait_ms_);
  return writer;
}

}  // namespace holdfast
