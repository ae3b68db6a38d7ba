// CONFIG: reads and changes options while the server runs.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/glob.h"
#include "core/base/parse.h"
#include "core/command/acl.h"
#include "core/command/command_log.h"
#include "core/command/handlers.h"
#include "core/events/acl_check.h"
#include "core/events/request_text.h"
#include "core/state/conn.h"
#include "core/state/contended_keys.h"
#include "core/state/context.h"
#include "core/state/history.h"
#include "core/state/output.h"
#include "core/state/request.h"
#include "core/state/stats.h"

namespace holdfast {

namespace {

void reply_refusal(Request& r, const ConfigRefusal& refused) {
  if (refused.why.empty()) {
    return r.reply.error("ERR Unknown option or number of arguments for CONFIG SET - '" + refused.name +
                         "'");
  }
  r.reply.error("ERR CONFIG SET failed (possibly related to argument '" + refused.name + "') - " +
                refused.why);
}

// Returns the users for the config file: none if there is an ACL file, or if they are only the default.
std::vector<std::string> users_to_write(const EngineState& s) {
  if (s.config.acl_file.write || s.acl.is_plain()) return {};
  return s.acl.lines();
}

// Whether an argument of CONFIG GET is this name, in any case.
bool names_exactly(const Request& r, std::string_view name) {
  for (size_t i = 2; i < r.argc(); ++i) {
    if (equals_ignore_case(r.arg(i), name)) return true;
  }
  return false;
}

}  // namespace

void cmd_config_get(Request& r) {
  std::vector<const std::pair<std::string, std::string>*> found;
  for (const auto& setting : r.s().config.settings) {
    for (size_t i = 2; i < r.argc(); ++i) {
      GlobSteps steps{.allowed = kNameSteps};
      if (!glob_match(r.arg(i), setting.first, steps, true)) continue;
      found.push_back(&setting);
      break;
    }
  }
  for (const auto& setting : r.s().config.renamed_settings) {
    if (names_exactly(r, setting.first)) found.push_back(&setting);
  }
  r.reply.map(found.size());
  for (const auto* setting : found) {
    r.reply.bulk(setting->first);
    r.reply.bulk(setting->second);
  }
}

void cmd_config_set(Request& r) {
  if (r.argc() % 2 != 0) return reply_syntax_error(r);
  ConfigChanges changes;
  for (size_t i = 2; i < r.argc(); i += 2) {
    std::string name(r.arg(i));
    std::ranges::transform(name, name.begin(), ascii_lower);
    changes.emplace_back(std::move(name), r.arg(i + 1));
  }
  Config& config = r.s().config;
  audit(r);
  if (const auto refused = config.change(changes, config)) return reply_refusal(r, *refused);
  for (const auto& [name, value] : changes) {
    if (name == "requirepass") set_default_password(r.ctx, value);
  }
  r.s().history.set_limit(config.limits.history_events);
  r.s().conns.for_each([&](Conn& c) { renew_output_limit(r.s(), c); });
  r.reply.ok();
}

void cmd_config_rewrite(Request& r) {
  const std::string why = r.s().config.rewrite(users_to_write(r.s()));
  why.empty() ? r.reply.ok() : r.reply.error("ERR " + why);
}

void cmd_config_resetstat(Request& r) {
  r.s().stats = Stats{};
  r.s().contended.clear();
  r.s().log.reset_counts();
  r.reply.ok();
}

void cmd_config_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "GET <pattern>",
      "    Return parameters matching the glob-like <pattern> and their values.",
      "SET <directive> <value>",
      "    Set the configuration <directive> to <value>.",
      "RESETSTAT",
      "    Reset statistics reported by the INFO command.",
      "REWRITE",
      "    Rewrite the configuration file.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
