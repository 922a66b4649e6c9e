// Queues, command buffers and encoders.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <thread>

#import "command.h"

@class SMIndirectBuffer;

namespace sm {

/// One step of a compute pass: a dispatch, or the commands of an indirect command buffer.
struct Item {
  Dispatch dispatch;  // of an indirect command buffer: what its commands inherit
  __unsafe_unretained SMIndirectBuffer* indirect = nil;
  uint64_t indirect_serial = 0;
  NSRange range{};
  size_t resources = 0;  // how many of the pass's uses came before
};

struct Use {
  uint64_t serial;
  NSUInteger usage;
};

/// One encoder's work.
struct Pass {
  std::vector<Item> items;
  std::vector<Use> uses;
  std::vector<std::function<void()>> copies;  // of a blit pass
  std::vector<uint64_t> waits_for, updates;   // fences
};

/// What a command buffer does, in order.
struct Step {
  Pass pass;
  std::function<void()> event;  // waits for or signals an event instead
  bool orders_all = false;      // that event orders all earlier work before later work
};

}  // namespace sm

namespace sm {

/// Runs the passes of a command buffer and keeps what they touched, to find hazards between passes.
class PassRunner {
 public:
  /// False: stop half way, as a planted fault wants.
  bool run(const Pass& pass, const Residency& sets, bool stop_half_way);
  void order_all() { history_.clear(); }
  void forget_before(uint64_t number);
  void begin(uint64_t number) { number_ = number; }

 private:
  struct Done {
    uint64_t number;
    std::vector<Access> accesses;
    std::set<uint64_t> fences;  // that it, or one ordered after it, has updated
  };
  void check_against_history(const Pass& pass, const std::vector<Access>& accesses);

  std::vector<Done> history_;
  uint64_t number_ = 0;
};

}  // namespace sm

@interface SMIndirectBuffer : SMObject <MTLIndirectCommandBuffer> {
 @public
  std::vector<sm::Dispatch> _commands;
  std::vector<char> _is_set;
  MTLIndirectCommandBufferDescriptor* _descriptor;
  std::atomic<int> _in_flight;
}
- (instancetype)initWithDescriptor:(MTLIndirectCommandBufferDescriptor*)descriptor
                             count:(NSUInteger)count;
- (void)checkIdle;
@end

@interface SMQueue : SMObject <MTLCommandQueue>
- (void)add:(id)commandBuffer;
- (void)wake;
- (std::vector<uint64_t>)resident;
- (sm::PassRunner&)runner;
/// The host has seen that this command buffer and those before it are done.
- (void)hostKnows:(uint64_t)number;
@end

@interface SMCommandBuffer : SMObject <MTLCommandBuffer> {
 @public
  SMQueue* _queue;
  bool _retains;
  std::vector<sm::Step> _steps;
  std::vector<id> _kept;
  bool _has_encoder;
  uint64_t _number;      // in its queue
  uint64_t _known_done;  // earlier ones that the host knew to be done at commit
}
- (instancetype)initWithQueue:(SMQueue*)queue retains:(bool)retains;
- (void)keep:(id)object;
/// Runs everything; on the queue's thread.
- (void)execute;
- (void)add:(sm::Step)step;
@end

@interface SMEncoder : SMObject <MTLCommandEncoder> {
 @public
  SMCommandBuffer* _commands;
  sm::Pass _pass;
  bool _has_ended;
}
- (instancetype)initWithCommands:(SMCommandBuffer*)commands;
- (void)updateFence:(id<MTLFence>)fence;
- (void)waitForFence:(id<MTLFence>)fence;
@end

@interface SMComputeEncoder : SMEncoder <MTLComputeCommandEncoder>
- (instancetype)initWithCommands:(SMCommandBuffer*)commands type:(MTLDispatchType)type;
@end

@interface SMBlitEncoder : SMEncoder <MTLBlitCommandEncoder>
@end
