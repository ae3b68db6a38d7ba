// CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR.
#include <algorithm>
#include <string>
#include <vector>

#include "core/command/handlers.h"
#include "core/events/invalidate.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/state/tracking.h"

namespace holdfast {

namespace {

bool read_redirect(Request& r, std::string_view text, ClientTracking& o) {
  if (o.redirect != 0) {
    return r.reply.error("ERR A client can only redirect to a single other client"), false;
  }
  const auto id = parse_int(text);
  if (!id) return reply_not_an_integer(r), false;
  // The target may disconnect later, but a wrong id must not be accepted silently.
  if (*id < 1 || r.s().conns.find_serial(static_cast<uint64_t>(*id)) == nullptr) {
    return r.reply.error("ERR The client ID you want redirect to does not exist"), false;
  }
  o.redirect = static_cast<uint64_t>(*id);
  return true;
}

// Reads the options behind ON or OFF. Writes an error and returns false if one is invalid.
bool read_options(Request& r, ClientTracking& o) {
  for (size_t i = 3; i < r.argc(); ++i) {
    const std::string_view word = r.arg(i);
    const bool more = i + 1 < r.argc();
    if (equals_ignore_case(word, "REDIRECT") && more) {
      if (!read_redirect(r, r.arg(++i), o)) return false;
    } else if (equals_ignore_case(word, "BCAST")) {
      o.bcast = true;
    } else if (equals_ignore_case(word, "OPTIN")) {
      o.optin = true;
    } else if (equals_ignore_case(word, "OPTOUT")) {
      o.optout = true;
    } else if (equals_ignore_case(word, "NOLOOP")) {
      o.noloop = true;
    } else if (equals_ignore_case(word, "PREFIX") && more) {
      o.prefixes.emplace_back(r.arg(++i));
    } else {
      return reply_syntax_error(r), false;
    }
  }
  return true;
}

bool refuse_overlap(Request& r, const std::string& a, std::string_view which, const std::string& b) {
  r.reply.error("ERR Prefix '" + a + "' overlaps with " + std::string(which) + " prefix '" + b +
                "'. Prefixes for a single client must not overlap.");
  return false;
}

// Rejects overlapping prefixes, as a client must get each key at most once. If a prefix begins another one,
// it also begins the one right after it in sorted order, so only neighbours are compared.
bool check_prefixes(Request& r, const std::vector<std::string>& wanted) {
  std::vector<std::pair<std::string_view, const std::string*>> all;
  const auto add = [&](const std::vector<std::string>& prefixes) {
    for (const std::string& prefix : prefixes) all.emplace_back(prefix, &prefix);
  };
  if (r.c.tracking != nullptr) add(r.c.tracking->prefixes);
  const size_t old = all.size();
  add(wanted);
  if (all.size() > Tracking::kMostPrefixes) {
    r.reply.error("ERR a client may name at most " + std::to_string(Tracking::kMostPrefixes) + " prefixes");
    return false;
  }
  const auto is_old = [&](const std::string* prefix) {
    return old > 0 && std::ranges::find(r.c.tracking->prefixes, prefix, [](const auto& p) { return &p; }) !=
                          r.c.tracking->prefixes.end();
  };
  std::ranges::sort(all);
  for (size_t i = 1; i < all.size(); ++i) {
    if (!all[i].first.starts_with(all[i - 1].first)) continue;
    const auto [first, second] = std::minmax(all[i - 1].second, all[i].second);
    if (is_old(first)) return refuse_overlap(r, *second, "an existing", *first);
    if (is_old(second)) return refuse_overlap(r, *first, "an existing", *second);
    return refuse_overlap(r, *first, "another provided", *second);
  }
  return true;
}

// Rejects options that conflict with each other or with the options that are already on.
bool check_options(Request& r, const ClientTracking& o) {
  if (!o.bcast && !o.prefixes.empty()) {
    return r.reply.error("ERR PREFIX option requires BCAST mode to be enabled"), false;
  }
  const ClientTracking* old = r.c.tracking.get();
  if (old != nullptr && old->bcast != o.bcast) {
    r.reply.error(
        "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then "
        "re-enabling it with a different mode.");
    return false;
  }
  if (o.bcast && (o.optin || o.optout)) {
    return r.reply.error("ERR OPTIN and OPTOUT are not compatible with BCAST"), false;
  }
  if (o.optin && o.optout) {
    return r.reply.error("ERR You can't specify both OPTIN mode and OPTOUT mode"), false;
  }
  if (old != nullptr && ((o.optin && old->optout) || (o.optout && old->optin))) {
    r.reply.error(
        "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then "
        "re-enabling it with a different mode.");
    return false;
  }
  return !o.bcast || check_prefixes(r, o.prefixes);
}

std::vector<std::string_view> flags_of(const ClientTracking* own) {
  if (own == nullptr) return {"off"};
  std::vector<std::string_view> flags{"on"};
  if (own->bcast) flags.emplace_back("bcast");
  if (own->optin) flags.emplace_back("optin");
  if (own->optin && own->caching) flags.emplace_back("caching-yes");
  if (own->optout) flags.emplace_back("optout");
  if (own->optout && own->caching) flags.emplace_back("caching-no");
  if (own->noloop) flags.emplace_back("noloop");
  if (own->redirect_broken) flags.emplace_back("broken_redirect");
  return flags;
}

int64_t redirect_of(const Conn& c) {
  return c.tracking == nullptr ? -1 : static_cast<int64_t>(c.tracking->redirect);
}

}  // namespace

void cmd_client_tracking(Request& r) {
  const bool on = equals_ignore_case(r.arg(2), "ON");
  ClientTracking wanted;
  if (!read_options(r, wanted)) return;
  if (!on && !equals_ignore_case(r.arg(2), "OFF")) return reply_syntax_error(r);
  if (on && !check_options(r, wanted)) return;
  on ? start_tracking(r.ctx, r.c, std::move(wanted)) : stop_tracking(r.ctx, r.c);
  r.reply.ok();
}

void cmd_client_caching(Request& r) {
  ClientTracking* own = r.c.tracking.get();
  if (own == nullptr) {
    return r.reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT "
        "mode "
        "enabled");
  }
  const bool yes = equals_ignore_case(r.arg(2), "YES");
  if (!yes && !equals_ignore_case(r.arg(2), "NO")) return reply_syntax_error(r);
  if (yes ? !own->optin : !own->optout) {
    return r.reply.error(
        yes ? "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
            : "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  }
  own->caching = true;
  r.reply.ok();
}

void cmd_client_getredir(Request& r) { r.reply.integer(redirect_of(r.c)); }

void cmd_client_trackinginfo(Request& r) {
  const std::vector<std::string_view> flags = flags_of(r.c.tracking.get());
  r.reply.map(3);
  r.reply.bulk("flags");
  r.reply.set(flags.size());
  for (const std::string_view flag : flags) r.reply.bulk(flag);
  r.reply.bulk("redirect");
  r.reply.integer(redirect_of(r.c));
  r.reply.bulk("prefixes");
  r.reply.array(r.c.tracking == nullptr ? 0 : r.c.tracking->prefixes.size());
  if (r.c.tracking == nullptr) return;
  std::vector<std::string> prefixes = r.c.tracking->prefixes;
  std::ranges::sort(prefixes);
  for (const std::string& prefix : prefixes) r.reply.bulk(prefix);
}

}  // namespace holdfast
