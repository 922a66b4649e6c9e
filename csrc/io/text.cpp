#include "io/text.h"

#include <cstdint>

namespace butter {

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  if (text.empty()) return 0;
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;  // a tail byte, or an overlong form of ASCII
  if (lead < 0xE0) return tail(1) ? 2 : 0;
  if (lead < 0xF0) {
    if (!tail(1) || !tail(2)) return 0;
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead > 0xF4 || !tail(1) || !tail(2) || !tail(3)) return 0;
  const bool overlong = lead == 0xF0 && byte(1) < 0x90;
  const bool too_large = lead == 0xF4 && byte(1) >= 0x90;
  return overlong || too_large ? 0 : 4;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quoted(std::string_view text, size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  size_t used = 0;
  while (!text.empty()) {
    const auto lead = static_cast<uint8_t>(text[0]);
    size_t length = utf8_length(text);
    if (used + length > limit || used >= limit) {
      return out + "…\"";
    }
    if (length == 0 || lead < 0x20 || lead == 0x7F) {
      length = 1;
      out += {'\\', 'x', kHex[lead >> 4], kHex[lead & 15]};
    } else {
      if (lead == '"' || lead == '\\') out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
    used += length;
  }
  return out + "\"";
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace butter
