#include "cpu/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "io/mapping.h"

namespace butter::cpu {
namespace {

constexpr size_t kAlign = 64;
// From here on fresh pages of the system beat memory that must be cleared.
constexpr size_t kMapBytes = size_t{1} << 18;
constexpr size_t kSparseBytes = size_t{1} << 14;  // less is not worth pages of its own
[[maybe_unused]] constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kElementAlign = 4;

class Heap : public Memory {
 public:
  Heap(void* at, size_t bytes) : Memory(static_cast<std::byte*>(at), bytes, true) {}
  ~Heap() override { std::free(host()); }
};

class Pages : public Memory {
 public:
  Pages(void* at, size_t bytes) : Memory(static_cast<std::byte*>(at), bytes, true) {}
  ~Pages() override { munmap(host(), size()); }
};

class FileRange : public Memory {
 public:
  FileRange(std::shared_ptr<const Mapping> file, std::byte* at, size_t bytes)
      : Memory(at, bytes, false), file_(std::move(file)) {}

 private:
  std::shared_ptr<const Mapping> file_;
};

[[noreturn]] void out_of_memory(size_t bytes) {
  throw Error(Code::kMemory, "cpu",
              concat("could not allocate ", bytes, " bytes. Use a smaller model or context."));
}

std::byte* map_anonymous(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) out_of_memory(bytes);
  return static_cast<std::byte*>(at);
}

/// From a multiple of kHugePage on, so that only the end is left to small pages.
[[maybe_unused]] std::byte* map_aligned(size_t bytes) {
  static const auto page = size_t(sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  std::byte* at = map_anonymous(bytes + kHugePage);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(at) % kHugePage) % kHugePage;
  if (before != 0) munmap(at, before);
  munmap(at + before + bytes, kHugePage - before);
  return at + before;
}

Buffer map_pages(size_t bytes, [[maybe_unused]] bool sparse) {
#if defined(MADV_HUGEPAGE)
  if (bytes >= kHugePage) {
    std::byte* at = sparse ? map_anonymous(bytes) : map_aligned(bytes);
    madvise(at, bytes, sparse ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    return std::make_shared<Pages>(at, bytes);
  }
#endif
  return std::make_shared<Pages>(map_anonymous(bytes), bytes);
}

}  // namespace

Buffer allocate_host(size_t bytes, bool sparse) {
  if (bytes >= (sparse ? kSparseBytes : kMapBytes)) return map_pages(bytes, sparse);
  const size_t rounded = bytes == 0 ? kAlign : (bytes + kAlign - 1) / kAlign * kAlign;
  void* at = std::aligned_alloc(kAlign, rounded);
  if (!at) out_of_memory(bytes);
  std::memset(at, 0, rounded);
  return std::make_shared<Heap>(at, bytes);
}

Buffer adopt_host(std::shared_ptr<const Mapping> file, size_t offset, size_t bytes) {
  const std::span<const uint8_t> range = file->range(offset, bytes);
  if (reinterpret_cast<uintptr_t>(range.data()) % kElementAlign != 0) {
    Buffer copy = allocate_host(bytes);
    if (bytes != 0) std::memcpy(copy->host(), range.data(), bytes);
    return copy;
  }
  // Memory is writable or not as a whole, and this one says that it is not.
  auto* at = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(range.data()));
  return std::make_shared<FileRange>(std::move(file), at, bytes);
}

}  // namespace butter::cpu
