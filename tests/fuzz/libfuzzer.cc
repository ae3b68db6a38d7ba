// libFuzzer's entry points. The name of the program selects the target.
#include <string>

#include "fuzz/targets.h"

namespace {

const holdfast::fuzz::Target* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(const int* /*argc*/, char*** argv) {
  const std::string_view path = (*argv)[0];
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const auto& known : holdfast::fuzz::all_targets()) {
    if (known.name == name) target = &known;
  }
  if (target == nullptr) {
    static_cast<void>(std::fprintf(stderr, "no target has the name that this program was called by\n"));
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
