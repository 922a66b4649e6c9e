// One committed command buffer, and what became of it.
#pragma once

#import <Metal/Metal.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "core/error.h"
#include "hal/commands.h"
#include "metal/ref.h"

namespace butter::metal {

class MetalCompletion : public Completion {
 public:
  explicit MetalCompletion(id<MTLCommandBuffer> commands)
      : commands_(Ref<id<MTLCommandBuffer>>::keep(commands)), process_(getpid()) {}

  bool done() const override { return state_.load(std::memory_order_acquire) != kPending; }
  void wait() override;
  uint64_t device_ns() const override { return device_ns_; }

  /// Blocks without looking at the outcome, but not in the child of a fork, where nothing ends.
  void block() noexcept;

  // Each ends the work; called once.
  void finish(id<MTLCommandBuffer> commands) noexcept;  // in the completion handler
  void fail(Code code, std::string message) noexcept;

 private:
  static constexpr uint32_t kPending = 0, kDone = 1, kFailed = 2;

  void end(uint32_t state) noexcept;

  const Ref<id<MTLCommandBuffer>> commands_;
  const int process_;
  std::atomic<uint32_t> state_ = kPending;
  Code code_ = Code::kDevice;
  std::string message_;
  uint64_t device_ns_ = 0;
};

}  // namespace butter::metal
