// Objects: 16 bytes before each instance hold its reference count and a magic word, so that the
// use of a dead object is an abort with its class name.
#include <cstdlib>
#include <deque>
#include <mutex>

#include "abi.h"

using namespace objcrt;

namespace {

constexpr uint64_t kLive = 0x0b1ec7a11e0b1ec7, kDead = 0xdeadbeefdeadbeef;

struct Header {
  std::atomic<long> references;  // of a dead object, its class
  std::atomic<uint64_t> magic;
};

Header* header(id object) { return reinterpret_cast<Header*>(object) - 1; }

std::atomic<long> live_objects;

void check(id object, const char* what) {
  const uint64_t magic = header(object)->magic;
  if (magic == kDead) fail("%s of a deallocated %s", what, name_of_dead(object));
  if (magic != kLive) fail("%s of %p, which is no object", what, static_cast<void*>(object));
}

void run_own(id object, Class cls, SEL selector) {
  const auto it = cls->info->methods.find(selector);
  if (it == cls->info->methods.end()) return;
  reinterpret_cast<void (*)(id, SEL)>(it->second)(object, selector);
}

void construct(id object, Class cls) {
  static const SEL selector = sel_registerName(".cxx_construct");
  if (!cls) return;
  construct(object, cls->super);
  run_own(object, cls, selector);
}

// Dead objects stay readable for a while (for good with OBJCRT_ZOMBIES=1): a second release finds
// the magic word.
void bury(Header* dead) {
  static const bool keep_all = std::getenv("OBJCRT_ZOMBIES") != nullptr;
  static std::mutex mutex;
  static auto* graves = new std::deque<Header*>;
  if (keep_all) return;
  std::lock_guard guard(mutex);
  graves->push_back(dead);
  if (graves->size() <= 2048) return;
  std::free(graves->front());
  graves->pop_front();
}

}  // namespace

namespace objcrt {

objc_class dead;

const char* name_of_dead(id object) {
  if (!object) return "object";
  return reinterpret_cast<Class>(header(object)->references.load())->data->name;
}

}  // namespace objcrt

extern "C" {
id class_createInstance(Class cls, size_t extra_bytes) {
  auto h = static_cast<Header*>(std::calloc(1, sizeof(Header) + cls->data->size + extra_bytes));
  if (!h) fail("no memory for a %s", cls->data->name);
  h->references = 1;
  h->magic = kLive;
  auto object = reinterpret_cast<id>(h + 1);
  object->isa = cls;
  ++live_objects;
  ++cls->info->live;
  construct(object, cls);
  return object;
}

id objcrt_retain(id object) {
  check(object, "retain");
  ++header(object)->references;
  return object;
}

void objcrt_release(id object) {
  static const SEL dealloc = sel_registerName("dealloc");
  check(object, "release");
  if (--header(object)->references == 0) send<void>(object, dealloc);
}

long objcrt_retain_count(id object) { return header(object)->references; }

void objcrt_dealloc(id object) {
  static const SEL destruct = sel_registerName(".cxx_destruct");
  check(object, "dealloc");
  if (header(object)->references > 0) fail("%s deallocated by hand", object->isa->data->name);
  objcrt_forget_weak(object);
  for (Class cls = object->isa; cls; cls = cls->super) run_own(object, cls, destruct);
  --live_objects;
  --object->isa->info->live;
  header(object)->references = reinterpret_cast<long>(object->isa);
  header(object)->magic = kDead;
  object->isa = &dead;
  bury(header(object));
}

long objcrt_live_objects(void) { return live_objects; }
}
