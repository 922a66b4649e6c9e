// Blocks: copied from the stack to the heap, counted like objects.
#include <cstdlib>
#include <cstring>

#include "abi.h"

using namespace objcrt;

namespace {

// Flags that clang sets; the low 16 bits of a heap block count its references.
enum : int {
  kReferences = 0xffff,
  kOnHeap = 1 << 24,
  kHasCopyDispose = 1 << 25,
  kIsGlobal = 1 << 28,
};
// What a captured variable is.
enum : int { kObject = 3, kBlock = 7, kByRef = 8 };

struct Descriptor {
  unsigned long reserved, size;
  void (*copy)(void* to, const void* from);
  void (*dispose)(const void* block);
};

struct Block {
  void* isa;
  std::atomic<int> flags;
  int reserved;
  void (*invoke)();
  Descriptor* descriptor;
};

struct ByRef {  // a __block variable
  void* isa;
  ByRef* forwarding;
  std::atomic<int> flags;
  int size;
  void (*copy)(void* to, void* from);
  void (*dispose)(void* variable);
};

std::atomic<long> heap_blocks;

id copy(id self, SEL) { return _Block_copy(self); }
void release(id self, SEL) { _Block_release(self); }
id autorelease(id self, SEL) { return objcrt_autorelease(self); }

/// Makes the storage that clang's blocks point to a class, so that they answer messages.
void make_class(void** storage) {
  static ClassData data = {0,       0,       sizeof(Block), 0,       nullptr, "block",
                           nullptr, nullptr, nullptr,       nullptr, nullptr};
  auto cls = reinterpret_cast<Class>(storage);
  cls->isa = cls;
  cls->data = &data;
  cls->info = new ClassInfo;
  const auto add = [&](const char* name, auto imp) {
    cls->info->methods[sel_registerName(name)] = reinterpret_cast<IMP>(imp);
  };
  add("copy", copy);
  add("retain", copy);
  add("release", release);
  add("autorelease", autorelease);
}

ByRef* copy_variable(ByRef* from) {
  if (from->forwarding->flags & kOnHeap) {
    from->forwarding->flags += 1;
    return from->forwarding;
  }
  auto to = static_cast<ByRef*>(std::malloc(from->size));
  std::memcpy(static_cast<void*>(to), from, from->size);
  to->flags = (from->flags & ~kReferences) | kOnHeap | 2;  // the stack's and the block's
  to->forwarding = from->forwarding = to;
  if (from->flags & kHasCopyDispose) from->copy(to, from);
  return to;
}

void release_variable(ByRef* variable) {
  variable = variable->forwarding;
  if (!(variable->flags & kOnHeap)) return;
  if ((--variable->flags & kReferences) != 0) return;
  if (variable->flags & kHasCopyDispose) variable->dispose(variable);
  std::free(variable);
}

}  // namespace

extern "C" {
void *_NSConcreteStackBlock[32], *_NSConcreteMallocBlock[32], *_NSConcreteGlobalBlock[32];
id objc_retain(id object);
void objc_release(id object);

__attribute__((constructor(101))) static void make_classes() {
  for (void** storage : {_NSConcreteStackBlock, _NSConcreteMallocBlock, _NSConcreteGlobalBlock}) {
    make_class(storage);
  }
}

bool objcrt_is_block(id object) {
  const void* isa = object->isa;
  return isa == _NSConcreteStackBlock || isa == _NSConcreteMallocBlock ||
         isa == _NSConcreteGlobalBlock;
}

long objcrt_heap_blocks(void) { return heap_blocks; }

id _Block_copy(const void* block) {
  auto from = static_cast<Block*>(const_cast<void*>(block));
  if (!from || from->flags & kIsGlobal) return reinterpret_cast<id>(from);
  if (from->flags & kOnHeap) {
    from->flags += 1;
    return reinterpret_cast<id>(from);
  }
  auto to = static_cast<Block*>(std::malloc(from->descriptor->size));
  std::memcpy(static_cast<void*>(to), from, from->descriptor->size);
  to->isa = _NSConcreteMallocBlock;
  to->flags = (from->flags & ~kReferences) | kOnHeap | 1;
  if (to->flags & kHasCopyDispose) to->descriptor->copy(to, from);
  ++heap_blocks;
  return reinterpret_cast<id>(to);
}

void _Block_release(const void* block) {
  auto b = static_cast<Block*>(const_cast<void*>(block));
  if (!b || !(b->flags & kOnHeap)) return;
  if ((b->flags & kReferences) == 0) fail("release of a deallocated block");
  if ((--b->flags & kReferences) != 0) return;
  if (b->flags & kHasCopyDispose) b->descriptor->dispose(b);
  --heap_blocks;
  std::free(b);
}

void _Block_object_assign(void* to, const void* object, const int kind) {
  auto place = static_cast<const void**>(to);
  switch (kind & 15) {
    case kObject:
      *place = objc_retain((id)object);
      break;
    case kBlock:
      *place = _Block_copy(object);
      break;
    case kByRef:
      *place = copy_variable((ByRef*)object);
      break;
    default:
      *place = object;  // a __block object: not retained
  }
}

void _Block_object_dispose(const void* object, const int kind) {
  switch (kind & 15) {
    case kObject:
      objc_release((id)object);
      break;
    case kBlock:
      _Block_release(object);
      break;
    case kByRef:
      release_variable((ByRef*)object);
      break;
    default:
      break;
  }
}
}
