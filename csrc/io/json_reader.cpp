#include "io/json_reader.h"

#include <limits>

#include "core/error.h"

namespace butter {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void JsonReader::fail(const std::string& what) const {
  throw Error(Code::kFile, where_, concat(source_, ": JSON byte ", pos_, ": ", what));
}

std::string JsonReader::found() const {
  if (pos_ >= text_.size()) return "got the end of the text";
  const size_t length = utf8_length(text_.substr(pos_));
  return "got " + quoted(text_.substr(pos_, length == 0 ? 1 : length));
}

void JsonReader::skip_space() {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++pos_;
  }
}

bool JsonReader::at(char c) {
  skip_space();
  return pos_ < text_.size() && text_[pos_] == c;
}

void JsonReader::expect(char c) {
  if (!at(c)) fail(concat(found(), ", need '", c, "'"));
  ++pos_;
}

void JsonReader::open(char c, const char* kind) {
  if (!at(c)) fail(concat(found(), ", need ", kind));
  if (depth_ == kMaxDepth) fail(concat("nested deeper than the limit of ", kMaxDepth));
  ++depth_;
  ++pos_;
}

void JsonReader::close() {
  ++pos_;
  --depth_;
}

bool JsonReader::another(char closing) {
  if (at(',')) {
    ++pos_;
    return true;
  }
  if (!at(closing)) fail(concat(found(), ", need ',' or '", closing, "'"));
  close();
  return false;
}

std::string JsonReader::string() {
  if (!at('"')) fail(found() + ", need a string");
  ++pos_;
  std::string out;
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c == '"') {
      ++pos_;
      return out;
    }
    if (c == '\\') {
      append_utf8(out, escape());
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20) fail("raw control character in a string");
    const size_t length = utf8_length(text_.substr(pos_));
    if (length == 0) fail("the string is not valid UTF-8");
    out.append(text_, pos_, length);
    pos_ += length;
  }
  fail("the string does not end");
}

char32_t JsonReader::escape() {
  ++pos_;  // the backslash
  if (pos_ >= text_.size()) fail("the string does not end");
  const char c = text_[pos_++];
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return static_cast<char32_t>(c);
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'u':
      break;
    default:
      fail("unknown escape in a string");
  }
  const char32_t code = hex4();
  if (code < 0xD800 || code > 0xDFFF) return code;
  // A character past U+FFFF is a pair: high surrogate, then low.
  if (code > 0xDBFF || text_.substr(pos_, 2) != "\\u") fail("unpaired surrogate in a string");
  pos_ += 2;
  const char32_t low = hex4();
  if (low < 0xDC00 || low > 0xDFFF) fail("unpaired surrogate in a string");
  return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
}

char32_t JsonReader::hex4() {
  char32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = pos_ < text_.size() ? text_[pos_] : '\0';
    const bool lower = c >= 'a' && c <= 'f';
    const bool upper = c >= 'A' && c <= 'F';
    if (!is_digit(c) && !lower && !upper) fail(found() + ", need four hex digits");
    const int digit = is_digit(c) ? c - '0' : (lower ? c - 'a' : c - 'A') + 10;
    code = code * 16 + static_cast<char32_t>(digit);
    ++pos_;
  }
  return code;
}

uint64_t JsonReader::unsigned_integer() {
  skip_space();
  const size_t start = pos_;
  number();
  const std::string_view token = text_.substr(start, pos_ - start);
  pos_ = start;  // what follows complains about the number, not about what comes after it
  uint64_t value = 0;
  for (const char c : token) {
    if (!is_digit(c)) fail(concat("got ", quoted(token, 40), ", need a non-negative integer"));
    const auto digit = static_cast<uint64_t>(c - '0');
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) {
      fail(concat("got ", quoted(token, 40), ", need an integer below 2**64"));
    }
    value = value * 10 + digit;
  }
  pos_ += token.size();
  return value;
}

bool JsonReader::digits() {
  const size_t start = pos_;
  while (pos_ < text_.size() && is_digit(text_[pos_])) ++pos_;
  return pos_ > start;
}

void JsonReader::number() {
  const auto next_is = [&](char c) { return pos_ < text_.size() && text_[pos_] == c; };
  if (next_is('-')) ++pos_;
  if (next_is('0')) {
    ++pos_;
  } else if (!digits()) {
    fail(found() + ", need a number");
  }
  if (next_is('.')) {
    ++pos_;
    if (!digits()) fail(found() + ", need a digit");
  }
  if (next_is('e') || next_is('E')) {
    ++pos_;
    if (next_is('+') || next_is('-')) ++pos_;
    if (!digits()) fail(found() + ", need a digit");
  }
}

void JsonReader::literal(std::string_view word) {
  if (text_.substr(pos_, word.size()) != word) fail(found() + ", need a value");
  pos_ += word.size();
}

void JsonReader::skip() {
  skip_space();
  switch (pos_ < text_.size() ? text_[pos_] : '\0') {
    case '{':
      return object([&](const std::string&) { skip(); });
    case '[':
      return array([&] { skip(); });
    case '"':
      string();
      return;
    case 't':
      return literal("true");
    case 'f':
      return literal("false");
    case 'n':
      return literal("null");
    default:
      return number();
  }
}

void JsonReader::finish() {
  skip_space();
  if (pos_ != text_.size()) fail(found() + ", need the end of the text");
}

}  // namespace butter
