// Which objects are alive, and which buffer an address belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sm {

struct BufferRange {
  uintptr_t begin, end;
  uint64_t serial;
  const void* buffer;  // SMBuffer
};

class Registry {
 public:
  static uint64_t add();  // a new serial
  static void remove(uint64_t serial);
  static bool is_alive(uint64_t serial);

  static void add_range(const BufferRange& range);
  static void remove_range(uint64_t serial);
  /// Buffers that hold this address, the one that begins last first. Adopted pages may overlap.
  static std::vector<BufferRange> at(uintptr_t address);
  static std::vector<BufferRange> all();
  static size_t allocated();
};

}  // namespace sm
