// Headers that most files of an earlier server include, parsed once: see old-server in tests.mk. An earlier
// version may lack a header of the project.
#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#if __has_include("core/state/state.h")
#include "core/state/request.h"
#include "core/state/state.h"
#endif
