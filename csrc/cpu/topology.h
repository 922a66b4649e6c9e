// How many processor cores this process may use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace butter::cpu {

/// Numbers of the hardware threads in the affinity mask; empty where threads cannot be bound.
std::vector<int> usable_cpus();

/// Hardware threads in the affinity mask, within the quota of the process's control groups.
int usable_threads();

/// Physical cores among them; performance cores only where the system tells.
int usable_cores();

/// Cores' worth of time per period that the control groups grant, rounded up; 0 without a quota.
/// The system's files lie under `root`.
int cgroup_quota(const std::string& root = "");

/// As the maker calls it: "AMD EPYC 9B14".
std::string processor_name();

size_t physical_memory();

}  // namespace butter::cpu
