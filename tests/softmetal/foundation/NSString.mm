// Strings: UTF-8 inside; literals are objects that clang lays out.
#import "own.h"

#include <cstring>
#include <functional>
#include <string>

// The class of @"...": clang writes isa, flags, bytes, length.
@interface NSConstantString : NSString {
  int _flags;
  const char* _bytes;
  long _length;
}
@end

@interface SMString : NSString {
 @public
  std::string _text;
}
@end

static NSString* make_string(std::string text) {
  SMString* string = [SMString alloc];
  string->_text = std::move(text);
  return string;
}

@implementation NSString
+ (instancetype)stringWithUTF8String:(const char*)string {
  return [make_string(string) autorelease];
}
- (instancetype)initWithUTF8String:(const char*)string {
  [self release];
  return make_string(string);
}
- (const char*)UTF8String {
  return "";
}
- (NSUInteger)length {  // right for ASCII only; UTF-16 units otherwise
  return std::strlen(self.UTF8String);
}
- (NSUInteger)lengthOfBytesUsingEncoding:(NSStringEncoding)encoding {
  return encoding == NSUTF8StringEncoding ? std::strlen(self.UTF8String) : 0;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  return [self retain];
}
- (BOOL)isEqualToString:(NSString*)string {
  return string && !std::strcmp(self.UTF8String, string.UTF8String);
}
- (BOOL)isEqual:(id)object {
  return [object isKindOfClass:[NSString class]] && [self isEqualToString:object];
}
- (NSUInteger)hash {
  return std::hash<std::string>()(self.UTF8String);
}
- (NSString*)description {
  return self;
}
@end

@implementation SMString
- (const char*)UTF8String {
  return _text.c_str();
}
@end

@implementation NSConstantString
- (const char*)UTF8String {
  return _bytes;
}
- (instancetype)retain {
  return self;
}
- (oneway void)release {
}
- (instancetype)autorelease {
  return self;
}
@end

asm(R"(
.globl __CFConstantStringClassReference
.set __CFConstantStringClassReference, OBJC_CLASS_$_NSConstantString
)");
