// The libraries of functions as snapshot and journal store them: only their code.
#include <string>
#include <utility>

#include "core/script/script.h"
#include "core/state/context.h"
#include "core/state/library_store.h"

namespace holdfast {

std::string LibraryChanges::set(std::string_view code) {
  std::string_view body;
  std::string error;
  auto name = read_library_name(code, body, error);
  if (name) last_[*std::move(name)] = std::string(code);
  return error;
}

void LibraryChanges::remove(std::string_view name) {
  if (!name.empty()) {
    last_[std::string(name)] = std::nullopt;
    return;
  }
  removes_all_ = true;
  last_.clear();
}

std::string LibraryChanges::load(EngineState& s) {
  if (removes_all_) static_cast<void>(s.scripts.load_libraries({}, false, true));
  std::vector<std::string> codes;
  for (auto& [name, code] : last_) {
    s.scripts.remove_library(name);
    if (code) codes.push_back(*std::move(code));
  }
  // The libraries were loaded before. Nothing can pause the load now.
  const auto clock_us = std::exchange(s.scripts.time.clock_us, nullptr);
  std::string error = s.scripts.load_libraries(codes, false, false, true);
  s.scripts.time.clock_us = clock_us;
  return error;
}

std::string restore_library(EngineState& s, std::string_view code) {
  LibraryChanges changes;
  std::string error = changes.set(code);
  return error.empty() ? changes.load(s) : error;
}

std::vector<std::string_view> library_codes(const EngineState& s) {
  std::vector<std::string_view> codes;
  for (const auto& [name, library] : s.scripts.libraries().all()) codes.emplace_back(library->code);
  return codes;
}

}  // namespace holdfast
