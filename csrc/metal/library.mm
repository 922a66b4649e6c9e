#include "metal/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "io/whole_file.h"
#include "metal/failure.h"

namespace butter::metal {
namespace {

/// The folder of the extension module, or what BUTTER_METAL_KERNELS says.
std::string kernel_folder() {
  const char* chosen = std::getenv("BUTTER_METAL_KERNELS");
  if (chosen && *chosen) return chosen;
  Dl_info image;
  if (dladdr(reinterpret_cast<const void*>(&kernel_folder), &image) == 0) return ".";
  const std::string path = image.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

const char* advice() {
  const char* chosen = std::getenv("BUTTER_METAL_KERNELS");
  return chosen && *chosen ? ". Unset BUTTER_METAL_KERNELS, or correct it." : ". Reinstall Butter.";
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// "kernels/norm.py" gives "norm".
std::string stem(std::string_view source) {
  const size_t slash = source.rfind('/') + 1;
  return std::string(source.substr(slash, source.rfind('.') - slash));
}

}  // namespace

Library::Library(id<MTLDevice> device)
    : device_(Ref<id<MTLDevice>>::keep(device)), folder_(kernel_folder()) {
  const std::string path = folder_ + "/kernels.metallib";
  if (!exists(path)) {
    if (exists(folder_ + "/metal")) {
      cache_ = ArchiveFolder::find();
      return;
    }
    throw Error(Code::kKernel, "metal",
                concat("no kernels: got neither kernels.metallib nor a folder 'metal' in ", folder_,
                       advice()));
  }
  NSError* error = nil;
  all_.library = Ref<id<MTLLibrary>>([device newLibraryWithURL:[NSURL fileURLWithPath:ns(path)]
                                                         error:&error]);
  if (!all_.library.get()) {
    throw Error(Code::kKernel, "metal",
                concat("could not load ", path, ": ", reason(error), advice()));
  }
}

Ref<id<MTLFunction>> Library::function(const Unit& unit, const KernelInfo& info, Form form,
                                       MTLFunctionConstantValues* constants) {
  std::string name(info.symbol);
  if (form == Form::kTable) name += "__table";
  NSError* error = nil;
  Ref<id<MTLFunction>> function([unit.library newFunctionWithName:ns(name)
                                                   constantValues:constants
                                                            error:&error]);
  if (!function.get()) {
    throw Error(Code::kKernel, "metal",
                concat("this build has no Metal code for '", name, "': ", reason(error)));
  }
  return function;
}

Library::Unit& Library::unit(const KernelInfo& info, Form form) {
  if (all_.library.get()) return all_;
  const std::string name = stem(info.source) + (form == Form::kTable ? "_tables" : "");
  // Held while compiling: another thread that needs this file would only compile it too.
  const std::lock_guard lock(mutex_);
  Unit& unit = units_[name];
  if (!unit.library.get() && unit.failure.empty()) unit = compile(name);
  // Each kernel of the text asks again, and compiling takes seconds.
  if (!unit.failure.empty()) throw Error(Code::kKernel, "metal", unit.failure);
  return unit;
}

void Library::save() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (const auto& [name, unit] : units_) {
    if (unit.archive) unit.archive->save();
  }
}

Library::Unit Library::compile(const std::string& name) {
  const std::string path = concat(folder_, "/metal/", name, ".metal");
  const std::optional<std::string> text = read_whole_file(path);
  if (!text) {
    throw Error(Code::kKernel, "metal", concat("could not read ", path, advice()));
  }
  Ref<MTLCompileOptions*> options([[MTLCompileOptions alloc] init]);
  options.get().languageVersion = MTLLanguageVersion3_1;  // bfloat
  options.get().fastMathEnabled = NO;                     // kernels count on NaN and infinity
  NSError* error = nil;
  Ref<id<MTLLibrary>> library([device_ newLibraryWithSource:ns(*text)
                                                    options:options
                                                      error:&error]);
  if (!library.get()) {
    return {{}, nullptr, concat("could not compile ", path, ": ", reason(error))};
  }
  return {std::move(library), std::make_unique<Archive>(device_, cache_, name, *text), ""};
}

}  // namespace butter::metal
