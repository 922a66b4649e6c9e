// The one command queue of a device. Work starts in the order of its submission.
#pragma once

#import <Metal/Metal.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "metal/completion.h"
#include "metal/ref.h"

namespace butter::metal {

/// Safe to share between threads.
class Queue {
 public:
  explicit Queue(id<MTLDevice> device);
  /// Waits for all work.
  ~Queue();

  /// Autoreleased.
  id<MTLCommandBuffer> command_buffer() const { return [queue_ commandBuffer]; }

  /// Its encoders have ended. Throws DeviceError in the child of a fork.
  std::shared_ptr<MetalCompletion> commit(id<MTLCommandBuffer> commands);

  /// The next command buffer is dropped and its completion fails.
  void inject_fault(const std::string& message);

  void drain();

 private:
  const Ref<id<MTLCommandQueue>> queue_;
  const int process_;
  std::mutex mutex_;
  std::optional<std::string> fault_;
  std::vector<std::weak_ptr<MetalCompletion>> in_flight_;
};

}  // namespace butter::metal
