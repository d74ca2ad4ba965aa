// Encoder and Decoder: little-endian integers, LEB128 varints and length-prefixed bytes. The
// decoder checks every bound before it moves and never allocates.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "journal/base/bytes.h"

namespace holdfast {

static_assert(std::endian::native == std::endian::little,
              "on-disk integers are copied as they are");

// Appends to a string that it borrows.
class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  template <std::unsigned_integral T>
  void Fixed(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Varint(uint64_t value) {
    char bytes[10];
    size_t count = 0;
    while (value >= 0x80) {
      bytes[count++] = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes[count++] = static_cast<char>(value);
    out_.append(bytes, count);
  }
  void Signed(int64_t value) {  // zigzag
    Varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void Bytes(std::string_view bytes) {
    Varint(bytes.size());
    out_.append(bytes);
  }

 private:
  std::string& out_;
};

// Reads from a view that it borrows. After a failed read every later one fails too; values read are
// then zero or empty. Inlined whatever it takes: a commit reads fifty fields under the sequencer.
class Decoder {
 public:
  explicit Decoder(ByteView in) : at_(in.data()), end_(in.data() + in.size()) {}

  template <std::unsigned_integral T>
  T Fixed() {
    T value{};
    if (ByteView bytes = Take(sizeof value); bytes.size() == sizeof value) {
      std::memcpy(&value, bytes.data(), sizeof value);
    }
    return value;
  }
  // Canonical only: no padding bytes, no bits beyond 64.
  [[gnu::always_inline]] uint64_t Varint() {
    if (at_ != end_ && *at_ < std::byte{0x80}) return std::to_integer<uint64_t>(*at_++);  // most
    const LongVarint read = ReadLong(rest());
    if (read.bytes == 0) {
      Fail();
      return 0;
    }
    at_ += read.bytes;
    return read.value;
  }
  [[gnu::always_inline]] int64_t Signed() {
    const uint64_t raw = Varint();
    return static_cast<int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
  }
  [[gnu::always_inline]] std::string_view Bytes() {
    const uint64_t size = Varint();
    return AsText(Take(size));
  }
  [[gnu::always_inline]] ByteView Take(uint64_t count) {
    if (!ok_ || count > remaining()) {
      Fail();
      return {};
    }
    const ByteView taken(at_, count);
    at_ += count;
    return taken;
  }

  bool ok() const { return ok_; }
  void Fail() {
    ok_ = false;
    at_ = end_;  // so that nothing is read any more
  }
  size_t remaining() const { return static_cast<size_t>(end_ - at_); }
  // What was not read yet.
  ByteView rest() const { return {at_, end_}; }

 private:
  struct LongVarint {
    uint64_t value = 0;
    size_t bytes = 0;  // that it takes; 0: it is none
  };
  // By value, so that a decoder on the stack can stay in registers.
  static LongVarint ReadLong(ByteView in) {
    uint64_t value = 0;
    for (size_t count = 0; count < 10 && count < in.size(); ++count) {
      const uint64_t byte = std::to_integer<uint64_t>(in[count]);
      if (count == 9 && byte > 1) break;
      value |= (byte & 0x7f) << (7 * count);
      if (byte >= 0x80) continue;
      if (byte == 0) break;  // a shorter form exists
      return {value, count + 1};
    }
    return {};
  }

  const std::byte* at_;
  const std::byte* end_;
  bool ok_ = true;
};

}  // namespace holdfast
