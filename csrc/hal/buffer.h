// Device memory, seen without its device.
#pragma once

#include <cstddef>
#include <memory>

namespace butter {

/// One allocation or one adopted range of a mapped file. Back ends derive from it.
class Memory {
 public:
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  size_t size() const { return size_; }
  /// False for the pages of a file: no kernel may bind it as an output.
  bool writable() const { return writable_; }
  /// Where the host reads and writes it; null if it cannot.
  std::byte* host() const { return host_; }

 protected:
  Memory(std::byte* host, size_t size, bool writable)
      : host_(host), size_(size), writable_(writable) {}

 private:
  std::byte* host_;
  size_t size_;
  bool writable_;
};

/// A handle; the memory lives as long as one of them.
using Buffer = std::shared_ptr<Memory>;

struct Slice {
  Buffer buffer;
  size_t offset = 0;
  size_t bytes = 0;
};

}  // namespace butter
