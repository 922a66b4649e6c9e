// Unified memory as Metal buffers.
#pragma once

#import <Metal/Metal.h>

#include <memory>

#include "hal/buffer.h"
#include "metal/ref.h"

namespace butter {
class Mapping;
}

namespace butter::metal {

class MetalMemory : public Memory {
 public:
  /// `start` bytes of the Metal buffer precede the memory.
  MetalMemory(Ref<id<MTLBuffer>> buffer, size_t start, size_t bytes, bool writable)
      : Memory(static_cast<std::byte*>(buffer.get().contents) + start, bytes, writable),
        buffer(std::move(buffer)),
        start(start) {}

  const Ref<id<MTLBuffer>> buffer;
  const size_t start;
};

/// Where a kernel's argument lies. Borrowed from the memory that a slice keeps.
struct Place {
  id<MTLBuffer> buffer;
  NSUInteger offset;
};

Place place(const Slice& slice);

/// Zeroed, shared by host and GPU. Throws OutOfMemory.
Buffer allocate(id<MTLDevice> device, size_t bytes, bool sparse);

/// Pages of a file in place, where the page-aligned span around the range lies inside the mapping;
/// else a copy. The pages stay mapped until the GPU has let go of them.
Buffer adopt(id<MTLDevice> device, std::shared_ptr<const Mapping> file, size_t offset,
             size_t bytes);

}  // namespace butter::metal
