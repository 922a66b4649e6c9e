// An Apple GPU as a device.
#include "hal/device.h"

#import <Metal/Metal.h>

#include <utility>

#include "core/error.h"
#include "metal/argument_buffers.h"
#include "metal/commands.h"
#include "metal/icb.h"
#include "metal/memory.h"
#include "metal/pool.h"
#include "metal/pso_cache.h"
#include "metal/queue.h"
#include "metal/ref.h"

namespace butter {
namespace metal {
namespace {

constexpr uint32_t kWarp = 32;
constexpr std::pair<MTLGPUFamily, const char*> kFamilies[] = {
    {MTLGPUFamilyApple9, "apple9"}, {MTLGPUFamilyApple8, "apple8"}, {MTLGPUFamilyApple7, "apple7"}};

const char* family(id<MTLDevice> device) {
  for (const auto& [family, name] : kFamilies) {
    if ([device supportsFamily:family]) return name;
  }
  return nullptr;
}

class MetalDevice : public Device {
 public:
  MetalDevice(Ref<id<MTLDevice>> device, const char* family)
      : device_(std::move(device)),
        pipelines_(device_),
        info_{device_.get().name.UTF8String,
              "metal",
              family,
              kWarp,
              1,
              size_t(device_.get().recommendedMaxWorkingSetSize),
              false,
              pipelines_.library().cache_problem()},
        queue_(device_) {}

  const DeviceInfo& info() const override { return info_; }

  Buffer allocate(size_t bytes, bool sparse) override {
    const Pool pool;
    return metal::allocate(device_, bytes, sparse);
  }

  Buffer adopt(std::shared_ptr<const Mapping> file, size_t offset, size_t bytes) override {
    const Pool pool;
    return metal::adopt(device_, std::move(file), offset, bytes);
  }

  const Pipeline& pipeline(const KernelInfo& info, std::span<const uint32_t> consts) override {
    return pipelines_.get(info, consts);
  }

  std::unique_ptr<Commands> begin() override { return std::make_unique<MetalCommands>(queue_); }

  std::unique_ptr<Encoder> prepare(const Plan& plan, const PlanMemory& memory,
                                   DispatchMode mode) override {
    const Pool pool;
    if (mode == DispatchMode::kArgumentBuffers) {
      return std::make_unique<ArgumentBufferEncoder>(device_, pipelines_, queue_, plan, memory);
    }
    return std::make_unique<IcbEncoder>(device_, pipelines_, queue_, plan, memory);
  }

  void inject_fault(const std::string& message) override { queue_.inject_fault(message); }
  void synchronize() override { queue_.drain(); }
  void save() override { pipelines_.library().save(); }

 private:
  const Ref<id<MTLDevice>> device_;
  PsoCache pipelines_;
  const DeviceInfo info_;
  Queue queue_;
};

}  // namespace
}  // namespace metal

std::shared_ptr<Device> open_metal(std::string* why) {
  const metal::Pool pool;
  metal::Ref<id<MTLDevice>> device(MTLCreateSystemDefaultDevice());
  if (!device.get()) {
    *why = "this machine has no Metal device";
    return nullptr;
  }
  const char* family = metal::family(device);
  if (!family || !device.get().hasUnifiedMemory) {
    *why = concat("'", device.get().name.UTF8String, "' is not an Apple silicon GPU");
    return nullptr;
  }
  return std::make_shared<metal::MetalDevice>(std::move(device), family);
}

}  // namespace butter
