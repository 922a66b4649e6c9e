// Memory that kernels reach through pointers: it must be resident, and ordered by hand.
#pragma once

#import <Metal/Metal.h>

#include <set>
#include <vector>

#include "metal/ref.h"

namespace butter::metal {

class Residency {
 public:
  Residency() = default;
  /// The buffers are borrowed, and outlive this. What is written is in `written` alone.
  Residency(id<MTLDevice> device, const std::set<id<MTLBuffer>>& read,
            const std::set<id<MTLBuffer>>& written);

  /// For everything that the encoder does next. Metal tracks what is written, so this also orders
  /// the encoder after earlier work on the same memory.
  void use(id<MTLCommandBuffer> commands, id<MTLComputeCommandEncoder> encoder) const;

 private:
  std::vector<id<MTLResource>> read_, written_;
  Ref<id> set_;  // MTLResidencySet of read_, where the system has them: macOS 15
};

}  // namespace butter::metal
