// Queues: one thread runs the command buffers in the order of commit (or enqueue).
#include <condition_variable>
#include <mutex>

#import "encoders.h"

namespace {

/// Outlives its queue: the last reference to that may be dropped on this thread.
struct Worker {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<SMCommandBuffer*> waiting;
  bool stops = false, has_stopped = false;
  std::thread::id thread;

  static void run(std::shared_ptr<Worker> self) {
    for (;;) {
      @autoreleasepool {
        SMCommandBuffer* next = nil;
        {
          std::unique_lock lock(self->mutex);
          self->changed.wait(lock, [&] {
            return self->stops || (!self->waiting.empty() &&
                                   self->waiting.front().status >= MTLCommandBufferStatusCommitted);
          });
          if (self->stops) break;
          next = self->waiting.front();
          self->waiting.pop_front();
        }
        [next execute];
      }
      --sm::in_flight;
    }
    const std::lock_guard lock(self->mutex);
    self->has_stopped = true;
    self->changed.notify_all();
  }
};

}  // namespace

@implementation SMQueue {
  std::shared_ptr<Worker> _worker;
  std::vector<SMResidencySet*> _sets;
  std::mutex _mutex;
  uint64_t _last;
  std::atomic<uint64_t> _done;
  sm::PassRunner _runner;
}

- (id<MTLCommandBuffer>)commandBuffer {
  CALL("queue");
  return [[SMCommandBuffer alloc] initWithQueue:self retains:true];
}
- (id<MTLCommandBuffer>)commandBufferWithDescriptor:(MTLCommandBufferDescriptor*)descriptor {
  CALL("queue");
  return [[SMCommandBuffer alloc] initWithQueue:self retains:descriptor.retainedReferences];
}
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences {
  CALL("queue");
  return [[SMCommandBuffer alloc] initWithQueue:self retains:false];
}

- (void)add:(id)object {
  SMCommandBuffer* commands = object;
  const std::lock_guard guard(_mutex);
  commands->_number = ++_last;
  commands->_known_done = _done;
  if (!_worker) {
    _worker = std::make_shared<Worker>();
    std::thread thread(Worker::run, _worker);
    _worker->thread = thread.get_id();
    thread.detach();
  }
  ++sm::in_flight;
  const std::lock_guard lock(_worker->mutex);
  _worker->waiting.push_back(commands);
  _worker->changed.notify_all();
}
- (void)wake {
  const std::lock_guard lock(_worker->mutex);
  _worker->changed.notify_all();
}
- (sm::PassRunner&)runner {
  return _runner;
}
- (void)hostKnows:(uint64_t)number {
  uint64_t known = _done;
  while (known < number && !_done.compare_exchange_weak(known, number)) {
  }
}

- (void)addResidencySet:(id<MTLResidencySet>)residencySet {
  CALL("queue");
  const std::lock_guard guard(_mutex);
  _sets.push_back((SMResidencySet*)residencySet);
}
- (void)removeResidencySet:(id<MTLResidencySet>)residencySet {
  CALL("queue");
  const std::lock_guard guard(_mutex);
  std::erase(_sets, (SMResidencySet*)residencySet);
}
- (std::vector<uint64_t>)resident {
  const std::lock_guard guard(_mutex);
  std::vector<uint64_t> all;
  for (SMResidencySet* set : _sets) {
    const std::vector<uint64_t> some = [set committed];
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

- (void)dealloc {
  if (!_worker) return;
  std::unique_lock lock(_worker->mutex);
  CHECK(_worker->waiting.empty(), "a queue was released with an enqueued command buffer");
  _worker->stops = true;
  _worker->changed.notify_all();
  if (std::this_thread::get_id() == _worker->thread) return;
  _worker->changed.wait(lock, [&] { return _worker->has_stopped; });
}
@end
