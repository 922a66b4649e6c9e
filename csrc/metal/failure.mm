#include "metal/failure.h"

#import <Metal/Metal.h>

namespace butter::metal {

std::string reason(NSError* error) {
  const char* text = error.localizedDescription.UTF8String;
  return text ? text : "Metal gave no reason";
}

Code command_code(NSError* error) {
  return error.code == MTLCommandBufferErrorOutOfMemory ? Code::kMemory : Code::kDevice;
}

Error forked() {
  return Error(Code::kDevice, "metal",
               "this device was opened before fork() and cannot be used in the child. Open a new "
               "device there, or start the child with the 'spawn' method.");
}

}  // namespace butter::metal
