// Little-endian fields, read one after another and never past the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace butter {

/// Views that it hands out point into the bytes given to it.
class ByteCursor {
 public:
  /// Reads no byte past `limit`, however long the file is.
  ByteCursor(std::span<const uint8_t> bytes, size_t limit, std::string where, std::string source)
      : bytes_(bytes.first(std::min(bytes.size(), limit))),
        is_limited_(bytes.size() > limit),
        where_(std::move(where)),
        source_(std::move(source)) {}

  size_t pos() const { return pos_; }
  size_t left() const { return bytes_.size() - pos_; }

  /// `what` names the field in messages.
  template <typename T>
  T read(const char* what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::span<const uint8_t> take(uint64_t bytes, const char* what) {
    if (bytes > left()) {
      fail(concat(what, " takes ", bytes, " bytes, ", left(), " are left", end()));
    }
    pos_ += bytes;
    return bytes_.subspan(pos_ - bytes, bytes);
  }

  /// A number of items that each take at least `item_bytes`: so it can be trusted for allocation.
  uint64_t count(uint64_t item_bytes, const char* what) {
    const auto items = read<uint64_t>(what);
    check_count(items, item_bytes, what);
    return items;
  }

  void check_count(uint64_t items, uint64_t item_bytes, const char* what) const {
    if (items > left() / item_bytes) {
      fail(concat(what, " is ", items, ", the ", left(), " bytes left hold at most ",
                  left() / item_bytes, end()));
    }
  }

  /// A 64-bit length, then that many bytes.
  std::string_view string(const char* what) {
    const auto bytes = take(count(1, what), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::kFile, where_, concat(source_, ": byte ", pos_, ": ", what));
  }

 private:
  std::string end() const {
    return is_limited_ ? concat(" up to the limit of ", bytes_.size(), " bytes") : "";
  }

  std::span<const uint8_t> bytes_;
  bool is_limited_;
  size_t pos_ = 0;
  std::string where_;
  std::string source_;
};

}  // namespace butter
