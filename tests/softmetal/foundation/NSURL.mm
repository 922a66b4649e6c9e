#import "own.h"

@implementation NSURL {
  NSString* _path;
}
+ (NSURL*)fileURLWithPath:(NSString*)path {
  NSURL* url = [[[NSURL alloc] init] autorelease];
  url->_path = [path copy];
  return url;
}
- (NSString*)path {
  return _path;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  return [self retain];
}
- (void)dealloc {
  [_path release];
  [super dealloc];
}
@end
