#pragma once

#import <Foundation/NSObject.h>

typedef NSUInteger NSStringEncoding;
enum { NSUTF8StringEncoding = 4 };

@interface NSString : NSObject <NSCopying>
@property(readonly) NSUInteger length;
@property(readonly) const char* UTF8String;
+ (instancetype)stringWithUTF8String:(const char*)string;
- (BOOL)isEqualToString:(NSString*)string;
- (NSUInteger)lengthOfBytesUsingEncoding:(NSStringEncoding)encoding;
@end
