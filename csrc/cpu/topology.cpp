#include "cpu/topology.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <sched.h>
#endif

namespace butter::cpu {

#if defined(__APPLE__)

namespace {

int sysctl_int(const char* name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

}  // namespace

int usable_threads() { return std::max(1, sysctl_int("hw.logicalcpu")); }

int usable_cores() {
  const int performance = sysctl_int("hw.perflevel0.physicalcpu");
  return std::max(1, performance > 0 ? performance : sysctl_int("hw.physicalcpu"));
}

std::string processor_name() {
  char name[128] = "";
  size_t size = sizeof name - 1;
  return sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0) == 0 ? name : "CPU";
}

#else

namespace {

/// Cores' worth of time per period that a cgroup grants; 0 without a quota.
int cgroup_quota() {
  double quota = 0, period = 0;
  std::string first;
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  if (v2 >> first >> period && first != "max") {
    quota = std::strtod(first.c_str(), nullptr);
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? std::max(1, int(std::ceil(quota / period))) : 0;
}

int within_quota(int count) {
  const int quota = cgroup_quota();
  return std::max(1, quota > 0 ? std::min(count, quota) : count);
}

int topology_number(int cpu, const char* file) {
  int value = -1;
  std::ifstream("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + file) >> value;
  return value;
}

/// Hardware threads this process may run on; empty if the system does not say.
std::set<int> affinity() {
  std::set<int> cpus;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.insert(cpu);
  }
  return cpus;
}

}  // namespace

int usable_threads() {
  const std::set<int> cpus = affinity();
  const int count = cpus.empty() ? int(std::thread::hardware_concurrency()) : int(cpus.size());
  return within_quota(count);
}

int usable_cores() {
  std::set<std::pair<int, int> > cores;
  for (const int cpu : affinity()) {
    const int core = topology_number(cpu, "core_id");
    if (core < 0) return usable_threads();
    cores.emplace(topology_number(cpu, "physical_package_id"), core);
  }
  return cores.empty() ? usable_threads() : within_quota(int(cores.size()));
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

#endif

size_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? size_t(pages) * size_t(page) : 0;
}

}  // namespace butter::cpu
