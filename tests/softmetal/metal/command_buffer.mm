// Command buffers: what was encoded, its state, its handlers.
#include <time.h>

#include <condition_variable>
#include <mutex>

#import "encoders.h"
#include "registry.h"

NSErrorDomain const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

}  // namespace

@implementation MTLCommandBufferDescriptor
@synthesize retainedReferences = _retainedReferences, errorOptions = _errorOptions;
- (instancetype)init {
  _retainedReferences = YES;
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  return self;
}
@end

@implementation SMCommandBuffer {
  std::mutex _mutex;
  std::condition_variable _changed;
  std::atomic<MTLCommandBufferStatus> _status;
  std::vector<MTLCommandBufferHandler> _completed, _scheduled;
  std::vector<SMResidencySet*> _sets;
  NSError* _error;
  double _begin, _end;
}

- (instancetype)initWithQueue:(SMQueue*)queue retains:(bool)retains {
  self = [super init];
  _queue = queue;
  _retains = retains;
  return self;
}
- (id<MTLCommandQueue>)commandQueue {
  return _queue;
}
- (BOOL)retainedReferences {
  return _retains;
}
- (MTLCommandBufferStatus)status {
  return _status;
}
- (NSError*)error {
  return _status == MTLCommandBufferStatusError ? _error : nil;
}
- (CFTimeInterval)GPUStartTime {
  return _status >= MTLCommandBufferStatusCompleted ? _begin : 0;
}
- (CFTimeInterval)GPUEndTime {
  return _status >= MTLCommandBufferStatusCompleted ? _end : 0;
}
- (CFTimeInterval)kernelStartTime {
  return self.GPUStartTime;
}
- (CFTimeInterval)kernelEndTime {
  return self.GPUEndTime;
}

- (void)keep:(id)object {
  if (_retains) _kept.push_back(object);
}
- (void)add:(sm::Step)step {
  _steps.push_back(std::move(step));
}

- (void)openEncoder {
  CHECK(!_has_encoder, "a second encoder before endEncoding of the first");
  CHECK(_status < MTLCommandBufferStatusCommitted, "an encoder after commit");
  _has_encoder = true;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return [self computeCommandEncoderWithDispatchType:MTLDispatchTypeSerial];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:
    (MTLDispatchType)dispatchType {
  CALL("command_buffer");
  [self openEncoder];
  return [[SMComputeEncoder alloc] initWithCommands:self type:dispatchType];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  CALL("command_buffer");
  [self openEncoder];
  return [[SMBlitEncoder alloc] initWithCommands:self];
}

- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  CALL("command_buffer");
  CHECK(!_has_encoder, "encodeWaitForEvent inside an encoder");
  SMEvent* e = (SMEvent*)event;
  [self keep:e];
  sm::Step step;
  step.event = [e, value] { [e await:value]; };
  step.orders_all = true;
  [self add:std::move(step)];
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  CALL("command_buffer");
  CHECK(!_has_encoder, "encodeSignalEvent inside an encoder");
  SMEvent* e = (SMEvent*)event;
  [self keep:e];
  sm::Step step;
  step.event = [e, value] { e.signaledValue = value; };
  [self add:std::move(step)];
}
- (void)useResidencySet:(id<MTLResidencySet>)residencySet {
  CALL("command_buffer");
  _sets.push_back((SMResidencySet*)residencySet);
}
- (void)useResidencySets:(const id<MTLResidencySet> __unsafe_unretained[])residencySets
                   count:(NSUInteger)count {
  for (NSUInteger i = 0; i < count; ++i) [self useResidencySet:residencySets[i]];
}

- (void)addScheduledHandler:(MTLCommandBufferHandler)block {
  CALL("command_buffer");
  CHECK(_status < MTLCommandBufferStatusCommitted, "addScheduledHandler after commit");
  _scheduled.push_back(block);
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  CALL("command_buffer");
  CHECK(_status < MTLCommandBufferStatusCommitted, "addCompletedHandler after commit");
  _completed.push_back(block);
}

- (void)enqueue {
  CALL("command_buffer");
  CHECK(_status == MTLCommandBufferStatusNotEnqueued, "enqueue of a command buffer in the queue");
  _status = MTLCommandBufferStatusEnqueued;
  [_queue add:self];
}
- (void)commit {
  CALL("command_buffer");
  CHECK(!_has_encoder, "commit with an open encoder");
  CHECK(_status < MTLCommandBufferStatusCommitted, "a command buffer committed twice");
  const bool is_enqueued = _status == MTLCommandBufferStatusEnqueued;
  for (const sm::Step& step : _steps) {
    for (const sm::Item& item : step.pass.items) {
      if (item.indirect) ++item.indirect->_in_flight;
    }
  }
  _status = MTLCommandBufferStatusCommitted;
  if (is_enqueued) {
    [_queue wake];
  } else {
    [_queue add:self];
  }
}

- (void)waitUntilScheduled {
  CHECK(_status >= MTLCommandBufferStatusCommitted, "waitUntilScheduled before commit");
  std::unique_lock lock(_mutex);
  _changed.wait(lock, [&] { return _status >= MTLCommandBufferStatusScheduled; });
}
- (void)waitUntilCompleted {
  CALL("command_buffer");
  CHECK(_status >= MTLCommandBufferStatusCommitted, "waitUntilCompleted before commit");
  std::unique_lock lock(_mutex);
  _changed.wait(lock, [&] { return _status >= MTLCommandBufferStatusCompleted; });
  [_queue hostKnows:_number];
}

- (void)setStatus:(MTLCommandBufferStatus)status {
  const std::lock_guard lock(_mutex);
  _status = status;
  _changed.notify_all();
}

- (void)execute {
  const long delay = sm::setting("SOFTMETAL_DELAY_US", 0);
  if (delay > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay));
  [self setStatus:MTLCommandBufferStatusScheduled];
  for (MTLCommandBufferHandler handler : _scheduled) handler(self);
  _scheduled.clear();
  _begin = now();
  const bool is_whole = [self runSteps];
  _end = now();
  if (!is_whole) {
    _error = sm_error(MTLCommandBufferErrorDomain, MTLCommandBufferErrorPageFault,
                      "Caused GPU Address Fault Error (planted)");
  }
  [self releaseWork];
  auto handlers = std::move(_completed);
  _completed.clear();
  // Waiters may go on before the handlers have run.
  [self setStatus:is_whole ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusError];
  if (!handlers.empty()) [_queue hostKnows:_number];
  for (MTLCommandBufferHandler handler : handlers) handler(self);
}

- (bool)runSteps {
  sm::Residency sets;
  const auto admit = [&](const std::vector<uint64_t>& serials) {
    for (uint64_t serial : serials) sets[serial] = MTLResourceUsageRead | MTLResourceUsageWrite;
  };
  admit([_queue resident]);
  for (SMResidencySet* set : _sets) admit([set committed]);
  sm::PassRunner& runner = [_queue runner];
  runner.forget_before(_known_done);
  runner.begin(_number);
  const bool fails = sm::strikes(sm::Fault::kFailCommandBuffer);
  for (const sm::Step& step : _steps) {
    if (step.orders_all) runner.order_all();
    if (step.event) {
      step.event();
    } else if (!runner.run(step.pass, sets, fails)) {
      return false;
    }
  }
  return !fails;
}

- (void)releaseWork {
  for (const sm::Step& step : _steps) {
    for (const sm::Item& item : step.pass.items) {
      if (item.indirect && sm::Registry::is_alive(item.indirect_serial)) {
        --item.indirect->_in_flight;
      }
    }
  }
  _steps.clear();
  _kept.clear();
  _sets.clear();
}

- (void)dealloc {
  CHECK(!_has_encoder, "a command buffer was released with an open encoder");
}
@end
