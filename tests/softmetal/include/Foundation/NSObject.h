#pragma once

#include <objc/objc.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef double NSTimeInterval;
typedef double CFTimeInterval;
typedef struct _NSZone NSZone;

typedef struct _NSRange {
  NSUInteger location, length;
} NSRange;

static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  NSRange range = {location, length};
  return range;
}

static inline NSUInteger NSMaxRange(NSRange range) { return range.location + range.length; }

#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
#define NS_RETURNS_INNER_POINTER __attribute__((objc_returns_inner_pointer))
#define NS_ENUM(type, name) \
  enum name : type name;    \
  enum name : type
#ifdef __cplusplus
// As in Apple's headers: in C++ a set of options is a plain integer.
#define NS_OPTIONS(type, name) \
  type name;                   \
  enum : type
#else
#define NS_OPTIONS(type, name) NS_ENUM(type, name)
#endif
#if __has_include(<os/availability.h>)
#include <os/availability.h>
#elif defined(__APPLE__)  // without the system's headers
#define API_AVAILABLE(os) __attribute__((availability(os)))
#define macos(version) macos, introduced = version
#else
#define API_AVAILABLE(os)
#endif

@class NSString, Protocol;

@protocol NSObject
- (BOOL)isEqual:(id)object;
@property(readonly) NSUInteger hash;
@property(readonly) Class superclass;
- (Class)class;
- (instancetype)self;
- (BOOL)isKindOfClass:(Class)aClass;
- (BOOL)conformsToProtocol:(Protocol*)aProtocol;
- (BOOL)respondsToSelector:(SEL)aSelector;
#if !__has_feature(objc_arc)
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
- (NSUInteger)retainCount;
#endif
@property(readonly, copy) NSString* description;
@end

@protocol NSCopying
- (id)copyWithZone:(NSZone*)zone;
@end

__attribute__((objc_root_class))
@interface NSObject<NSObject> {
  Class isa;
}
+ (void)load;
+ (void)initialize;
- (instancetype)init;
+ (instancetype)new;
+ (instancetype)alloc;
- (void)dealloc;
- (id)copy;
+ (Class)class;
@end
