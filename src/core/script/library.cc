// Names of libraries and functions, and their collisions.
#include "core/script/library.h"

#include <algorithm>
#include <utility>

#include "core/base/parse.h"
#include "core/base/words.h"

namespace holdfast {

namespace {

std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), ascii_lower);
  return text;
}

// Returns the value if the word is name=value, with the name in any case.
std::optional<std::string_view> value_of(std::string_view word, std::string_view name) {
  if (word.size() < name.size() || !equals_ignore_case(word.substr(0, name.size()), name)) {
    return std::nullopt;
  }
  return word.substr(name.size());
}

}  // namespace

bool is_library_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    const char l = ascii_lower(c);
    return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::optional<std::string> read_library_name(std::string_view code, std::string_view& body,
                                             std::string& error) {
  const auto fail = [&error](std::string why) { return error = std::move(why), std::nullopt; };
  if (!code.starts_with("#!")) return fail("Missing library metadata");
  const size_t end = code.find('\n');
  if (end == std::string_view::npos) return fail("Invalid library metadata");
  body = code.substr(end);  // the newline stays, so that line numbers do not change
  std::string text;
  std::vector<std::string_view> words;
  if (!split_quoted_words(code.substr(0, end), text, words) || words.empty())
    return fail("Invalid library metadata");
  std::optional<std::string> name;
  for (size_t i = 1; i < words.size(); ++i) {
    const auto value = value_of(words[i], "name=");
    if (!value) return fail("Invalid metadata value given: " + std::string(words[i]));
    if (name) return fail("Invalid metadata value, name argument was given multiple times");
    name = std::string(*value);
  }
  if (!name) return fail("Library name was not given");
  if (!is_library_name(*name)) return fail(std::string(kLibraryNameText));
  const std::string engine(words[0].substr(2));
  if (!equals_ignore_case(engine, "lua")) return fail("Engine '" + engine + "' not found");
  return name;
}

const LibraryFunction* Libraries::function(std::string_view name) const {
  const auto it = functions_.find(lower(name));
  return it == functions_.end() ? nullptr : &it->second.first->functions[it->second.second];
}

const Library* Libraries::find(std::string_view name) const {
  const auto it = libraries_.find(std::string(name));
  return it == libraries_.end() ? nullptr : it->second.get();
}

std::string Libraries::collision(const Batch& batch, bool replace, bool alone) const {
  StringMap<const Library*> own;
  for (const auto& library : batch) {
    if (!alone && !replace && has(library->name)) return "Library " + library->name + " already exists";
  }
  const auto stays = [&](const Library& old) {
    return !alone && std::ranges::none_of(batch, [&](const auto& l) { return l->name == old.name; });
  };
  for (const auto& library : batch) {
    for (const LibraryFunction& f : library->functions) {
      const auto it = functions_.find(lower(f.name));
      const bool taken = it != functions_.end() && stays(*it->second.first);
      if (taken || !own.emplace(lower(f.name), library.get()).second) {
        return "Function " + f.name + " already exists";
      }
    }
  }
  return {};
}

void Libraries::add(std::unique_ptr<Library> library) {
  code_bytes_ += library->code.size();
  for (size_t i = 0; i < library->functions.size(); ++i) {
    functions_.emplace(lower(library->functions[i].name), std::pair(library.get(), i));
  }
  std::string name = library->name;
  libraries_.emplace(std::move(name), std::move(library));
}

std::unique_ptr<Library> Libraries::remove(std::string_view name) {
  const auto it = libraries_.find(std::string(name));
  if (it == libraries_.end()) return nullptr;
  std::unique_ptr<Library> library = std::move(it->second);
  libraries_.erase(it);
  for (const LibraryFunction& f : library->functions) functions_.erase(lower(f.name));
  code_bytes_ -= library->code.size();
  return library;
}

}  // namespace holdfast
