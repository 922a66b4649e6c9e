// What <objc/objc.h> and <objc/runtime.h> declare on a Mac, as far as it is used here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct objc_class* Class;
struct objc_object {
  Class isa;
};
typedef struct objc_object* id;
typedef struct objc_selector* SEL;
typedef void (*IMP)(void);
typedef bool BOOL;

#define YES __objc_yes
#define NO __objc_no
#ifdef __cplusplus
#define nil nullptr
#define Nil nullptr
#else
#define nil ((id)0)
#define Nil ((Class)0)
#endif

SEL sel_registerName(const char* name);
const char* sel_getName(SEL selector);
Class objc_getClass(const char* name);
const char* class_getName(Class cls);
Class class_getSuperclass(Class cls);
Class object_getClass(id object);
bool class_respondsToSelector(Class cls, SEL selector);
IMP class_getMethodImplementation(Class cls, SEL selector);
void objc_msgSend(void);

#ifdef __cplusplus
}
#endif
