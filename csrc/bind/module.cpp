#include "bind/bind.h"

NB_MODULE(_native, m) {
  m.doc() = "Butter's native core: devices, buffers, programs, the decode loop and model files.";
  butter::bind_errors(m);
  butter::bind_io(m);
  butter::bind_device(m);
  butter::bind_program(m);
  butter::bind_decode(m);
  butter::bind_loading(m);
}
