#include "cpu/topology.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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

std::vector<int> usable_cpus() { return {}; }

int cgroup_quota(const std::string&) { return 0; }

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

/// What one control group grants: version 2 has quota and period in one line, or the word max.
double quota_of(const std::string& folder) {
  double quota = 0, period = 0;
  if (const auto v2 = read_whole_file(folder + "/cpu.max")) {
    char* rest = nullptr;
    quota = std::strtod(v2->c_str(), &rest);
    period = std::strtod(rest, nullptr);
  } else {
    quota = number(folder + "/cpu.cfs_quota_us").value_or(0);
    period = number(folder + "/cpu.cfs_period_us").value_or(0);
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

/// The lowest quota of a group and those it lies in.
double quota_from(const std::string& mount, std::string_view group) {
  double least = 0;
  while (true) {
    while (group.ends_with('/')) group.remove_suffix(1);
    const double quota = quota_of(concat(mount, group));
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (group.empty()) return least;
    group = group.substr(0, group.rfind('/') == std::string_view::npos ? 0 : group.rfind('/'));
  }
}

int within_quota(int count) {
  const int quota = cgroup_quota();
  return std::max(1, quota > 0 ? std::min(count, quota) : count);
}

int topology_number(int cpu, const char* file) {
  return number(concat("/sys/devices/system/cpu/cpu", cpu, "/topology/", file)).value_or(-1);
}

}  // namespace

int cgroup_quota(const std::string& root) {
  const std::string groups = read_whole_file(root + "/proc/self/cgroup").value_or("0::/");
  double least = 0;
  // Lines are ID:CONTROLLERS:GROUP; version 2 names no controllers.
  for (size_t at = 0; at < groups.size();) {
    const size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string_view line = std::string_view(groups).substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string controllers = concat(',', line.substr(first + 1, second - first - 1), ',');
    const bool is_v2 = controllers == ",,";
    if (!is_v2 && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string mount = concat(root, is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    const double quota = quota_from(mount, line.substr(second + 1));
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  }
  return int(std::ceil(least));
}

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

int usable_threads() {
  const std::vector<int> cpus = usable_cpus();
  const int count = cpus.empty() ? int(std::thread::hardware_concurrency()) : int(cpus.size());
  return within_quota(count);
}

int usable_cores() {
  std::set<std::pair<int, int> > cores;
  for (const int cpu : usable_cpus()) {
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
