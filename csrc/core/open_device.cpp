#include "core/open_device.h"

#include <charconv>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"

namespace butter {
namespace {

constexpr int kMaxOrdinal = 1023;

int cuda_ordinal(const std::string& name) {
  if (name == "cuda") return 0;
  int ordinal = -1;
  const char *first = name.data() + sizeof "cuda:" - 1, *last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, ordinal);
  if (error == std::errc() && end == last && ordinal >= 0 && ordinal <= kMaxOrdinal) return ordinal;
  throw Error(Code::kConfig, "device",
              concat("malformed ordinal: got '", name, "', need cuda:0 .. cuda:", kMaxOrdinal));
}

std::shared_ptr<Device> required(std::shared_ptr<Device> device, const std::string& name,
                                 const std::string& why) {
  if (device) return device;
  throw Error(Code::kDevice, "device",
              concat("'", name, "' is not available: ", why, ". Use 'cpu' or 'auto'."));
}

struct ForCpu {
  int threads;
  const std::vector<int>& affinity;
};

void refuse(const ForCpu& options, const std::string& name) {
  if (options.threads == 0 && options.affinity.empty()) return;
  const bool is_threads = options.threads != 0;
  const int got = is_threads ? options.threads : options.affinity.front();
  const char* option = is_threads ? "threads" : "affinity";
  throw Error(Code::kConfig, "device",
              concat(option, " applies to the CPU only: got ", got, " for ", name,
                     ". Use 'cpu', or leave ", option, " out."));
}

std::shared_ptr<Device> open_by_name(const std::string& name, const ForCpu& options) {
  if (name == "cpu") return open_cpu(options.threads, options.affinity);
  std::string why;
  if (name == "auto") {
    auto device = open_metal(&why);
    if (!device) device = open_cuda(0, &why);
    if (!device) return open_cpu(options.threads, options.affinity);
    refuse(options, concat("'auto', which is '", device->info().kind, "' here"));
    return device;
  }
  const bool is_cuda = name == "cuda" || name.starts_with("cuda:");
  if (name != "metal" && !is_cuda) {
    throw Error(Code::kConfig, "device",
                concat("unknown device: got '", name, "', need auto, cpu, metal, cuda or cuda:N"));
  }
  refuse(options, concat("'", name, "'"));
  if (name == "metal") {
    auto device = open_metal(&why);
    return required(std::move(device), name, why);
  }
  auto device = open_cuda(cuda_ordinal(name), &why);
  return required(std::move(device), name, why);
}

std::mutex opened_mutex;
std::vector<std::weak_ptr<Device>> opened;

}  // namespace

std::shared_ptr<Device> open_device(const std::string& name, int threads,
                                    const std::vector<int>& affinity) {
  std::shared_ptr<Device> device = open_by_name(name, {threads, affinity});
  const std::lock_guard lock(opened_mutex);
  std::erase_if(opened, [](const std::weak_ptr<Device>& entry) { return entry.expired(); });
  opened.push_back(device);
  return device;
}

void save_devices() {
  std::vector<std::weak_ptr<Device>> devices;
  {
    const std::lock_guard lock(opened_mutex);
    devices = opened;
  }
  for (const auto& entry : devices) {
    if (const auto device = entry.lock()) device->save();
  }
}

}  // namespace butter
