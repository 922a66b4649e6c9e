// NSObject on the runtime of objcrt/. Manual retain and release, as in all of this folder.
#import <Foundation/Foundation.h>

#include "../objcrt/abi.h"

extern "C" BOOL objc_opt_isKindOfClass(id object, Class cls);

@implementation NSObject
+ (void)load {
}
+ (void)initialize {
}
+ (instancetype)alloc {
  return class_createInstance((Class)self, 0);
}
+ (instancetype)new {
  return [[self alloc] init];
}
+ (Class)class {
  return (Class)self;
}
+ (id)retain {
  return (id)self;
}
+ (oneway void)release {
}
+ (id)autorelease {
  return (id)self;
}

- (instancetype)init {
  return self;
}
- (instancetype)self {
  return self;
}
- (Class)class {
  return object_getClass(self);
}
- (Class)superclass {
  return class_getSuperclass(object_getClass(self));
}
- (void)dealloc {
  objcrt_dealloc(self);
}
- (id)copy {
  return [(id<NSCopying>)self copyWithZone:nullptr];
}
- (instancetype)retain {
  return objcrt_retain(self);
}
- (oneway void)release {
  objcrt_release(self);
}
- (instancetype)autorelease {
  return objcrt_autorelease(self);
}
- (NSUInteger)retainCount {
  return objcrt_retain_count(self);
}

- (BOOL)isEqual:(id)object {
  return self == object;
}
- (NSUInteger)hash {
  return reinterpret_cast<NSUInteger>(self);
}
- (BOOL)isKindOfClass:(Class)aClass {
  return objc_opt_isKindOfClass(self, aClass);
}
- (BOOL)conformsToProtocol:(Protocol*)aProtocol {
  return objcrt_conforms(object_getClass(self), ((objcrt::Protocol*)aProtocol)->name);
}
- (BOOL)respondsToSelector:(SEL)aSelector {
  return class_respondsToSelector(object_getClass(self), aSelector);
}
- (NSString*)description {
  return [NSString stringWithUTF8String:class_getName(object_getClass(self))];
}
@end
