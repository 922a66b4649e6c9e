#import <Foundation/Foundation.h>

#include <sys/sysinfo.h>

#include <cstdlib>

// SOFTMETAL_MACOS=14 imitates a system without residency sets.
NSInteger softmetal_macos_version() {
  const char* text = std::getenv("SOFTMETAL_MACOS");
  return text ? std::atoi(text) : 15;
}

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  return [[[NSProcessInfo alloc] init] autorelease];
}
- (NSString*)operatingSystemVersionString {
  return softmetal_macos_version() < 15 ? @"Version 14.0 (software Metal)"
                                        : @"Version 15.0 (software Metal)";
}
- (unsigned long long)physicalMemory {
  struct sysinfo info;
  return sysinfo(&info) == 0 ? info.totalram * info.mem_unit : 0;
}
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version {
  return version.majorVersion <= softmetal_macos_version();
}
@end
