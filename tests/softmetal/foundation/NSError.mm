#import "own.h"

@implementation NSError {
  NSErrorDomain _domain;
  NSInteger _code;
  NSString* _message;
}
+ (NSError*)sm_errorWithDomain:(NSErrorDomain)domain
                          code:(NSInteger)code
                       message:(const char*)message {
  NSError* error = [[[NSError alloc] init] autorelease];
  error->_domain = [domain copy];
  error->_code = code;
  error->_message = [[NSString alloc] initWithUTF8String:message];
  return error;
}
- (NSInteger)code {
  return _code;
}
- (NSErrorDomain)domain {
  return _domain;
}
- (NSString*)localizedDescription {
  return _message;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  return [self retain];
}
- (void)dealloc {
  [_domain release];
  [_message release];
  [super dealloc];
}
@end
