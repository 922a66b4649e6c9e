// What encoders record and the GPU's thread runs.
#pragma once

#import "objects.h"

#include <set>

namespace sm {

/// A buffer or bytes at an index. Not retained: whoever records decides that.
struct Binding {
  __unsafe_unretained SMBuffer* buffer = nil;
  uint64_t serial = 0;
  size_t offset = 0;
  std::string bytes;
};

struct Dispatch {
  __unsafe_unretained SMPipeline* pipeline = nil;
  uint64_t pipeline_serial = 0;
  std::map<uint32_t, Binding> bindings;
  std::map<uint32_t, size_t> threadgroup_bytes;
  MTLSize grid{}, group{};
  bool counts_threads = false;   // grid is in threads, not in groups
  bool waits_for_all = false;    // a barrier stands before it
  std::set<uint64_t> waits_for;  // barriers on these buffers stand before it
  Binding indirect;              // where the grid comes from, if not from `grid`
};

/// Buffers that the GPU may touch, with MTLResourceUsage bits and kSeen.
using Residency = std::map<uint64_t, NSUInteger>;
/// Metal knows that the pass uses the buffer: it was bound or named by useResource.
constexpr NSUInteger kSeen = 1 << 8;

/// Bytes of a buffer that one dispatch has touched.
struct Access {
  uint64_t serial;
  uintptr_t begin, end;
  bool writes, is_tracked;
  std::string name;
};

/// Checks and runs one dispatch; returns what it touched.
std::vector<Access> execute(const Dispatch& dispatch, const Residency& residency);

/// Dispatches since the last full barrier, in order: fatal if two conflict.
class Hazards {
 public:
  void barrier() { seen_.clear(); }
  void add(const Dispatch& dispatch, std::vector<Access> accesses);

 private:
  struct Seen {
    std::string kernel;
    std::vector<Access> accesses;
    std::set<uint64_t> settled;  // buffers that a barrier has dealt with since
  };
  std::vector<Seen> seen_;
};

bool overlap(const Access& a, const Access& b);

}  // namespace sm
