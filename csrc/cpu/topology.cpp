#include "cpu/topology.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <sched.h>
#endif

#include "core/error.h"
#include "io/whole_file.h"

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

/// The number that a file of the system holds.
std::optional<int> number(const std::string& path) {
  const std::optional<std::string> text = read_whole_file(path);
  int value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// Cores' worth of time per period that a cgroup grants; 0 without a quota.
int cgroup_quota() {
  double quota = 0, period = 0;
  // Version 2 has both in one line, or the word max.
  if (const auto v2 = read_whole_file("/sys/fs/cgroup/cpu.max"); v2 && !v2->starts_with("max")) {
    char* rest = nullptr;
    quota = std::strtod(v2->c_str(), &rest);
    period = std::strtod(rest, nullptr);
  } else {
    quota = number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").value_or(0);
    period = number("/sys/fs/cgroup/cpu/cpu.cfs_period_us").value_or(0);
  }
  return quota > 0 && period > 0 ? std::max(1, int(std::ceil(quota / period))) : 0;
}

int within_quota(int count) {
  const int quota = cgroup_quota();
  return std::max(1, quota > 0 ? std::min(count, quota) : count);
}

int topology_number(int cpu, const char* file) {
  return number(concat("/sys/devices/system/cpu/cpu", cpu, "/topology/", file)).value_or(-1);
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
  const std::string text = read_whole_file("/proc/cpuinfo").value_or("");
  const size_t key = text.find("model name");
  const size_t begin = key == std::string::npos ? key : text.find(": ", key);
  if (begin == std::string::npos) return "CPU";
  return text.substr(begin + 2, text.find('\n', begin) - begin - 2);
}

#endif

size_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? size_t(pages) * size_t(page) : 0;
}

}  // namespace butter::cpu
