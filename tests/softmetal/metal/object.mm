#import "objects.h"

#include "registry.h"

NSError* sm_error(NSErrorDomain domain, NSInteger code, const std::string& message) {
  return [NSError sm_errorWithDomain:domain code:code message:message.c_str()];
}

@implementation SMObject
@synthesize label = _label;

- (instancetype)init {
  self = [super init];
  _serial = sm::Registry::add();
  return self;
}
- (id<MTLDevice>)device {
  return sm_device();
}
- (void)dealloc {
  sm::Registry::remove(_serial);
}
@end
