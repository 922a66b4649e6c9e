#include "core/planner.h"

#include <algorithm>
#include <map>

namespace butter {
namespace {

constexpr size_t kAlign = 64;  // a cache line, and the widest vector

struct Access {
  Binding::Kind kind;
  const void* memory;  // of a buffer
  uint32_t index;      // of an activation, or of a step block
  size_t begin, end;
  bool writes;
};

bool conflict(const Access& a, const Access& b) {
  return (a.writes || b.writes) && a.kind == b.kind && a.memory == b.memory && a.index == b.index &&
         a.begin < b.end && b.begin < a.end;
}

std::vector<Access> accesses(const Plan& plan, const Dispatch& d) {
  std::vector<Access> list;
  for (size_t i = 0; i < d.bindings.size(); ++i) {
    const Binding& b = d.bindings[i];
    const bool is_pool = b.kind == Binding::Kind::kPool;
    const bool is_buffer = b.kind == Binding::Kind::kBuffer;
    list.push_back({b.kind, is_buffer ? plan.buffers[b.buffer].get() : nullptr,
                    is_pool     ? b.buffer
                    : is_buffer ? 0
                                : d.block,
                    b.offset, b.offset + b.bytes, d.kernel->params[i].kind != ParamKind::kIn});
  }
  // Only kernels that write a step block order those that read it.
  if (d.kernel->uses_step) {
    list.push_back(
        {Binding::Kind::kTokens, nullptr, d.block, SIZE_MAX - 1, SIZE_MAX, d.kernel->writes_step});
  }
  return list;
}

struct Lifetime {
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
};

std::vector<Lifetime> lifetimes(const Plan& plan, size_t count) {
  std::vector<Lifetime> lives(count);
  for (const Dispatch& d : plan.dispatches) {
    for (const Binding& b : d.bindings) {
      if (b.kind != Binding::Kind::kPool) continue;
      lives[b.buffer].first = std::min(lives[b.buffer].first, d.phase);
      lives[b.buffer].last = std::max(lives[b.buffer].last, d.phase);
    }
  }
  for (const KeptTensor& k : plan.kept) lives[k.binding.buffer].last = UINT32_MAX;
  return lives;
}

struct Placed {
  size_t begin, end;
  Lifetime life;
};

/// The lowest gap among the ranges that are alive at the same time.
size_t first_fit(const std::vector<Placed>& placed, const Lifetime& life, size_t bytes) {
  std::vector<std::pair<size_t, size_t>> busy;
  for (const Placed& p : placed) {
    if (p.life.first <= life.last && life.first <= p.life.last) busy.emplace_back(p.begin, p.end);
  }
  std::ranges::sort(busy);
  size_t at = 0;
  for (const auto& [begin, end] : busy) {
    if (begin >= at + bytes) break;
    at = std::max(at, end);
  }
  return at;
}

}  // namespace

std::vector<StepLimit> merge_limits(const std::vector<StepLimit>& limits) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> smallest;
  for (const StepLimit& l : limits) {
    const auto [it, is_new] = smallest.try_emplace({l.block, l.word}, l.maximum);
    if (!is_new) it->second = std::min(it->second, l.maximum);
  }
  std::vector<StepLimit> merged;
  for (const auto& [where, maximum] : smallest) {
    merged.push_back({where.first, where.second, maximum});
  }
  return merged;
}

void plan_phases(Plan& plan) {
  std::vector<Access> current;
  uint32_t phase = 0;
  for (Dispatch& d : plan.dispatches) {
    const std::vector<Access> mine = accesses(plan, d);
    const bool hazard = std::ranges::any_of(mine, [&](const Access& a) {
      return std::ranges::any_of(current, [&](const Access& b) { return conflict(a, b); });
    });
    if (hazard) {
      ++phase;
      current.clear();
    }
    d.phase = phase;
    current.insert(current.end(), mine.begin(), mine.end());
  }
  plan.phases = plan.dispatches.empty() ? 0 : phase + 1;
}

void plan_pool(Plan& plan, std::span<const size_t> activation_bytes) {
  const std::vector<Lifetime> lives = lifetimes(plan, activation_bytes.size());
  // Largest first leaves the fewest holes.
  std::vector<uint32_t> order(activation_bytes.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    const size_t m = activation_bytes[a], n = activation_bytes[b];
    return m != n ? m > n : a < b;
  });
  std::vector<size_t> offsets(order.size(), 0);
  std::vector<Placed> placed;
  for (const uint32_t i : order) {
    if (lives[i].first == UINT32_MAX && lives[i].last != UINT32_MAX) continue;  // never used
    const size_t bytes = (activation_bytes[i] + kAlign - 1) / kAlign * kAlign;
    offsets[i] = first_fit(placed, lives[i], bytes);
    placed.push_back({offsets[i], offsets[i] + bytes, lives[i]});
    plan.pool_bytes = std::max(plan.pool_bytes, offsets[i] + bytes);
  }
  for (Dispatch& d : plan.dispatches) {
    for (Binding& b : d.bindings) {
      if (b.kind == Binding::Kind::kPool) b.offset += offsets[b.buffer];
    }
  }
  for (KeptTensor& k : plan.kept) k.binding.offset += offsets[k.binding.buffer];
}

}  // namespace butter
