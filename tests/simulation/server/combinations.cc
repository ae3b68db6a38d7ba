// Looks at requests and at the engine.
#include "combinations.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>

#include "machine.h"

namespace holdfast::simulation {

void Combinations::add(const Combinations& more) {
  mixed_runs += more.mixed_runs;
  forever += more.forever;
  ends_in_save += more.ends_in_save;
}

std::string Combinations::text() const {
  return fmt::format(
      "{} runs with SESSION LIMIT, leases, MULTI and RENAME, {} locks with ttl 0, {} ends during a "
      "snapshot "
      "during a recovery wait",
      mixed_runs, forever, ends_in_save);
}

bool is_recovering(Engine& engine) { return !engine.availability().grants(Machine::get().now().mono); }

bool is_saving(Engine& engine) {
  if (!engine.config().storage.facts) return false;
  return std::ranges::any_of(engine.config().storage.facts(), [](const auto& fact) {
    return fact.first == "rdb_bgsave_in_progress" && fact.second == "1";
  });
}

void CombinationCounter::note_request(const std::vector<std::string>& words) {
  const auto is = [&](size_t at, const char* name) {
    return words.size() > at && strcasecmp(words[at].c_str(), name) == 0;
  };
  const auto has = [&](const char* name) { return std::ranges::find(words, name) != words.end(); };
  if (is(0, "LOCK") && has("SESSION") && has("LIMIT")) session_with_limit_ = true;
  if (is(0, "LOCK") && is(3, "0")) ++counts_.forever;
  if (is(0, "LEASE") && is(1, "GRANT")) lease_ = true;
  if (is(0, "MULTI")) multi_ = true;
  if (is(0, "RENAME")) rename_ = true;
  counts_.mixed_runs = session_with_limit_ && lease_ && multi_ && rename_ ? 1 : 0;
}

void CombinationCounter::note_end(Engine* engine) {
  if (engine == nullptr || engine->availability().loading) return;
  if (is_recovering(*engine) && is_saving(*engine)) ++counts_.ends_in_save;
}

}  // namespace holdfast::simulation
