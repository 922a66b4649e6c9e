#include "registry.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

namespace sm {
namespace {

std::mutex& lock() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::unordered_set<uint64_t>& alive() {
  static auto* set = new std::unordered_set<uint64_t>;
  return *set;
}

// Sorted by begin.
std::vector<BufferRange>& ranges() {
  static auto* all = new std::vector<BufferRange>;
  return *all;
}

auto past(uintptr_t address) {
  return std::upper_bound(ranges().begin(), ranges().end(), address,
                          [](uintptr_t a, const BufferRange& r) { return a < r.begin; });
}

}  // namespace

uint64_t Registry::add() {
  static uint64_t last = 0;
  const std::lock_guard guard(lock());
  alive().insert(++last);
  return last;
}

void Registry::remove(uint64_t serial) {
  const std::lock_guard guard(lock());
  alive().erase(serial);
}

bool Registry::is_alive(uint64_t serial) {
  const std::lock_guard guard(lock());
  return alive().count(serial) != 0;
}

void Registry::add_range(const BufferRange& range) {
  const std::lock_guard guard(lock());
  ranges().insert(past(range.begin), range);
}

void Registry::remove_range(uint64_t serial) {
  const std::lock_guard guard(lock());
  std::erase_if(ranges(), [&](const BufferRange& r) { return r.serial == serial; });
}

std::vector<BufferRange> Registry::all() {
  const std::lock_guard guard(lock());
  return ranges();
}

std::vector<BufferRange> Registry::at(uintptr_t address) {
  const std::lock_guard guard(lock());
  std::vector<BufferRange> found;
  for (auto it = past(address); it != ranges().begin();) {
    --it;
    if (address < it->end) found.push_back(*it);
  }
  return found;
}

size_t Registry::allocated() {
  const std::lock_guard guard(lock());
  size_t total = 0;
  for (const BufferRange& r : ranges()) total += r.end - r.begin;
  return total;
}

}  // namespace sm
