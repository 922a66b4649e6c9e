// Text from files that nobody vouches for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace butter {

inline constexpr size_t kPathChars = 500;

/// Length of the well-formed UTF-8 sequence that `text` starts with; 0 if there is none.
/// Overlong forms, surrogates and values past U+10FFFF are not well formed.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

/// For messages: in quotes, control characters and stray bytes as \xNN, cut after `limit` bytes.
/// The result is always valid UTF-8.
std::string quoted(std::string_view text, size_t limit = 80);

/// Appends the UTF-8 form of a code point.
void append_utf8(std::string& out, char32_t code);

}  // namespace butter
