#include "metal/pso_cache.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "core/error.h"
#include "metal/failure.h"
#include "metal/pool.h"

namespace butter::metal {
namespace {

constexpr NSUInteger kWarp = 32;

MTLDataType data_type(DType dtype) {
  return dtype == DType::kF32   ? MTLDataTypeFloat
         : dtype == DType::kI32 ? MTLDataTypeInt
                                : MTLDataTypeUInt;
}

[[noreturn]] void fail(const KernelInfo& info, const std::string& message) {
  throw Error(Code::kKernel, std::string(info.symbol), message);
}

}  // namespace

/// Function constants are named <kernel>_<constant>; their indices differ from file to file.
Ref<MTLFunctionConstantValues*> PsoCache::constant_values(const Key& key) {
  const KernelInfo& info = *key.info;
  Ref<MTLFunctionConstantValues*> values([[MTLFunctionConstantValues alloc] init]);
  for (size_t i = 0; i < info.consts.size(); ++i) {
    const std::string name = concat(info.name, "_", info.consts[i].name);
    [values setConstantValue:&key.consts[i] type:data_type(info.consts[i].dtype) withName:ns(name)];
  }
  if (key.form == Form::kTable) {
    [values setConstantValue:&key.first type:MTLDataTypeUInt withName:@"table_first"];
  }
  return values;
}

bool PsoCache::Key::operator==(const Key& other) const {
  return info == other.info && form == other.form && first == other.first &&
         std::ranges::equal(consts, other.consts);
}

size_t PsoCache::Hash::operator()(const Key& key) const {
  size_t h = reinterpret_cast<size_t>(key.info) + size_t(key.form) + 2 * size_t(key.first);
  for (const uint32_t c : key.consts) h = (h ^ c) * size_t{0x9E3779B97F4A7C15};
  return h ^ h >> 32;
}

const MetalPipeline& PsoCache::get(const KernelInfo& info, std::span<const uint32_t> consts,
                                   Form form, uint32_t first) {
  const Key wanted{&info, form, first, consts};
  {
    const std::shared_lock lock(mutex_);
    if (auto it = pipelines_.find(wanted); it != pipelines_.end()) return *it->second;
  }
  // Built unlocked: the compiler takes milliseconds, and hits must not wait for it.
  std::unique_ptr<MetalPipeline> built = build(wanted);
  const std::unique_lock lock(mutex_);
  // Another thread may have been faster; then its pipeline stays and ours is dropped.
  const Key key{&info, form, first, built->consts};
  return *pipelines_.try_emplace(key, std::move(built)).first->second;
}

Ref<id<MTLComputePipelineState>> PsoCache::compile(const Key& key) {
  const KernelInfo& info = *key.info;
  Library::Unit& unit = library_.unit(info, key.form);
  Ref<MTLComputePipelineDescriptor*> descriptor([[MTLComputePipelineDescriptor alloc] init]);
  MTLComputePipelineDescriptor* d = descriptor;
  d.label = ns(std::string(info.symbol));
  d.computeFunction = Library::function(unit, info, key.form, constant_values(key));
  d.maxTotalThreadsPerThreadgroup = info.group;
  d.threadGroupSizeIsMultipleOfThreadExecutionWidth = info.group % kWarp == 0;
  d.supportIndirectCommandBuffers = YES;
  if (unit.archive) {
    if (auto known = unit.archive->find(d); known.get()) return known;
  }
  NSError* error = nil;
  Ref<id<MTLComputePipelineState>> state([device_
      newComputePipelineStateWithDescriptor:d
                                    options:MTLPipelineOptionNone
                                 reflection:nullptr
                                      error:&error]);
  if (!state.get()) fail(info, concat("could not compile the pipeline: ", reason(error)));
  if (unit.archive) unit.archive->add(d);
  return state;
}

std::unique_ptr<MetalPipeline> PsoCache::build(const Key& key) {
  const Pool pool;
  const KernelInfo& info = *key.info;
  Ref<id<MTLComputePipelineState>> state = compile(key);
  const NSUInteger threads = state.get().maxTotalThreadsPerThreadgroup;
  const NSUInteger width = state.get().threadExecutionWidth;
  if (threads < info.group || width != kWarp) {
    fail(info, concat("does not fit this GPU: got at most ", threads, " threads in simdgroups of ",
                      width, ", need ", info.group, " in simdgroups of ", kWarp));
  }
  return std::make_unique<MetalPipeline>(
      info, std::move(state), std::vector<uint32_t>(key.consts.begin(), key.consts.end()));
}

}  // namespace butter::metal
