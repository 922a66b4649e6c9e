// Residency sets: changes take effect at commit.
#include <mutex>
#include <set>

#import "objects.h"

@implementation MTLResidencySetDescriptor
@synthesize label = _label, initialCapacity = _initialCapacity;
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLResidencySetDescriptor* copy = [MTLResidencySetDescriptor new];
  copy.label = _label;
  copy.initialCapacity = _initialCapacity;
  return copy;
}
@end

@implementation SMResidencySet {
  std::mutex _mutex;
  std::map<uint64_t, SMObject*> _members;
  std::vector<uint64_t> _committed;
  NSString* _label;
}
- (instancetype)initWithLabel:(NSString*)label {
  _label = [label copy];
  return self;
}
- (NSString*)label {
  return _label;
}
- (id<MTLDevice>)device {
  return sm_device();
}
- (uint64_t)allocatedSize {
  const std::lock_guard lock(_mutex);
  uint64_t total = 0;
  for (const auto& [serial, member] : _members) total += [(id<MTLAllocation>)member allocatedSize];
  return total;
}
- (NSUInteger)allocationCount {
  const std::lock_guard lock(_mutex);
  return _members.size();
}
- (void)requestResidency {
  CALL("residency");
}
- (void)endResidency {
  CALL("residency");
}
- (void)addAllocation:(id<MTLAllocation>)allocation {
  CALL("residency");
  CHECK(allocation, "addAllocation: nil");
  if (sm::strikes(sm::Fault::kSkipAllocation)) return;
  const std::lock_guard lock(_mutex);
  SMObject* member = (SMObject*)allocation;
  _members[member->_serial] = member;
}
- (void)addAllocations:(const id<MTLAllocation> __unsafe_unretained[])allocations
                 count:(NSUInteger)count {
  for (NSUInteger i = 0; i < count; ++i) [self addAllocation:allocations[i]];
}
- (void)removeAllocation:(id<MTLAllocation>)allocation {
  CALL("residency");
  const std::lock_guard lock(_mutex);
  _members.erase(((SMObject*)allocation)->_serial);
}
- (void)removeAllAllocations {
  CALL("residency");
  const std::lock_guard lock(_mutex);
  _members.clear();
}
- (BOOL)containsAllocation:(id<MTLAllocation>)anAllocation {
  const std::lock_guard lock(_mutex);
  return _members.count(((SMObject*)anAllocation)->_serial) != 0;
}
- (void)commit {
  CALL("residency");
  const std::lock_guard lock(_mutex);
  _committed.clear();
  for (const auto& [serial, member] : _members) _committed.push_back(serial);
}
- (std::vector<uint64_t>)committed {
  const std::lock_guard lock(_mutex);
  return _committed;
}
@end
