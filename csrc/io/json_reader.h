// A pull parser for JSON that may be hostile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "io/text.h"

namespace butter {

/// The caller asks for what it expects, value by value, so nothing is built that it does not keep.
///
/// RFC 8259 and no more: no comments, no trailing commas, valid UTF-8, paired surrogates.
/// Duplicate keys, depth past kMaxDepth and integers outside uint64 are errors. All methods throw
/// Error(kFile) with the byte at fault. The text must outlive the reader.
class JsonReader {
 public:
  static constexpr int kMaxDepth = 32;

  /// `where` and `source` (the file) open each message.
  JsonReader(std::string_view text, std::string where, std::string source)
      : text_(text), where_(std::move(where)), source_(std::move(source)) {}

  /// Calls member(key) for each member; it must read exactly one value.
  template <typename Member>
  void object(Member&& member) {
    open('{', "an object");
    std::unordered_set<std::string> seen;
    if (at('}')) return close();
    do {
      const auto [key, is_new] = seen.insert(string());
      if (!is_new) fail("duplicate key " + quoted(*key));
      expect(':');
      member(*key);
    } while (another('}'));
  }

  /// Calls element() for each element; it must read exactly one value.
  template <typename Element>
  void array(Element&& element) {
    open('[', "an array");
    if (at(']')) return close();
    do {
      element();
    } while (another(']'));
  }

  std::string string();

  /// No sign, fraction or exponent.
  uint64_t unsigned_integer();

  /// Reads and forgets one value of any kind.
  void skip();

  /// Only white space may remain.
  void finish();

  /// Throws with the position of the next unread byte.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_space();
  bool at(char c);  // the next byte that is not white space
  void expect(char c);
  void open(char c, const char* kind);
  void close();
  bool another(char closing);
  void literal(std::string_view word);
  void number();
  bool digits();
  char32_t escape();
  char32_t hex4();
  std::string found() const;

  std::string_view text_;
  size_t pos_ = 0;
  int depth_ = 0;
  std::string where_;
  std::string source_;
};

}  // namespace butter
