// What the software Metal needs of Foundation and the product does not.
#pragma once

#import <Foundation/Foundation.h>

@interface NSError (SoftMetal)
+ (NSError*)sm_errorWithDomain:(NSErrorDomain)domain
                          code:(NSInteger)code
                       message:(const char*)message;
@end

@interface NSString (SoftMetal)
- (instancetype)initWithUTF8String:(const char*)string;
@end

@interface NSURL (SoftMetal)
- (NSString*)path;
@end
