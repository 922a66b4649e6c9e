#include "metal/completion.h"

#include "metal/failure.h"

namespace butter::metal {

void MetalCompletion::finish(id<MTLCommandBuffer> commands) noexcept {
  const double seconds = commands.GPUEndTime - commands.GPUStartTime;
  device_ns_ = seconds > 0 ? uint64_t(seconds * 1e9) : 0;
  if (commands.status != MTLCommandBufferStatusError) return end(kDone);
  try {
    message_ = reason(commands.error);
  } catch (...) {
    // No memory for the text; the failure itself still counts.
  }
  code_ = command_code(commands.error);
  end(kFailed);
}

void MetalCompletion::fail(Code code, std::string message) noexcept {
  code_ = code;
  message_ = std::move(message);
  end(kFailed);
}

void MetalCompletion::end(uint32_t state) noexcept {
  state_.store(state, std::memory_order_release);
  state_.notify_all();
}

void MetalCompletion::block() noexcept {
  if (done() || getpid() != process_) return;
  [commands_ waitUntilCompleted];
  // The handler may still be on its way.
  state_.wait(kPending, std::memory_order_acquire);
}

void MetalCompletion::wait() {
  block();
  if (!done()) throw forked();
  if (state_.load(std::memory_order_acquire) == kFailed) throw Error(code_, "metal", message_);
}

}  // namespace butter::metal
