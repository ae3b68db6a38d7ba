// Libraries of functions: what FUNCTION LOAD loads and FCALL calls. Their code and the properties of their
// functions; the compiled functions are in the library's Lua state (functions.cc). Users need no Lua
// header.
#pragma once

#include <absl/container/btree_map.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/script/lua_state.h"

namespace holdfast {

// The flags that a function or a script may have, in Redis's order. The last three concern replicas and
// clusters, so that they have no effect on one server.
inline constexpr std::array<std::string_view, 5> kFunctionFlags = {"no-writes", "allow-oom", "allow-stale",
                                                                   "no-cluster", "allow-cross-slot-keys"};

struct LibraryFunction {
  std::string name;
  std::optional<std::string> description;
  uint8_t flags = 0;          // one bit for each of kFunctionFlags
  LuaState* state = nullptr;  // the library's
  int registered = 0;         // its place in the state's registry

  bool has(size_t flag) const { return (flags >> flag & 1U) != 0; }
};

struct Library {
  std::string name;
  std::string code;
  std::vector<LibraryFunction> functions;
  std::unique_ptr<LuaState> state;  // has the functions, and what they keep between calls
};

// Returns the library's name from the first line of its code, "#!lua name=...". Returns nullopt if the line
// is wrong; then `error` says why, without its code. `body` gets the code behind the line.
std::optional<std::string> read_library_name(std::string_view code, std::string_view& body,
                                             std::string& error);
// Whether it consists of letters, digits and underscores.
bool is_library_name(std::string_view name);
inline constexpr std::string_view kLibraryNameText =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character "
    "long";

// All libraries, by their names, and all functions by their names in any case.
class Libraries {
 public:
  using ByName = absl::btree_map<std::string, std::unique_ptr<Library>>;
  using Batch = std::vector<std::unique_ptr<Library>>;

  const ByName& all() const { return libraries_; }
  size_t functions() const { return functions_.size(); }
  uint64_t code_bytes() const { return code_bytes_; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Library* find(std::string_view name) const;  // null if there is none
  const LibraryFunction* function(std::string_view name) const;

  // Returns why the libraries cannot be added, or an empty text. `replace`: those with the same names will
  // be removed before. `alone`: all will be removed before.
  std::string collision(const Batch& batch, bool replace, bool alone) const;
  void add(std::unique_ptr<Library> library);
  // Returns the library; null if there is none.
  std::unique_ptr<Library> remove(std::string_view name);

 private:
  ByName libraries_;
  StringMap<std::pair<const Library*, size_t>> functions_;  // by the name in lower case
  uint64_t code_bytes_ = 0;
};

}  // namespace holdfast
