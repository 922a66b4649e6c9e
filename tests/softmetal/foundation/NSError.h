// How the software Metal makes errors.
#pragma once

#import <Foundation/Foundation.h>

@interface NSError (SoftMetal)
+ (NSError*)sm_errorWithDomain:(NSErrorDomain)domain
                          code:(NSInteger)code
                       message:(const char*)message;
@end
