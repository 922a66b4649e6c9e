// Buffers: zeroed host memory, or pages that the caller lends.
#include <cstdlib>
#include <cstring>

#import "buffers.h"
#include "registry.h"

namespace {

constexpr size_t kPage = 16384;  // of Apple silicon

NS_RETURNS_RETAINED SMBuffer* make(char* bytes, size_t length, MTLResourceOptions options,
                                   bool is_owned) {
  SMBuffer* buffer = [SMBuffer new];
  buffer->_bytes = bytes;
  buffer->_length = length;
  buffer->_options = options;
  buffer->_is_owned = is_owned;
  const auto begin = reinterpret_cast<uintptr_t>(bytes);
  sm::Registry::add_range({begin, begin + length, buffer->_serial, (__bridge const void*)buffer});
  return buffer;
}

}  // namespace

SMBuffer* sm_make_buffer(size_t length, MTLResourceOptions options) {
  CHECK(length > 0, "a buffer of 0 bytes");
  CHECK(length <= [sm_device() maxBufferLength], "a buffer of %zu bytes", length);
  if (sm::strikes(sm::Fault::kFailAllocation)) return nil;
  if (sm::Registry::allocated() + length > [sm_device() recommendedMaxWorkingSetSize]) return nil;
  void* bytes = nullptr;
  if (posix_memalign(&bytes, 256, length) != 0) return nil;
  std::memset(bytes, 0, length);
  return make(static_cast<char*>(bytes), length, options, true);
}

SMBuffer* sm_adopt_buffer(void* bytes, size_t length, MTLResourceOptions options,
                          void (^deallocator)(void*, NSUInteger)) {
  CHECK(length > 0, "a buffer of 0 bytes");
  CHECK(reinterpret_cast<uintptr_t>(bytes) % kPage == 0 && length % kPage == 0,
        "newBufferWithBytesNoCopy: needs whole pages of 16 KiB, got %p and %zu bytes", bytes,
        length);
  CHECK((options >> 4 & 15) == MTLStorageModeShared, "newBufferWithBytesNoCopy: must be shared");
  SMBuffer* buffer = make(static_cast<char*>(bytes), length, options, false);
  buffer->_deallocator = deallocator;
  return buffer;
}

void sm_miscount(SMBuffer* buffer) {
  if (sm::strikes(sm::Fault::kLeak)) (void)(__bridge_retained void*)buffer;
  if (sm::strikes(sm::Fault::kOverRelease)) {
    (void)(__bridge_transfer SMBuffer*)(__bridge void*)buffer;
  }
}

@implementation SMBuffer
- (NSUInteger)length {
  return _length;
}
- (NSUInteger)allocatedSize {
  return _length;
}
- (MTLGPUAddress)gpuAddress {
  return reinterpret_cast<MTLGPUAddress>(_bytes);
}
- (MTLStorageMode)storageMode {
  return MTLStorageMode(_options >> 4 & 15);
}
- (MTLCPUCacheMode)cpuCacheMode {
  return MTLCPUCacheMode(_options & 15);
}
- (MTLHazardTrackingMode)hazardTrackingMode {
  const auto mode = MTLHazardTrackingMode(_options >> 8 & 3);
  return mode == MTLHazardTrackingModeDefault ? MTLHazardTrackingModeTracked : mode;
}
- (MTLResourceOptions)resourceOptions {
  return _options;
}
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state {
  CHECK(state == MTLPurgeableStateKeepCurrent || state == MTLPurgeableStateNonVolatile,
        "setPurgeableState: %lu is not imitated", (unsigned long)state);
  return MTLPurgeableStateNonVolatile;
}
- (void*)contents {
  CHECK(self.storageMode != MTLStorageModePrivate, "contents of a private buffer");
  return _bytes;
}
- (void)didModifyRange:(NSRange)range {
  CHECK(range.location + range.length <= _length, "didModifyRange: outside of the buffer");
  CHECK(self.storageMode == MTLStorageModeManaged, "didModifyRange: is for managed buffers");
}
- (void)dealloc {
  sm::Registry::remove_range(_serial);
  if (_is_owned) {
    std::memset(_bytes, 0xDD, _length);
    std::free(_bytes);
  } else if (_deallocator) {
    _deallocator(_bytes, _length);
  }
}
@end
