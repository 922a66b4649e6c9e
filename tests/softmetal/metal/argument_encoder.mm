#include <algorithm>

#import "functions.h"

@implementation SMArgumentEncoder {
  SMFunction* _function;
  NSUInteger _index, _length, _offset;
  SMBuffer* _buffer;
}
- (instancetype)initWithFunction:(SMFunction*)function index:(NSUInteger)index {
  self = [super init];
  _function = function;
  _index = index;
  const MslKernel& kernel = *function->_kernel;
  for (uint32_t i = 0; i < kernel.n_members; ++i) {
    const MslMember& m = kernel.members[i];
    if (m.buffer == index) _length = std::max<NSUInteger>(_length, m.offset + m.size);
  }
  CHECK(_length, "%s: [[buffer(%lu)]] is no argument buffer", kernel.name, (unsigned long)index);
  _length = (_length + 7) / 8 * 8;
  return self;
}
- (NSUInteger)encodedLength {
  return _length;
}
- (NSUInteger)alignment {
  return 8;
}
- (void)setArgumentBuffer:(id<MTLBuffer>)argumentBuffer offset:(NSUInteger)offset {
  CALL("argument");
  SMBuffer* buffer = (SMBuffer*)argumentBuffer;
  CHECK(buffer && offset % 8 == 0 && offset + _length <= buffer->_length,
        "an argument buffer of %lu bytes at offset %lu does not fit", (unsigned long)_length,
        (unsigned long)offset);
  _buffer = buffer;
  _offset = offset;
}
- (char*)member:(NSUInteger)index isPointer:(bool)isPointer {
  CHECK(_buffer, "no argument buffer is set");
  const MslKernel& kernel = *_function->_kernel;
  for (uint32_t i = 0; i < kernel.n_members; ++i) {
    const MslMember& m = kernel.members[i];
    if (m.buffer != _index || m.id != index) continue;
    CHECK(m.is_pointer == isPointer, "%s: [[id(%lu)]] is %s", kernel.name, (unsigned long)index,
          m.is_pointer ? "a buffer" : "no buffer");
    return _buffer->_bytes + _offset + m.offset;
  }
  sm::fail("%s: its argument buffer %lu has no [[id(%lu)]]", kernel.name, (unsigned long)_index,
           (unsigned long)index);
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  CALL("argument");
  if (sm::strikes(sm::Fault::kShiftBinding)) ++index;
  CHECK(!buffer || offset < buffer.length, "setBuffer: offset %lu is past the end",
        (unsigned long)offset);
  const MTLGPUAddress address = buffer ? buffer.gpuAddress + offset : 0;
  *reinterpret_cast<MTLGPUAddress*>([self member:index isPointer:true]) = address;
}
- (void)setBuffers:(const id<MTLBuffer> __unsafe_unretained[])buffers
           offsets:(const NSUInteger[])offsets
         withRange:(NSRange)range {
  for (NSUInteger i = 0; i < range.length; ++i) {
    [self setBuffer:buffers[i] offset:offsets[i] atIndex:range.location + i];
  }
}
- (void*)constantDataAtIndex:(NSUInteger)index {
  CALL("argument");
  return [self member:index isPointer:false];
}
@end
