// One dispatch: checks of its bindings, then the runner.
#include <algorithm>
#include <cstring>
#include <mutex>

#import "command.h"
#include "registry.h"

namespace sm {
namespace {

/// A span of a launch and the buffer it belongs to.
struct Reach {
  MslSpan span;
  uint64_t serial = 0;
  bool is_tracked = true;
  std::string name;
};

MslUint3 uint3(MTLSize s) { return {{uint32_t(s.width), uint32_t(s.height), uint32_t(s.depth)}}; }

size_t volume(MTLSize s) { return s.width * s.height * s.depth; }

class Launcher {
 public:
  Launcher(const Dispatch& dispatch, const Residency& residency)
      : dispatch_(dispatch), residency_(residency) {
    CHECK(dispatch.pipeline, "a dispatch without a pipeline");
    CHECK(Registry::is_alive(dispatch.pipeline_serial), "a pipeline was released before its use");
    kernel_ = dispatch.pipeline->_function->_kernel;
    launch_.kernel = kernel_;
  }

  std::vector<Access> run() {
    sizes();
    if (volume(grid_) == 0) return {};
    for (uint32_t i = 0; i < kernel_->n_buffers; ++i) bind(kernel_->buffers[i]);
    for (uint32_t i = 0; i < kernel_->n_members; ++i) {
      if (!is_array(kernel_->members[i].buffer)) follow(kernel_->members[i]);
    }
    for (uint32_t i = 0; i < kernel_->n_buffers; ++i) {
      if (kernel_->buffers[i].is_array) reach_residents();
    }
    threadgroup_memory();
    make_spans();
    const MslLibrary& library = dispatch_.pipeline->_function->_library->_units;
    launch_.image_begin = reinterpret_cast<uintptr_t>(library.image_begin);
    launch_.image_end = reinterpret_cast<uintptr_t>(library.image_end);
    {
      // Function constants are variables of the library.
      static auto* gpu = new std::mutex;
      const std::lock_guard guard(*gpu);
      set_constants();
      msl_run(launch_);
    }
    return touched();
  }

 private:
  const char* name() const { return kernel_->name; }

  void sizes() {
    grid_ = dispatch_.grid;
    if (const Binding& from = dispatch_.indirect; from.buffer) {
      CHECK(Registry::is_alive(from.serial), "%s: the buffer of its grid was released", name());
      uint32_t words[3];
      std::memcpy(words, from.buffer->_bytes + from.offset, sizeof words);
      grid_ = MTLSizeMake(words[0], words[1], words[2]);
    }
    const MTLSize group = dispatch_.group;
    if (volume(grid_) == 0) return;
    const SMPipeline* pipeline = dispatch_.pipeline;
    CHECK(volume(group) > 0 && volume(group) <= pipeline->_maxThreads,
          "%s: got %zu threads in a group, the pipeline takes 1 to %lu", name(), volume(group),
          (unsigned long)pipeline->_maxThreads);
    CHECK(!pipeline->_whole_simdgroups || volume(group) % kMslLanes == 0,
          "%s: %zu threads are no multiple of the simdgroup, as its pipeline promised", name(),
          volume(group));
    const MTLSize n = grid_;
    MTLSize groups = n, threads = n;
    if (dispatch_.counts_threads) {
      groups = MTLSizeMake((n.width + group.width - 1) / group.width,
                           (n.height + group.height - 1) / group.height,
                           (n.depth + group.depth - 1) / group.depth);
    } else {
      threads = MTLSizeMake(n.width * group.width, n.height * group.height, n.depth * group.depth);
    }
    launch_.dispatch.group_size = uint3(group);
    launch_.dispatch.groups = uint3(groups);
    launch_.dispatch.grid = uint3(threads);
  }

  void bind(const MslBuffer& parameter) {
    const uint32_t i = parameter.index;
    const std::string what = "buffer(" + std::to_string(i) + ") " + parameter.name;
    const auto found = dispatch_.bindings.find(i);
    CHECK(found != dispatch_.bindings.end(), "%s: nothing is bound at %s", name(), what.c_str());
    const Binding& b = found->second;
    char* begin;
    size_t room;
    if (b.buffer) {
      CHECK(Registry::is_alive(b.serial), "%s: %s was released before its use", name(),
            what.c_str());
      const auto resident = residency_.find(b.serial);
      CHECK(resident != residency_.end(), "%s: %s was not made resident", name(), what.c_str());
      CHECK(b.offset < b.buffer->_length, "%s: %s starts at byte %zu of %zu", name(), what.c_str(),
            b.offset, b.buffer->_length);
      begin = b.buffer->_bytes + b.offset;
      room = b.buffer->_length - b.offset;
      const bool may_write = parameter.writes && (resident->second & MTLResourceUsageWrite);
      reach(begin, room, may_write, b.buffer, resident->second, what);
    } else {
      CHECK(!parameter.writes, "%s: %s is written, but bound with setBytes", name(), what.c_str());
      begin = const_cast<char*>(b.bytes.data());
      room = b.bytes.size();
      reach(begin, room, false, nil, 0, what);
    }
    CHECK(room >= parameter.size, "%s: %s needs %u bytes, got %zu", name(), what.c_str(),
          parameter.size, room);
    CHECK(reinterpret_cast<uintptr_t>(begin) % parameter.alignment == 0,
          "%s: %s starts off its type's alignment of %u bytes", name(), what.c_str(),
          parameter.alignment);
    launch_.dispatch.buffers[i] = begin;
  }

  /// A pointer inside an argument buffer.
  void follow(const MslMember& member) {
    if (!member.is_pointer) return;
    const std::string what =
        "[[id(" + std::to_string(member.id) + ")]] " + std::string(member.name);
    uintptr_t address;
    std::memcpy(&address,
                static_cast<char*>(launch_.dispatch.buffers[member.buffer]) + member.offset,
                sizeof address);
    const std::vector<BufferRange> owners = Registry::at(address);
    CHECK(!owners.empty(), "%s: %s points to no buffer", name(), what.c_str());
    for (const BufferRange& owner : owners) {
      const auto resident = residency_.find(owner.serial);
      if (resident == residency_.end()) continue;
      const bool may_write = member.writes && (resident->second & MTLResourceUsageWrite);
      return reach(reinterpret_cast<char*>(address), owner.end - address, may_write,
                   (__bridge SMBuffer*)owner.buffer, resident->second, what);
    }
    fail("%s: the buffer behind %s was not made resident", name(), what.c_str());
  }

  bool is_array(uint32_t index) const {
    const MslBuffer* end = kernel_->buffers + kernel_->n_buffers;
    return std::any_of(kernel_->buffers, end,
                       [&](const MslBuffer& b) { return b.index == index && b.is_array; });
  }

  /// A kernel that picks its tables itself may follow their pointers to whatever is resident.
  void reach_residents() {
    for (const BufferRange& range : Registry::all()) {
      const auto resident = residency_.find(range.serial);
      if (resident == residency_.end()) continue;
      reach(reinterpret_cast<char*>(range.begin), range.end - range.begin,
            resident->second & MTLResourceUsageWrite, (__bridge SMBuffer*)range.buffer,
            resident->second, "a resident buffer");
    }
  }

  void reach(char* begin, size_t room, bool may_write, SMBuffer* buffer, NSUInteger usage,
             const std::string& what) {
    const auto at = reinterpret_cast<uintptr_t>(begin);
    const bool tracked =
        (usage & kSeen) && buffer.hazardTrackingMode == MTLHazardTrackingModeTracked;
    const uint64_t serial = buffer ? buffer->_serial : 0;
    reaches_.push_back({{at, at + room, may_write, nullptr}, serial, tracked, what});
  }

  /// Sorted and cut to pieces that do not overlap; equal starts are one.
  void make_spans() {
    std::sort(reaches_.begin(), reaches_.end(),
              [](const Reach& a, const Reach& b) { return a.span.begin < b.span.begin; });
    std::vector<Reach> pieces;
    for (Reach& r : reaches_) {
      if (!pieces.empty() && pieces.back().span.begin == r.span.begin) {
        Reach& same = pieces.back();
        same.span.may_write |= r.span.may_write;
        same.span.end = std::max(same.span.end, r.span.end);
        same.name += " and " + r.name;
        continue;
      }
      if (!pieces.empty()) pieces.back().span.end = std::min(pieces.back().span.end, r.span.begin);
      pieces.push_back(std::move(r));
    }
    reaches_ = std::move(pieces);
    for (Reach& r : reaches_) {
      r.span.name = r.name.c_str();
      launch_.spans.push_back(r.span);
    }
  }

  void threadgroup_memory() {
    size_t total = kernel_->shared_bytes;
    for (const auto& [index, bytes] : dispatch_.threadgroup_bytes) {
      CHECK(index < 8, "%s: threadgroup memory at index %u", name(), index);
      CHECK(bytes % 16 == 0, "%s: threadgroup memory must be a multiple of 16 bytes", name());
      if (launch_.threadgroup_bytes.size() <= index) launch_.threadgroup_bytes.resize(index + 1);
      launch_.threadgroup_bytes[index] = bytes;
      total += bytes;
    }
    CHECK(total <= kMslThreadgroupBytes, "%s: %zu bytes of threadgroup memory", name(), total);
  }

  void set_constants() {
    const SMFunction* function = dispatch_.pipeline->_function;
    const MslUnit& unit = *function->_unit;
    for (uint32_t i = 0; i < unit.n_constants; ++i) {
      const MslConstant& c = unit.constants[i];
      const auto value = function->_values.find(i);
      *c.is_defined = value != function->_values.end();
      if (*c.is_defined) {
        std::memcpy(c.value, value->second.data(), c.size);
      } else {
        std::memset(c.value, 0xA5, c.size);
      }
    }
  }

  std::vector<Access> touched() const {
    std::vector<Access> all;
    for (size_t i = 0; i < reaches_.size(); ++i) {
      const MslSpan& s = launch_.spans[i];
      const Reach& r = reaches_[i];
      if (!r.serial) continue;
      if (s.read_begin < s.read_end) {
        all.push_back({r.serial, s.read_begin, s.read_end, false, r.is_tracked, r.name});
      }
      if (s.write_begin < s.write_end) {
        all.push_back({r.serial, s.write_begin, s.write_end, true, r.is_tracked, r.name});
      }
    }
    return all;
  }

  const Dispatch& dispatch_;
  const Residency& residency_;
  const MslKernel* kernel_ = nullptr;
  MslLaunch launch_{};
  MTLSize grid_{};
  std::vector<Reach> reaches_;
};

}  // namespace

std::vector<Access> execute(const Dispatch& dispatch, const Residency& residency) {
  return Launcher(dispatch, residency).run();
}

}  // namespace sm
