#include "metal/residency.h"

namespace butter::metal {

Residency::Residency(id<MTLDevice> device, const std::set<id<MTLBuffer>>& read,
                     const std::set<id<MTLBuffer>>& written)
    : read_(read.begin(), read.end()), written_(written.begin(), written.end()) {
  if (@available(macOS 15.0, *)) {
    if (![device respondsToSelector:@selector(newResidencySetWithDescriptor:error:)]) return;
    Ref<MTLResidencySetDescriptor*> descriptor([[MTLResidencySetDescriptor alloc] init]);
    descriptor.get().initialCapacity = read_.size();
    Ref<id<MTLResidencySet>> set([device newResidencySetWithDescriptor:descriptor error:nullptr]);
    for (id<MTLResource> buffer : read_) [set addAllocation:buffer];
    [set commit];
    [set requestResidency];
    set_ = Ref<id>::keep(set);  // nil if there was no memory for it
  }
}

void Residency::use(id<MTLCommandBuffer> commands, id<MTLComputeCommandEncoder> encoder) const {
  if (set_.get()) {
    if (@available(macOS 15.0, *)) [commands useResidencySet:set_];
  } else if (!read_.empty()) {
    [encoder useResources:read_.data() count:read_.size() usage:MTLResourceUsageRead];
  }
  if (written_.empty()) return;
  const MTLResourceUsage usage = MTLResourceUsage(MTLResourceUsageRead | MTLResourceUsageWrite);
  [encoder useResources:written_.data() count:written_.size() usage:usage];
}

}  // namespace butter::metal
