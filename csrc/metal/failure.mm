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

}  // namespace butter::metal
