#include "metal/archive.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <system_error>

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

std::string wanted_folder() {
  if (const char* chosen = std::getenv("BUTTER_METAL_CACHE")) return chosen;
  const char* home = std::getenv("HOME");
  const std::string caches = concat(home ? home : "", "/Library/Caches");
  return is_folder(caches) ? caches + "/butter" : "";
}

/// 0, or the errno of what does not work.
int make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return errno;
  if (!is_folder(path)) return ENOTDIR;
  return access(path.c_str(), R_OK | W_OK | X_OK) == 0 ? 0 : errno;
}

std::string archive_path(id<MTLDevice> device, const std::string& folder, std::string_view name,
                         std::string_view text) {
  if (folder.empty()) return "";
  return concat(folder, "/", name, "-", hash(device.name.UTF8String, hash(text)), ".metalarchive");
}

}  // namespace

ArchiveFolder ArchiveFolder::find() {
  const std::string path = wanted_folder();
  if (path.empty()) return {};
  if (const int error = make_folder(path)) {
    return {"", concat("compiled Metal pipelines are not kept: ", path, ": ",
                       std::generic_category().message(error),
                       ". Each start compiles them again; set BUTTER_METAL_CACHE to a folder that "
                       "can be written.")};
  }
  return {path, ""};
}

Archive::Archive(id<MTLDevice> device, const ArchiveFolder& folder, std::string_view name,
                 std::string_view text)
    : device_(Ref<id<MTLDevice>>::keep(device)),
      path_(archive_path(device, folder.path, name, text)),
      process_(getpid()),
      part_(concat(path_, ".", process_)) {
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

Archive::~Archive() { write(); }

void Archive::save() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) write();
}

void Archive::write() {
  if (!has_changed_ || getpid() != process_) return;
  has_changed_ = false;
  const Pool pool;
  // Renamed into place, so that no other process reads half a file.
  const char* part = part_.c_str();
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
