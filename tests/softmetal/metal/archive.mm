// Binary archives: a file with the names of the pipelines that it holds.
#include <fstream>
#include <set>

#import "archive.h"

namespace {

constexpr char kMagic[] = "softmetal archive";

}  // namespace

@implementation MTLBinaryArchiveDescriptor
@synthesize url = _url;
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLBinaryArchiveDescriptor* copy = [MTLBinaryArchiveDescriptor new];
  copy.url = _url;
  return copy;
}
@end

@implementation SMBinaryArchive {
  std::set<std::string> _names;
}
- (bool)load:(const char*)path {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != kMagic) return false;
  while (std::getline(file, line)) _names.insert(line);
  return true;
}
- (bool)holds:(id<MTLFunction>)function {
  return _names.count(function.name.UTF8String) != 0;
}
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                            error:(NSError* __autoreleasing*)error {
  CALL("archive");
  (void)error;
  CHECK(descriptor.computeFunction, "addComputePipelineFunctions: no function");
  _names.insert(descriptor.computeFunction.name.UTF8String);
  return YES;
}
- (BOOL)serializeToURL:(NSURL*)url error:(NSError* __autoreleasing*)error {
  CALL("archive");
  std::ofstream file(url.path.UTF8String);
  file << kMagic << '\n';
  for (const std::string& name : _names) file << name << '\n';
  if (file.flush()) return YES;
  if (error) {
    *error = sm_error(MTLLibraryErrorDomain, MTLLibraryErrorInternal, "cannot write the archive");
  }
  return NO;
}
@end
