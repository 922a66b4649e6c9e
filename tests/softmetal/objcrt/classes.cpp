// Selectors, classes, categories, protocols and method lookup.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "abi.h"

namespace objcrt {
namespace {

// All state is made on first use: images load before static constructors have run.
std::recursive_mutex& lock() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

std::unordered_set<std::string>& selectors() {
  static auto* set = new std::unordered_set<std::string>;
  return *set;
}

std::map<std::string, Class>& classes() {
  static auto* map = new std::map<std::string, Class>;
  return *map;
}

std::unordered_set<Class>& realized() {
  static auto* set = new std::unordered_set<Class>;
  return *set;
}

// Grows with every method that is added, so that threads drop what they have cached.
std::atomic<unsigned> generation{1};

void add_methods(Class cls, MethodList* list) {
  for (uint32_t i = 0; list && i < list->count; ++i) {
    Method& m = list->methods[i];
    m.name = sel_registerName(reinterpret_cast<const char*>(m.name));
    cls->info->methods[m.name] = m.imp;
  }
}

// Instance variables begin where those of the superclass end, which clang need not know.
void slide_ivars(Class cls) {
  ClassData& data = *cls->data;
  const long by = static_cast<long>(cls->super->data->size) - static_cast<long>(data.start);
  if (by <= 0) return;
  const long aligned = (by + 15) & ~15L;
  data.start += aligned;
  data.size += aligned;
  for (uint32_t i = 0; data.ivars && i < data.ivars->count; ++i) {
    if (long* offset = data.ivars->ivars[i].offset) *offset += aligned;
  }
}

void realize(Class cls) {
  if (!cls || !realized().insert(cls).second) return;
  cls->info = new ClassInfo;
  realize(cls->super);
  add_methods(cls, cls->data->methods);
  if (cls->super && !(cls->data->flags & kMetaclass)) slide_ivars(cls);
}

void realize_pair(Class cls) {
  realize(cls->isa);
  realize(cls);
}

struct CacheEntry {
  Class cls;
  SEL selector;
  IMP imp;
  unsigned generation;
};

CacheEntry& cached(Class cls, SEL selector) {
  constexpr size_t kEntries = 1024;
  // Not in the thread's static memory, of which a library that Python loads gets little.
  thread_local const auto cache = std::make_unique<CacheEntry[]>(kEntries);
  const auto key =
      reinterpret_cast<uintptr_t>(cls) / 8 ^ reinterpret_cast<uintptr_t>(selector) / 16;
  return cache[key % kEntries];
}

}  // namespace

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("objc: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::abort();
}

IMP find_method(Class cls, SEL selector) {
  std::lock_guard guard(lock());
  for (; cls; cls = cls->super) {
    const auto it = cls->info->methods.find(selector);
    if (it != cls->info->methods.end()) return it->second;
  }
  return nullptr;
}

}  // namespace objcrt

using namespace objcrt;

extern "C" {
void* _objc_empty_cache;
void* _objc_empty_vtable;
void* objc_ehtype_vtable[4];

SEL sel_registerName(const char* name) {
  std::lock_guard guard(lock());
  return (SEL)selectors().insert(name).first->c_str();
}
const char* sel_getName(SEL selector) { return reinterpret_cast<const char*>(selector); }
Class objc_getClass(const char* name) {
  std::lock_guard guard(lock());
  const auto it = classes().find(name);
  return it == classes().end() ? nullptr : it->second;
}
const char* class_getName(Class cls) { return cls ? cls->data->name : "nil"; }
Class class_getSuperclass(Class cls) { return cls->super; }
Class object_getClass(id object) { return object ? object->isa : nullptr; }
bool class_respondsToSelector(Class cls, SEL selector) { return cls && find_method(cls, selector); }
IMP class_getMethodImplementation(Class cls, SEL selector) { return objcrt_lookup(cls, selector); }

IMP objcrt_lookup(Class cls, SEL selector, id object) {
  if (cls == &dead) {
    fail("message %s to a deallocated %s", sel_getName(selector), name_of_dead(object));
  }
  CacheEntry& entry = cached(cls, selector);
  const unsigned now = generation.load(std::memory_order_acquire);
  if (entry.cls == cls && entry.selector == selector && entry.generation == now) return entry.imp;
  IMP imp = find_method(cls, selector);
  if (!imp) {
    const char sign = cls->data->flags & kMetaclass ? '+' : '-';
    fail("%c[%s %s]: unrecognized selector", sign, cls->data->name, sel_getName(selector));
  }
  entry = {cls, selector, imp, now};
  return imp;
}
IMP objcrt_lookup_super(Class cls, SEL selector) { return objcrt_lookup(cls->super, selector); }

bool objcrt_conforms(Class cls, const char* name) {
  std::vector<ProtocolList*> pending;
  for (; cls; cls = cls->super) pending.push_back(cls->data->protocols);
  while (!pending.empty()) {
    ProtocolList* list = pending.back();
    pending.pop_back();
    for (uintptr_t i = 0; list && i < list->count; ++i) {
      if (!std::strcmp(list->protocols[i]->name, name)) return true;
      pending.push_back(list->protocols[i]->parents);
    }
  }
  return false;
}

/// sections: begin and end of the selector references, classes, categories of one image.
void objcrt_load_image(void* const* sections) {
  std::lock_guard guard(lock());
  auto selector = static_cast<SEL*>(sections[0]), last_selector = static_cast<SEL*>(sections[1]);
  for (; selector < last_selector; ++selector) {
    *selector = sel_registerName(reinterpret_cast<const char*>(*selector));
  }
  auto cls = static_cast<Class*>(sections[2]), last_class = static_cast<Class*>(sections[3]);
  for (Class* c = cls; c < last_class; ++c) {
    if (!classes().try_emplace((*c)->data->name, *c).second) {
      fail("class %s is in two images", (*c)->data->name);
    }
  }
  for (Class* c = cls; c < last_class; ++c) realize_pair(*c);
  auto category = static_cast<Category**>(sections[4]);
  for (; category < static_cast<Category**>(sections[5]); ++category) {
    realize_pair((*category)->cls);
    add_methods((*category)->cls, (*category)->methods);
    add_methods((*category)->cls->isa, (*category)->class_methods);
  }
  generation.fetch_add(1, std::memory_order_release);
}

size_t objcrt_live_report(char* text, size_t size) {
  std::lock_guard guard(lock());
  std::string report;
  for (const auto& [name, cls] : classes()) {
    const long live = cls->info->live;
    if (live) report += (report.empty() ? "" : ", ") + name + " " + std::to_string(live);
  }
  if (size) std::snprintf(text, size, "%s", report.c_str());
  return report.size();
}
}
