// Autorelease pools, weak references, properties and the entry points that clang calls.
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "abi.h"

using namespace objcrt;

namespace {

const SEL kRetain = sel_registerName("retain"), kRelease = sel_registerName("release"),
          kAutorelease = sel_registerName("autorelease"), kInit = sel_registerName("init"),
          kAlloc = sel_registerName("alloc"), kCopy = sel_registerName("copy");

// What the open pools of this thread own; null starts a pool.
thread_local std::vector<id> pool;

std::recursive_mutex& weak_lock() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

std::map<id, std::set<id*>>& weak_references() {
  static auto* map = new std::map<id, std::set<id*>>;
  return *map;
}

id& slot(id object, ptrdiff_t offset) {
  return *reinterpret_cast<id*>(reinterpret_cast<char*>(object) + offset);
}

}  // namespace

extern "C" {
id objc_retain(id object) {
  if (!object) return object;
  return objcrt_is_block(object) ? _Block_copy(object) : send<id>(object, kRetain);
}
void objc_release(id object) {
  if (!object) return;
  if (objcrt_is_block(object)) return _Block_release(object);
  send<void>(object, kRelease);
}

id objcrt_autorelease(id object) {
  if (pool.empty()) fail("%s autoreleased without a pool", object->isa->data->name);
  pool.push_back(object);
  return object;
}
void* objc_autoreleasePoolPush(void) {
  pool.push_back(nullptr);
  return reinterpret_cast<void*>(pool.size());
}
void objc_autoreleasePoolPop(void* token) {
  const size_t size = reinterpret_cast<size_t>(token) - 1;
  if (size >= pool.size()) fail("autorelease pool popped twice or on another thread");
  while (pool.size() > size) {
    id object = pool.back();
    pool.pop_back();
    objc_release(object);
  }
}

id objc_autorelease(id object) {
  if (!object) return object;
  return objcrt_is_block(object) ? objcrt_autorelease(object) : send<id>(object, kAutorelease);
}
id objc_autoreleaseReturnValue(id object) { return objc_autorelease(object); }
id objc_retainAutoreleasedReturnValue(id object) { return objc_retain(object); }
id objc_unsafeClaimAutoreleasedReturnValue(id object) { return object; }
id objc_claimAutoreleasedReturnValue(id object) { return objc_retain(object); }
id objc_retainAutorelease(id object) { return objc_autorelease(objc_retain(object)); }
id objc_retainAutoreleaseReturnValue(id object) { return objc_retainAutorelease(object); }
id objc_retainBlock(id block) { return block ? _Block_copy(block) : block; }
void objc_storeStrong(id* place, id value) {
  id old = *place;
  if (old == value) return;
  objc_retain(value);
  *place = value;
  objc_release(old);
}

void objcrt_forget_weak(id object) {
  std::lock_guard guard(weak_lock());
  const auto it = weak_references().find(object);
  if (it == weak_references().end()) return;
  for (id* place : it->second) *place = nullptr;
  weak_references().erase(it);
}
id objc_storeWeak(id* place, id value) {
  std::lock_guard guard(weak_lock());
  if (*place) weak_references()[*place].erase(place);
  *place = value;
  if (value) weak_references()[value].insert(place);
  return value;
}
id objc_initWeak(id* place, id value) {
  *place = nullptr;
  return objc_storeWeak(place, value);
}
void objc_destroyWeak(id* place) { objc_storeWeak(place, nullptr); }
id objc_loadWeakRetained(id* place) {
  std::lock_guard guard(weak_lock());
  // The last release may be on its way on another thread.
  return *place && objcrt_retain_count(*place) > 0 ? objc_retain(*place) : nullptr;
}
id objc_loadWeak(id* place) { return objc_autorelease(objc_loadWeakRetained(place)); }
void objc_copyWeak(id* to, id* from) { objc_initWeak(to, *from); }
void objc_moveWeak(id* to, id* from) {
  objc_copyWeak(to, from);
  objc_destroyWeak(from);
}

id objc_alloc(id cls) { return send<id>(cls, kAlloc); }
id objc_allocWithZone(id cls) { return objc_alloc(cls); }
id objc_alloc_init(id cls) { return send<id>(objc_alloc(cls), kInit); }
id objc_opt_new(id cls) { return objc_alloc_init(cls); }
id objc_opt_self(id object) { return object; }
id objc_opt_class(id object) {
  if (!object) return object;
  const bool is_class = object->isa->data->flags & kMetaclass;
  return is_class ? object : reinterpret_cast<id>(object->isa);
}
BOOL objc_opt_isKindOfClass(id object, Class cls) {
  for (Class c = object ? object->isa : nullptr; c; c = c->super) {
    if (c == cls) return true;
  }
  return false;
}
BOOL objc_opt_respondsToSelector(id object, SEL selector) {
  return object && class_respondsToSelector(object->isa, selector);
}

id objc_getProperty(id object, SEL, ptrdiff_t offset, BOOL) {
  return objc_autorelease(objc_retain(slot(object, offset)));
}
void objc_setProperty_atomic(id object, SEL, id value, ptrdiff_t offset) {
  objc_storeStrong(&slot(object, offset), value);
}
void objc_setProperty_nonatomic(id object, SEL, id value, ptrdiff_t offset) {
  objc_storeStrong(&slot(object, offset), value);
}
void objc_setProperty_atomic_copy(id object, SEL, id value, ptrdiff_t offset) {
  id copy = value ? send<id>(value, kCopy) : value;
  objc_storeStrong(&slot(object, offset), copy);
  objc_release(copy);
}
void objc_setProperty_nonatomic_copy(id object, SEL selector, id value, ptrdiff_t offset) {
  objc_setProperty_atomic_copy(object, selector, value, offset);
}
void objc_copyStruct(void* to, const void* from, ptrdiff_t size, BOOL, BOOL) {
  std::memmove(to, from, size);
}
void objc_enumerationMutation(id) { fail("collection changed while it was enumerated"); }
}
