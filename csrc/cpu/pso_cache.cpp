#include "cpu/pso_cache.h"

#include <algorithm>
#include <mutex>
#include <string_view>

#include "core/error.h"

namespace butter::cpu {

bool PsoCache::Key::operator==(const Key& other) const {
  return info == other.info && std::ranges::equal(consts, other.consts);
}

size_t PsoCache::Hash::operator()(const Key& key) const {
  size_t h = reinterpret_cast<size_t>(key.info);
  for (const uint32_t c : key.consts) h = (h ^ c) * size_t{0x9E3779B97F4A7C15};
  return h ^ h >> 32;
}

const CpuPipeline& PsoCache::get(const KernelInfo& info, std::span<const uint32_t> consts) {
  {
    const std::shared_lock lock(mutex_);
    if (auto it = pipelines_.find({&info, consts}); it != pipelines_.end()) return *it->second;
  }
  std::unique_ptr<CpuPipeline> built = build(info, consts);
  const std::unique_lock lock(mutex_);
  // Another thread may have been faster; then its pipeline stays and ours is dropped.
  const Key key{&info, built->consts};
  return *pipelines_.try_emplace(key, std::move(built)).first->second;
}

namespace {

CpuKernel find(std::span<const KernelEntry> table, std::string_view symbol) {
  const auto at = std::ranges::lower_bound(
      table, symbol, {}, [](const KernelEntry& e) { return std::string_view(e.symbol); });
  return at != table.end() && at->symbol == symbol ? at->fn : nullptr;
}

}  // namespace

std::unique_ptr<CpuPipeline> PsoCache::build(const KernelInfo& info,
                                             std::span<const uint32_t> consts) const {
  CpuKernel fn = find(isa_.bf16, info.symbol);
  if (!fn) fn = find(isa_.table, info.symbol);
  if (!fn) {
    throw Error(
        Code::kKernel, "cpu",
        concat("this build has no ", isa_.name, " code for '", info.symbol, "'. Rebuild Butter."));
  }
  return std::make_unique<CpuPipeline>(info, fn,
                                       std::vector<uint32_t>(consts.begin(), consts.end()));
}

}  // namespace butter::cpu
