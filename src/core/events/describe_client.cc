// The line of CLIENT LIST.
#include "core/events/describe_client.h"

#include <algorithm>
#include <string>

#include "core/command/acl.h"
#include "core/command/command.h"
#include "core/state/conn.h"
#include "core/state/context.h"

namespace holdfast {

namespace {

// The letters of Redis for the state of a connection.
std::string flags_of(const Conn& c) {
  std::string flags;
  if (c.monitor) flags += 'O';
  if (c.subscriptions() > 0) flags += 'P';
  if (c.transaction != nullptr) flags += 'x';
  if (c.blocked_on != nullptr || c.remote || c.postponed.count() > 0) flags += 'b';
  if (c.tracking != nullptr) flags += c.tracking->bcast ? "tB" : "t";
  if (c.tracking != nullptr && c.tracking->redirect_broken) flags += 'R';
  if (c.watch_broken) flags += 'd';
  if (c.closing) flags += 'A';
  if (c.no_evict) flags += 'e';
  if (c.no_touch) flags += 'T';
  return flags.empty() ? "N" : flags;
}

void add(std::string& line, std::string_view name, std::string_view value) {
  if (!line.empty()) line += ' ';
  line.append(name).append("=").append(value);
}
void add(std::string& line, std::string_view name, int64_t value) {
  add(line, name, std::to_string(value));
}
void add(std::string& line, std::string_view name, size_t value) { add(line, name, std::to_string(value)); }

}  // namespace

std::string wrong_name(std::string_view text, std::string_view what) {
  const std::string start = "ERR " + std::string(what);
  if (!std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; }))
    return start + " cannot contain spaces, newlines or special characters.";
  if (text.size() <= kMaxNameBytes) return "";
  return start + " cannot be longer than " + std::to_string(kMaxNameBytes) + " bytes.";
}

std::string describe_client(const Context& ctx, const Conn& c) {
  const Transaction* multi = c.transaction.get();
  std::string s;
  add(s, "id", static_cast<size_t>(c.id.serial));
  add(s, "addr", c.peer);
  add(s, "laddr", c.local);
  add(s, "fd", int64_t{-1});
  add(s, "name", c.name);
  add(s, "age", (ctx.now.mono - c.opened).count / 1000);
  add(s, "idle", (ctx.now.mono - c.last_active).count / 1000);
  add(s, "flags", flags_of(c));
  add(s, "db", int64_t{ctx.s.db_name[c.db]});
  add(s, "sub", c.channels.size());
  add(s, "psub", c.patterns.size());
  add(s, "ssub", c.shard_channels.size());
  add(s, "multi", multi == nullptr ? int64_t{-1} : static_cast<int64_t>(multi->requests.count()));
  add(s, "qbuf", c.unparsed_bytes);
  add(s, "qbuf-free", size_t{0});
  add(s, "argv-mem", size_t{0});
  add(s, "multi-mem", static_cast<size_t>(multi == nullptr ? 0 : multi->requests.bytes()));
  add(s, "rbs", c.out.capacity());
  add(s, "rbp", c.out.size());
  // As Redis with its buffer of 16 KiB and a list of blocks behind it.
  constexpr size_t kFirstBytes = size_t{16} << 10U;
  const size_t unread = c.out.size() + c.later.size() + c.in_flight_bytes;
  const size_t output_memory = c.out.capacity() + c.later.capacity() + c.in_flight_bytes;
  add(s, "obl", std::min(unread, kFirstBytes));
  add(s, "oll", (std::max(unread, kFirstBytes) - 1) / kFirstBytes);
  add(s, "omem", unread > kFirstBytes ? output_memory : 0);
  add(s, "tot-mem", sizeof(Conn) + c.unparsed_bytes + output_memory);
  add(s, "events", "r");
  add(s, "cmd", c.last_command == nullptr ? "NULL" : c.last_command->name);
  add(s, "user", c.user->name);
  add(s, "redir", c.tracking == nullptr ? int64_t{-1} : static_cast<int64_t>(c.tracking->redirect));
  add(s, "resp", int64_t{c.protocol});
  add(s, "lib-name", c.lib_name);
  add(s, "lib-ver", c.lib_version);
  add(s, "watch", c.watched.size());
  add(s, "waits", c.waiters.size());
  add(s, "session-holds", c.session_holds.size());
  return s;
}

}  // namespace holdfast
