// The list of the fuzz targets.
#include "fuzz/targets.h"

#include <array>

namespace holdfast::fuzz {

std::span<const Target> all_targets() {
  static constexpr std::array kTargets = {
      Target{"acl", fuzz_acl},         Target{"backup", fuzz_backup},     Target{"engine", fuzz_engine},
      Target{"http", fuzz_http},       Target{"journal", fuzz_journal},   Target{"lua", fuzz_lua},
      Target{"meta", fuzz_meta},       Target{"options", fuzz_options},   Target{"rdb", fuzz_rdb},
      Target{"replies", fuzz_replies}, Target{"requests", fuzz_requests}, Target{"scripts", fuzz_scripts},
  };
  return kTargets;
}

}  // namespace holdfast::fuzz
