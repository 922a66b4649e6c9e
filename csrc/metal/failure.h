// Metal's errors as ours.
#pragma once

#import <Foundation/Foundation.h>

#include <string>

#include "core/error.h"

namespace butter::metal {

/// What Metal says; never empty.
std::string reason(NSError* error);

/// OutOfMemory for a command buffer that ran out of memory, else DeviceError.
Code command_code(NSError* error);

/// For the child of a fork, where the queue's threads do not run.
Error forked();

inline NSString* ns(const std::string& text) {
  return [NSString stringWithUTF8String:text.c_str()];
}

}  // namespace butter::metal
