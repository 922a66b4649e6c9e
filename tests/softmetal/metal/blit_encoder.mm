#include <cstring>

#import "encoders.h"
#include "registry.h"

#define OPEN    \
  CALL("blit"); \
  CHECK(!_has_ended, "%s after endEncoding", sel_getName(_cmd))

namespace {

/// A place in a buffer, checked again when it is used.
struct Place {
  __unsafe_unretained SMBuffer* buffer;
  uint64_t serial;
  size_t offset;

  Place(id<MTLBuffer> b, NSUInteger at, NSUInteger size) {
    buffer = (SMBuffer*)b;
    CHECK(buffer && at + size <= buffer->_length, "blit of %lu bytes at %lu: past the buffer's end",
          (unsigned long)size, (unsigned long)at);
    CHECK(at % 4 == 0 && size % 4 == 0, "blit of %lu bytes at %lu: not a multiple of 4",
          (unsigned long)size, (unsigned long)at);
    serial = buffer->_serial;
    offset = at;
  }
  char* get() const {
    CHECK(sm::Registry::is_alive(serial), "a buffer was released before a blit used it");
    return buffer->_bytes + offset;
  }
};

}  // namespace

@implementation SMBlitEncoder
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  OPEN;
  const Place to(buffer, range.location, range.length);
  [_commands keep:buffer];
  _pass.copies.push_back([=] { std::memset(to.get(), value, range.length); });
}
- (void)copyFromBuffer:(id<MTLBuffer>)sourceBuffer
          sourceOffset:(NSUInteger)sourceOffset
              toBuffer:(id<MTLBuffer>)destinationBuffer
     destinationOffset:(NSUInteger)destinationOffset
                  size:(NSUInteger)size {
  OPEN;
  const Place from(sourceBuffer, sourceOffset, size),
      to(destinationBuffer, destinationOffset, size);
  const bool apart = from.serial != to.serial || from.offset + size <= to.offset ||
                     to.offset + size <= from.offset;
  CHECK(apart, "copyFromBuffer: the ranges overlap");
  [_commands keep:sourceBuffer];
  [_commands keep:destinationBuffer];
  _pass.copies.push_back([=] { std::memcpy(to.get(), from.get(), size); });
}
- (void)resetCommandsInBuffer:(id<MTLIndirectCommandBuffer>)buffer withRange:(NSRange)range {
  OPEN;
  [_commands keep:buffer];
  SMIndirectBuffer* icb = (SMIndirectBuffer*)buffer;
  _pass.copies.push_back([=] {
    for (NSUInteger i = range.location; i < NSMaxRange(range); ++i) icb->_is_set.at(i) = 0;
  });
}
- (void)optimizeIndirectCommandBuffer:(id<MTLIndirectCommandBuffer>)indirectCommandBuffer
                            withRange:(NSRange)range {
  OPEN;
  CHECK(NSMaxRange(range) <= indirectCommandBuffer.size, "optimizeIndirectCommandBuffer: range");
}
- (void)endEncoding {
  CALL("blit");
  [super endEncoding];
}
@end
