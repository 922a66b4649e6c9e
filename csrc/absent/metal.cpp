#include "hal/device.h"

namespace butter {

std::shared_ptr<Device> open_metal(std::string* why) {
  *why = "this build has no Metal back end; it needs macOS on Apple silicon";
  return nullptr;
}

}  // namespace butter
