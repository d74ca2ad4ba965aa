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
// then zero or empty.
class Decoder {
 public:
  explicit Decoder(ByteView in) : in_(in) {}

  template <std::unsigned_integral T>
  T Fixed() {
    T value{};
    if (ByteView bytes = Take(sizeof value); bytes.size() == sizeof value) {
      std::memcpy(&value, bytes.data(), sizeof value);
    }
    return value;
  }
  // Canonical only: no padding bytes, no bits beyond 64.
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const uint64_t byte = Fixed<uint8_t>();
      if (!ok_) return 0;
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        if (byte == 0 && shift > 0) break;
        return value;
      }
    }
    ok_ = false;
    return 0;
  }
  int64_t Signed() {
    const uint64_t raw = Varint();
    return static_cast<int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
  }
  std::string_view Bytes() {
    const uint64_t size = Varint();
    if (!ok_ || size > in_.size()) {
      ok_ = false;
      return {};
    }
    return AsText(Take(size));
  }
  ByteView Take(size_t count) {
    if (!ok_ || count > in_.size()) {
      ok_ = false;
      return {};
    }
    const ByteView taken = in_.first(count);
    in_ = in_.subspan(count);
    return taken;
  }

  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }
  size_t remaining() const { return in_.size(); }

 private:
  ByteView in_;
  bool ok_ = true;
};

}  // namespace holdfast
