// Linked into every image that holds Objective-C code: hands its sections to the runtime.
#define SECTION(name)                                                       \
  extern char __start_##name[] __attribute__((weak, visibility("hidden"))); \
  extern char __stop_##name[] __attribute__((weak, visibility("hidden")));

SECTION(objc_selrefs)
SECTION(objc_classlist)
SECTION(objc_catlist)

void objcrt_load_image(void* const* sections);

// Before the constructors of the image's own C++ objects.
__attribute__((constructor(101))) static void load_image(void) {
  void* sections[] = {__start_objc_selrefs,  __stop_objc_selrefs,  __start_objc_classlist,
                      __stop_objc_classlist, __start_objc_catlist, __stop_objc_catlist};
  objcrt_load_image(sections);
}
