// The stored form of the libraries of functions: their code. script/stored_libraries.cc implements these
// functions; they are declared here, because snapshot and journal come before the scripts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct EngineState;

// Changes of libraries in their order, as one payload of the journal has them. Only their result is loaded:
// FUNCTION RESTORE replaces several libraries at once, and one of them alone may register a function that
// another one still has.
class LibraryChanges {
 public:
  bool empty() const { return !removes_all_ && last_.empty(); }
  // Adds a library; replaces one with the same name. Returns an empty text, or why the code is none.
  std::string set(std::string_view code);
  // Removes a library, if it is there; an empty name: all of them.
  void remove(std::string_view name);
  // Makes the changes. Returns an empty text, or why a library cannot be loaded; those that were to be
  // replaced are removed then.
  std::string load(EngineState& s);

 private:
  bool removes_all_ = false;                                // before `last_`
  std::map<std::string, std::optional<std::string>> last_;  // name to code; none: removed
};

// Loads a stored library; replaces one with the same name. Returns an empty text, or why it cannot be
// loaded.
std::string restore_library(EngineState& s, std::string_view code);
// The code of each library, in the order of their names. Valid until a library changes.
std::vector<std::string_view> library_codes(const EngineState& s);

}  // namespace holdfast
