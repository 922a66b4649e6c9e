// Devices by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hal/device.h"

namespace butter {

/// "metal", "cuda", "cuda:N", "cpu"; "auto" takes the first of these that the machine has.
/// `threads` and `affinity` are for the CPU, and refused for any other: see open_cpu. Throws
/// DeviceError, ConfigError and Unsupported.
std::shared_ptr<Device> open_device(const std::string& name, int threads,
                                    const std::vector<int>& affinity);

/// Device::save() of all that are open, for a process that ends without closing them.
void save_devices();

}  // namespace butter
