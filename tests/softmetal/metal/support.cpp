#include "support.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

extern "C" {
long objcrt_live_objects(void);
long objcrt_heap_blocks(void);
size_t objcrt_live_report(char* text, size_t size);
}

namespace sm {
namespace {

std::mutex& lock() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::vector<Counter*>& counters() {
  static auto* all = new std::vector<Counter*>;
  return *all;
}

constexpr const char* kFaults[] = {
    "skip_use_resource",   "skip_allocation", "skip_barrier",  "shift_binding", "shift_offset",
    "fail_command_buffer", "fail_allocation", "fail_pipeline", "leak",          "over_release"};
static_assert(std::size(kFaults) == size_t(Fault::kCount));

// Calls left until the fault; 0: none is planted.
std::atomic<long> planted[size_t(Fault::kCount)];

void plant(const std::string& faults) {
  for (auto& fault : planted) fault = 0;
  for (size_t at = 0; at < faults.size();) {
    const size_t end = std::min(faults.find(',', at), faults.size());
    const std::string one = faults.substr(at, end - at);
    const size_t colon = one.find(':');
    const auto known = std::find(std::begin(kFaults), std::end(kFaults), one.substr(0, colon));
    CHECK(known != std::end(kFaults), "cannot plant '%s'", one.c_str());
    const long n = colon == std::string::npos ? 1 : std::atol(one.c_str() + colon + 1);
    CHECK(n > 0, "cannot plant '%s'", one.c_str());
    planted[known - std::begin(kFaults)] = n;
    at = end + 1;
  }
}

void plant_from_environment() {
  static const bool once = [] {
    if (const char* faults = std::getenv("SOFTMETAL_PLANT")) plant(faults);
    return true;
  }();
  (void)once;
}

size_t hand_over(const std::string& from, char* text, size_t size) {
  if (size) std::snprintf(text, size, "%s", from.c_str());
  return from.size();
}

}  // namespace

std::atomic<int> in_flight{0};

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("softmetal: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  std::abort();
}

Counter::Counter(const char* kind, const char* selector)
    : name_(std::string(kind) + " " + selector) {
  const std::lock_guard guard(lock());
  counters().push_back(this);
}

bool strikes(Fault fault) {
  plant_from_environment();
  std::atomic<long>& left = planted[size_t(fault)];
  return left.load(std::memory_order_relaxed) > 0 && left.fetch_sub(1) == 1;
}

long setting(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atol(text) : otherwise;
}

}  // namespace sm

using namespace sm;

size_t softmetal_calls(char* text, size_t size) {
  const std::lock_guard guard(lock());
  std::string json;
  for (const Counter* c : counters()) {
    if (!c->count()) continue;
    json += (json.empty() ? "{\"" : ", \"") + c->name() + "\": " + std::to_string(c->count());
  }
  return hand_over(json.empty() ? "{}" : json + "}", text, size);
}

void softmetal_reset_calls(void) {
  const std::lock_guard guard(lock());
  for (Counter* c : counters()) c->reset();
}

uint64_t softmetal_call_count(const char* prefix) {
  const std::lock_guard guard(lock());
  uint64_t total = 0;
  const size_t length = std::strlen(prefix);
  for (const Counter* c : counters()) {
    if (c->name().compare(0, length, prefix) != 0) continue;
    if (c->name().size() == length || c->name()[length] == ' ') total += c->count();
  }
  return total;
}

uint64_t softmetal_encoder_calls(void) {
  uint64_t total = 0;
  for (const char* kind : {"compute", "blit", "indirect"}) total += softmetal_call_count(kind);
  return total;
}

void softmetal_settle(void) {
  for (int i = 0; in_flight > 0 && i < 5000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

long softmetal_live_objects(void) { return objcrt_live_objects() + objcrt_heap_blocks(); }

size_t softmetal_live_report(char* text, size_t size) {
  std::string report(objcrt_live_report(nullptr, 0), '\0');
  objcrt_live_report(report.data(), report.size() + 1);
  if (const long blocks = objcrt_heap_blocks()) {
    report += (report.empty() ? "" : ", ") + ("blocks " + std::to_string(blocks));
  }
  return hand_over(report, text, size);
}

void softmetal_plant(const char* faults) {
  plant_from_environment();
  plant(faults);
}

int softmetal_planted(void) {
  plant_from_environment();
  return std::count_if(std::begin(planted), std::end(planted), [](auto& n) { return n > 0; });
}
