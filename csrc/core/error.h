// The one error type of the native core.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

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

/// Joins its arguments into one string; GCC 12 has no <format>.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace butter

#ifdef NDEBUG
#define BT_ASSERT(condition) ((void)0)
#else
#include <cassert>
#define BT_ASSERT(condition) assert(condition)
#endif
