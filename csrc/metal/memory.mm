#include "metal/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/error.h"
#include "io/mapping.h"

namespace butter::metal {
namespace {

constexpr size_t kPage = size_t{1} << 14;  // of Apple silicon
constexpr size_t kAlign = 16;
// Sparse memory from here on is left to the system, whose fresh pages are zero.
constexpr size_t kFreshBytes = size_t{1} << 20;

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

Ref<id<MTLBuffer>> shared_buffer(id<MTLDevice> device, size_t bytes) {
  const NSUInteger length = round_up(std::max<size_t>(bytes, 1), kAlign);
  if (length > device.maxBufferLength) {
    throw Error(Code::kMemory, "metal",
                concat("could not allocate ", bytes, " bytes: one buffer holds at most ",
                       device.maxBufferLength, ". Use a smaller model or context."));
  }
  Ref<id<MTLBuffer>> buffer([device newBufferWithLength:length
                                                options:MTLResourceStorageModeShared]);
  if (!buffer.get()) {
    throw Error(Code::kMemory, "metal",
                concat("could not allocate ", bytes, " bytes: this process uses ",
                       device.currentAllocatedSize, " on the GPU, which should hold at most ",
                       device.recommendedMaxWorkingSetSize,
                       ". Use a smaller model or context, or close other programs."));
  }
  return buffer;
}

}  // namespace

Place place(const Slice& slice) {
  const auto& memory = static_cast<const MetalMemory&>(*slice.buffer);
  // An empty range may stand at the very end, where Metal binds nothing.
  return {memory.buffer, memory.start + (slice.bytes == 0 ? 0 : slice.offset)};
}

Buffer allocate(id<MTLDevice> device, size_t bytes, bool sparse) {
  Ref<id<MTLBuffer>> buffer = shared_buffer(device, bytes);
  if (!sparse || bytes < kFreshBytes) std::memset(buffer.get().contents, 0, bytes);
  return std::make_shared<MetalMemory>(std::move(buffer), 0, bytes, true);
}

Buffer adopt(id<MTLDevice> device, std::shared_ptr<const Mapping> file, size_t offset,
             size_t bytes) {
  const std::span<const uint8_t> range = file->range(offset, bytes);
  const auto first = reinterpret_cast<uintptr_t>(range.data());
  const uintptr_t begin = first / kPage * kPage;
  const uintptr_t end = round_up(first + std::max<size_t>(bytes, 1), kPage);
  // The system maps whole pages of its own size, and zeros behind the end of the file.
  const auto mapped = reinterpret_cast<uintptr_t>(file->data());
  const uintptr_t mapped_end = round_up(mapped + file->size(), size_t(sysconf(_SC_PAGESIZE)));
  const bool is_inside = begin >= mapped && end <= mapped_end;
  if (is_inside && end - begin <= device.maxBufferLength) {
    Ref<id<MTLBuffer>> buffer([device newBufferWithBytesNoCopy:reinterpret_cast<void*>(begin)
                                                        length:end - begin
                                                       options:MTLResourceStorageModeShared
                                                   deallocator:^(void*, NSUInteger) {
                                                     (void)file;  // holds the mapping until here
                                                   }]);
    if (buffer.get()) {
      return std::make_shared<MetalMemory>(std::move(buffer), first - begin, bytes, false);
    }
  }
  Ref<id<MTLBuffer>> copy = shared_buffer(device, bytes);
  if (bytes != 0) std::memcpy(copy.get().contents, range.data(), bytes);
  return std::make_shared<MetalMemory>(std::move(copy), 0, bytes, false);
}

}  // namespace butter::metal
