// Events count up; fences only have a number.
#include <condition_variable>
#include <mutex>

#import "objects.h"

@implementation SMFence
@end

@implementation MTLSharedEventListener
- (instancetype)init {
  return self;
}
@end

@implementation SMEvent {
  std::mutex _mutex;
  std::condition_variable _changed;
  uint64_t _value;
  std::multimap<uint64_t, MTLSharedEventNotificationBlock> _blocks;
}
- (uint64_t)signaledValue {
  const std::lock_guard lock(_mutex);
  return _value;
}
- (void)setSignaledValue:(uint64_t)value {
  CALL("event");
  std::vector<MTLSharedEventNotificationBlock> due;
  {
    const std::lock_guard lock(_mutex);
    _value = value;
    for (auto it = _blocks.begin(); it != _blocks.end() && it->first <= value;) {
      due.push_back(it->second);
      it = _blocks.erase(it);
    }
    _changed.notify_all();
  }
  for (MTLSharedEventNotificationBlock block : due) block(self, value);
}
- (void)notifyListener:(MTLSharedEventListener*)listener
               atValue:(uint64_t)value
                 block:(MTLSharedEventNotificationBlock)block {
  CALL("event");
  CHECK(listener, "notifyListener: nil");
  {
    const std::lock_guard lock(_mutex);
    if (_value < value) {
      _blocks.emplace(value, block);
      return;
    }
  }
  block(self, value);
}
- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds {
  CALL("event");
  std::unique_lock lock(_mutex);
  return _changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                           [&] { return _value >= value; });
}
- (void)await:(uint64_t)value {
  const long seconds = sm::setting("SOFTMETAL_TIMEOUT", 60);
  const bool reached = [self waitUntilSignaledValue:value timeoutMS:seconds * 1000];
  CHECK(reached, "the GPU waits for an event that nobody signals");
}
@end
