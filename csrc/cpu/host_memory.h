// Host memory as device buffers.
#pragma once

#include <memory>

#include "hal/buffer.h"

namespace butter {
class Mapping;
}

namespace butter::cpu {

/// Zeroed and aligned to 64 bytes; in huge pages where it is large and not sparse. Throws
/// OutOfMemory.
Buffer allocate_host(size_t bytes, bool sparse = false);

/// Pages of a file, in place unless their address is not aligned for any element type.
Buffer adopt_host(std::shared_ptr<const Mapping> file, size_t offset, size_t bytes);

}  // namespace butter::cpu
