#include "metal/archive.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "metal/failure.h"
#include "metal/pool.h"

namespace butter::metal {
namespace {

/// FNV-1a; the system refuses an archive that does not fit, so a collision only costs time.
uint64_t hash(std::string_view text, uint64_t h = 0xcbf29ce484222325) {
  for (const char c : text) h = (h ^ uint8_t(c)) * 0x100000001b3;
  return h;
}

bool is_folder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string cache_folder() {
  if (const char* chosen = std::getenv("BUTTER_METAL_CACHE")) return chosen;
  const char* home = std::getenv("HOME");
  const std::string caches = concat(home ? home : "", "/Library/Caches");
  return is_folder(caches) ? caches + "/butter" : "";
}

std::string archive_path(id<MTLDevice> device, std::string_view name, std::string_view text) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  mkdir(folder.c_str(), 0755);
  return concat(folder, "/", name, "-", hash(device.name.UTF8String, hash(text)), ".metalarchive");
}

}  // namespace

Archive::Archive(id<MTLDevice> device, std::string_view name, std::string_view text)
    : device_(Ref<id<MTLDevice>>::keep(device)), path_(archive_path(device, name, text)) {
  if (path_.empty()) return;
  Ref<MTLBinaryArchiveDescriptor*> d([[MTLBinaryArchiveDescriptor alloc] init]);
  if (access(path_.c_str(), R_OK) == 0) {
    d.get().url = [NSURL fileURLWithPath:ns(path_)];
    archive_ = Ref<id<MTLBinaryArchive>>([device newBinaryArchiveWithDescriptor:d error:nullptr]);
    if (archive_.get()) return;
    d.get().url = nil;  // of another system: start anew
  }
  archive_ = Ref<id<MTLBinaryArchive>>([device newBinaryArchiveWithDescriptor:d error:nullptr]);
}

Archive::~Archive() {
  if (!has_changed_) return;
  const Pool pool;
  // Renamed into place, so that no other process reads half a file.
  char part[1024];
  const int length = std::snprintf(part, sizeof part, "%s.%d", path_.c_str(), getpid());
  if (length < 0 || size_t(length) >= sizeof part) return;
  NSURL* url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:part]];
  if (![archive_ serializeToURL:url error:nullptr] || std::rename(part, path_.c_str()) != 0) {
    unlink(part);
  }
}

Ref<id<MTLComputePipelineState>> Archive::find(MTLComputePipelineDescriptor* descriptor) {
  if (!archive_.get()) return {};
  const std::lock_guard lock(mutex_);
  id<MTLBinaryArchive> archive = archive_;
  descriptor.binaryArchives = [NSArray arrayWithObjects:&archive count:1];
  return Ref<id<MTLComputePipelineState>>([device_
      newComputePipelineStateWithDescriptor:descriptor
                                    options:MTLPipelineOptionFailOnBinaryArchiveMiss
                                 reflection:nullptr
                                      error:nullptr]);
}

void Archive::add(MTLComputePipelineDescriptor* descriptor) {
  if (!archive_.get()) return;
  const std::lock_guard lock(mutex_);
  has_changed_ |= [archive_ addComputePipelineFunctionsWithDescriptor:descriptor error:nullptr];
}

}  // namespace butter::metal
