// The verbs that show the locks on the servers: info and list.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/output.h"
#include "cli/servers.h"
#include "cli/show.h"
#include "cli/status.h"
#include "cli/verbs.h"

namespace holdfast {
namespace {

using client::Value;
using Kind = Value::Kind;

constexpr const char* kPage = "1000";  // keys scanned by one request

void print_info(const Answer& answer) {
  const bool known = answer.is(Kind::kArray);
  const std::string what = !answer.good() ? printable(answer.why())
                           : known        ? mode_text(answer.value)
                                          : "free";
  print("{}: {}\n", heading(answer.server), what);
  if (!known) return;
  if (const int64_t delay = field(answer.value, "delay").integer; delay > 0)
    print("  no grant for {} (lock-delay)\n", time_text(delay));
  for (const Value& holder : field(answer.value, "holders").elements) print("  {}\n", hold_text(holder));
  for (const Value& waiter : field(answer.value, "waiters").elements) print("  {}\n", waiter_text(waiter));
}

Json info_of(const Answer& answer, const std::string& name) {
  Json row = row_of(answer);
  if (!answer.good()) return row;
  if (answer.is(Kind::kArray)) {
    row.update(object_of(answer.value));
  } else {
    row.update({{"key", name}, {"mode", "free"}, {"limit", 0}, {"delay", 0}});
    row.update({{"holders", Json::array()}, {"waiters", Json::array()}});
  }
  return row;
}

// Reads all pages of LOCKS LIST into `rows`, ordered by key. Returns the last reply. A key may come twice,
// if the table grew meanwhile.
Answer list_of(Servers& servers, size_t server, const std::optional<std::string>& match,
               std::map<std::string, Value>& rows) {
  std::string cursor = "0";
  while (true) {
    std::vector<std::string> argv{"LOCKS", "LIST", cursor, "COUNT", kPage};
    if (match) argv.insert(argv.end(), {"MATCH", *match});
    Answer page = servers.ask({server}, argv)[0];
    const bool readable = page.is(Kind::kArray) && page.value.elements.size() == 2;
    if (!readable) return page;
    for (const Value& row : page.value.elements[1].elements) rows[field(row, "key").text] = row;
    cursor = page.value.elements[0].text;
    if (cursor == "0") return page;
  }
}

// Older servers do not tell the owner and the note, and a hold may have no note.
std::string text_or_dash(const std::string& text, bool word) {
  return text.empty() ? "-" : printable(text, word);
}

std::vector<std::string> table_row(const Value& row) {
  return {printable(field(row, "key").text, true),       printable(field(row, "mode").text),
          std::to_string(field(row, "holders").integer), std::to_string(field(row, "waiters").integer),
          std::to_string(field(row, "token").integer),   time_text(field(row, "ttl").integer),
          text_or_dash(field(row, "owner").text, true),  text_or_dash(field(row, "note").text, false)};
}

}  // namespace

int verb_info(const Call& call) {
  Servers servers(call.servers);
  const std::vector<Answer> answers =
      servers.ask(servers.of_key(call.lock.name), {"LOCKS", "INFO", call.lock.name});
  Json json = Json::array();
  for (const Answer& answer : answers) {
    json.push_back(info_of(answer, call.lock.name));
    if (!call.json) print_info(answer);
  }
  if (call.json ? !print_json(json) : !flush()) return kNoOutput;
  const bool any = std::any_of(answers.begin(), answers.end(), [](const Answer& a) { return a.good(); });
  return any ? 0 : kUnavailable;
}

int verb_list(const Call& call) {
  Servers servers(call.servers);
  std::vector<std::vector<std::string>> table{
      {"KEY", "MODE", "HOLDERS", "WAITERS", "TOKEN", "TTL", "OWNER", "NOTE"}};
  const bool several = servers.all().size() > 1;
  if (several) table[0].insert(table[0].begin(), "SERVER");
  Json json = Json::array();
  bool any = false;
  for (const size_t server : servers.all()) {
    std::map<std::string, Value> rows;
    const Answer last = list_of(servers, server, call.match, rows);
    any = any || last.good();
    if (!last.good()) {
      fail(0, "{}: {}", last.server, printable(last.why()));
      json.push_back(row_of(last));
    }
    for (const auto& [key, row] : rows) {
      Json object{{"server", servers.name(server)}};
      object.update(object_of(row));
      json.push_back(object);
      table.push_back(table_row(row));
      if (several) table.back().insert(table.back().begin(), servers.name(server));
    }
  }
  if (!call.json && any) print_table(table);
  if (call.json ? !print_json(json) : !flush()) return kNoOutput;
  return any ? 0 : kUnavailable;
}

}  // namespace holdfast
