// Devices by name.
#pragma once

#include <memory>
#include <string>

#include "hal/device.h"

namespace butter {

/// "metal", "cuda", "cuda:N", "cpu"; "auto" takes the first of these that the machine has.
/// `threads` is for the CPU, and refused for any other: 0 means its physical cores. Throws
/// DeviceError and ConfigError.
std::shared_ptr<Device> open_device(const std::string& name, int threads);

/// Device::save() of all that are open, for a process that ends without closing them.
void save_devices();

}  // namespace butter
