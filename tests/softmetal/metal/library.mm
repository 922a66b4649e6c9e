// Libraries: ELF files made by msl/compile.py, named like Apple's.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#import "functions.h"

NSErrorDomain const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";

namespace {

constexpr char kMagic[] = "softmetl";

uint32_t crc32(const std::string& bytes, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= uint8_t(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The last 16 bytes: magic, CRC of the rest, zero. The dynamic linker would crash on a cut file.
bool is_whole(const std::string& path) {
  const std::string bytes = read(path);
  if (bytes.size() < 16 || bytes.compare(bytes.size() - 16, 8, kMagic) != 0) return false;
  uint32_t crc;
  std::memcpy(&crc, bytes.data() + bytes.size() - 8, sizeof crc);
  return crc == crc32(bytes, bytes.size() - 16);
}

std::string own_folder() {
  Dl_info image;
  if (!dladdr(reinterpret_cast<const void*>(&own_folder), &image)) return ".";
  const std::string path = image.dli_fname;
  return path.substr(0, path.rfind('/'));
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

/// Runs msl/compile.py; the path of the library, or empty and what the compiler said.
std::string compile(const char* source, bool fast_math, std::string* complaint) {
  const char* chosen = std::getenv("SOFTMETAL_CACHE");
  const std::string cache = chosen ? chosen : own_folder() + "/softmetal-cache";
  mkdir(cache.c_str(), 0777);
  std::string file = cache + "/source-XXXXXX";
  const int descriptor = mkstemp(file.data());
  if (descriptor < 0) {
    *complaint = "cannot write to " + cache;
    return "";
  }
  close(descriptor);
  std::ofstream(file) << source;
  // What a sanitizer preloads is for this process, not for the compiler.
  std::string command = "LD_PRELOAD= " SOFTMETAL_COMPILE " --cache " + quoted(cache) +
                        " --runner " + quoted(own_folder()) +
                        (fast_math ? " --flag=-ffast-math " : " ") + quoted(file) + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c; pipe && (c = std::fgetc(pipe)) != EOF;) output += char(c);
  const int status = pipe ? pclose(pipe) : -1;
  unlink(file.c_str());
  if (status == 0) return output.substr(0, output.find('\n'));
  *complaint = output;
  return "";
}

}  // namespace

@implementation MTLCompileOptions
@synthesize fastMathEnabled = _fastMathEnabled, mathMode = _mathMode,
            languageVersion = _languageVersion;
- (instancetype)init {
  _fastMathEnabled = YES;
  _mathMode = MTLMathModeFast;
  return self;
}
- (void)setMathMode:(MTLMathMode)mathMode {
  _mathMode = mathMode;
  _fastMathEnabled = mathMode == MTLMathModeFast;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLCompileOptions* copy = [MTLCompileOptions new];
  copy->_fastMathEnabled = _fastMathEnabled;
  copy->_mathMode = _mathMode;
  copy->_languageVersion = _languageVersion;
  return copy;
}
@end

@implementation SMLibrary
+ (SMLibrary*)newAtPath:(const std::string&)path error:(NSError* __autoreleasing*)error {
  const auto refuse = [&](NSInteger code, const std::string& message) -> SMLibrary* {
    if (error) *error = sm_error(MTLLibraryErrorDomain, code, message);
    return nil;
  };
  if (access(path.c_str(), R_OK) != 0) {
    return refuse(MTLLibraryErrorFileNotFound, "library not found: " + path);
  }
  if (!is_whole(path)) return refuse(MTLLibraryErrorInternal, "invalid library file: " + path);
  void* image = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!image) return refuse(MTLLibraryErrorInternal, dlerror());
  auto units = reinterpret_cast<MslLibrary (*)()>(dlsym(image, "msl_library"));
  if (!units) return refuse(MTLLibraryErrorInternal, "invalid library file: " + path);
  SMLibrary* library = [SMLibrary new];
  library->_units = units();
  return library;
}

+ (SMLibrary*)newFromSource:(const char*)source
                   fastMath:(BOOL)fastMath
                      error:(NSError* __autoreleasing*)error {
  std::string complaint;
  const std::string path = compile(source, fastMath, &complaint);
  if (!path.empty()) return [SMLibrary newAtPath:path error:error];
  if (error) *error = sm_error(MTLLibraryErrorDomain, MTLLibraryErrorCompileFailure, complaint);
  return nil;
}

- (NSArray<NSString*>*)functionNames {
  std::vector<NSString*> names;
  for (auto unit = _units.begin; unit != _units.end; ++unit) {
    for (uint32_t i = 0; i < (*unit)->n_kernels; ++i) {
      names.push_back([NSString stringWithUTF8String:(*unit)->kernels[i].name]);
    }
  }
  return [NSArray arrayWithObjects:names.data() count:names.size()];
}

- (SMFunction*)newFunctionNamed:(NSString*)name {
  for (auto unit = _units.begin; unit != _units.end; ++unit) {
    for (uint32_t i = 0; i < (*unit)->n_kernels; ++i) {
      if (std::strcmp((*unit)->kernels[i].name, name.UTF8String) != 0) continue;
      SMFunction* function = [SMFunction new];
      function->_library = self;
      function->_unit = *unit;
      function->_kernel = &(*unit)->kernels[i];
      return function;
    }
  }
  return nil;
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)functionName {
  CALL("library");
  return [self newFunctionNamed:functionName];
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)constantValues
                                 error:(NSError* __autoreleasing*)error {
  CALL("library");
  SMFunction* function = [self newFunctionNamed:name];
  std::string problem;
  if (!function) {
    problem = std::string("function '") + name.UTF8String + "' was not found in the library";
  } else {
    problem = [function specialize:constantValues];
  }
  if (problem.empty()) return function;
  const auto code = function ? MTLLibraryErrorCompileFailure : MTLLibraryErrorFunctionNotFound;
  if (error) *error = sm_error(MTLLibraryErrorDomain, code, problem);
  return nil;
}
@end
