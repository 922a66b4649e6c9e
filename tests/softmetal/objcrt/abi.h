// The structures that clang writes for -fobjc-runtime=macosx, and what the runtime adds to them.
#pragma once

#include <objc/objc.h>

#include <atomic>
#include <string>
#include <unordered_map>

namespace objcrt {

struct Method {
  SEL name;
  const char* types;
  IMP imp;
};

struct MethodList {
  uint32_t entry_size, count;
  Method methods[];
};

struct Ivar {
  long* offset;
  const char *name, *type;
  uint32_t align, size;
};

struct IvarList {
  uint32_t entry_size, count;
  Ivar ivars[];
};

struct ProtocolList;

struct Protocol {
  Class isa;
  const char* name;
  ProtocolList* parents;
};

struct ProtocolList {
  uintptr_t count;
  Protocol* protocols[];
};

constexpr uint32_t kMetaclass = 1;

struct ClassData {
  uint32_t flags, start, size, padding;
  const uint8_t* strong_layout;
  const char* name;
  MethodList* methods;
  ProtocolList* protocols;
  IvarList* ivars;
  const uint8_t* weak_layout;
  void* properties;
};

struct Category {
  const char* name;
  Class cls;
  MethodList *methods, *class_methods;
  ProtocolList* protocols;
};

struct ClassInfo {
  std::unordered_map<SEL, IMP> methods;
  std::atomic<long> live{0};
};

/// The method of a class or of its ancestors, or null.
IMP find_method(Class cls, SEL selector);

/// Prints "objc: ..." and aborts.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace objcrt

struct objc_class {
  Class isa, super;
  objcrt::ClassInfo* info;  // clang fills in &_objc_empty_cache
  void* vtable;
  objcrt::ClassData* data;
};

namespace objcrt {

/// The class of dead objects.
extern objc_class dead;
/// What a dead object was.
const char* name_of_dead(id object);

}  // namespace objcrt

extern "C" {
/// `object`: for the message if it is dead.
IMP objcrt_lookup(Class cls, SEL selector, id object = nullptr);
bool objcrt_conforms(Class cls, const char* protocol);
id class_createInstance(Class cls, size_t extra_bytes);
id objcrt_retain(id object);
void objcrt_release(id object);
long objcrt_retain_count(id object);
void objcrt_dealloc(id object);
id objcrt_autorelease(id object);
void objcrt_forget_weak(id object);

/// Objects and heap blocks that were made and not deallocated.
long objcrt_live_objects(void);
/// "SMBuffer 3, SMLibrary 1" into text; returns the length that it needs.
size_t objcrt_live_report(char* text, size_t size);

id _Block_copy(const void* block);
void _Block_release(const void* block);
bool objcrt_is_block(id object);
}

namespace objcrt {

/// Sends a message without arguments.
template <typename R>
R send(id object, SEL selector) {
  auto imp =
      reinterpret_cast<R (*)(id, SEL)>(objcrt_lookup(object_getClass(object), selector, object));
  return imp(object, selector);
}

}  // namespace objcrt
