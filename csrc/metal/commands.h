// Eager dispatch: one compute encoder, every argument bound for every kernel.
#pragma once

#import <Metal/Metal.h>

#include <memory>

#include "hal/commands.h"
#include "metal/queue.h"
#include "metal/ref.h"

namespace butter::metal {

class MetalCommands : public Commands {
 public:
  explicit MetalCommands(Queue& queue) : queue_(queue) {}
  /// Drops what was not submitted.
  ~MetalCommands() override;

  void dispatch(const Pipeline& pipeline, const Launch& launch) override;
  void barrier() override;
  std::shared_ptr<Completion> submit() override;

 private:
  void open();

  Queue& queue_;
  Ref<id<MTLCommandBuffer>> commands_;
  Ref<id<MTLComputeCommandEncoder>> encoder_;
  bool needs_barrier_ = false;
};

/// A grid without groups is legal for us, but not for Metal.
inline bool is_empty(const Grid& grid) { return grid[0] == 0 || grid[1] == 0 || grid[2] == 0; }
inline MTLSize size(const Grid& grid) { return MTLSizeMake(grid[0], grid[1], grid[2]); }

}  // namespace butter::metal
