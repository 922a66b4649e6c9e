// The one error type of the native core.
#pragma once

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace butter {

/// bind/ maps each code to a Python class of butter.errors.
enum class Code {
  kShape,        // ShapeError(ValueError)
  kConfig,       // ConfigError(ValueError)
  kWeight,       // WeightError(KeyError)
  kUnsupported,  // UnsupportedError(NotImplementedError)
  kMemory,       // OutOfMemory(MemoryError)
  kDevice,       // DeviceError(RuntimeError)
  kKernel,       // KernelError(RuntimeError)
  kFile,         // FileFormatError(ValueError): a malformed or hostile file
};

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& where, const std::string& message)
      : std::runtime_error("[" + where + "] " + message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

namespace detail {

inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char c) { out += c; }

template <typename Number>
  requires std::is_arithmetic_v<Number>
void append(std::string& out, Number n) {
  char text[64];
  std::to_chars_result end;
  if constexpr (std::is_floating_point_v<Number>) {
    end = std::to_chars(text, text + sizeof text, n, std::chars_format::general, 6);
  } else {
    end = std::to_chars(text, text + sizeof text, n);
  }
  out.append(text, end.ptr);
}

}  // namespace detail

/// Joins text and numbers into one string. GCC 12 has no <format>, and streams need locales, which
/// an extension with the C++ library linked into it finds uninitialized.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

}  // namespace butter

#ifdef NDEBUG
#define BT_ASSERT(condition) ((void)0)
#else
#include <cassert>
#define BT_ASSERT(condition) assert(condition)
#endif
