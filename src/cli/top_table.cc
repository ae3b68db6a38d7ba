// Escapes keys, owners, notes and reasons: they may contain any bytes.
#include "cli/top_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "cli/columns.h"
#include "cli/printable.h"

namespace holdfast {
namespace {

constexpr size_t kGap = 1;
constexpr size_t kWidestCell = 60;  // of a table without a width
// A server's name and its reason displace other columns up to this width.
constexpr size_t kWidestName = 21, kWidestState = 30;

std::string number_text(Number n) { return n ? std::to_string(*n) : "-"; }

std::string rate_text(std::optional<double> rate) { return rate ? fmt::format("{:.1f}", *rate) : "-"; }

std::string wait_text(const Rates& rates, double q) {
  const auto ms = wait_quantile_ms(rates.waits, q);
  if (!ms) return "-";
  return *ms < 10 ? fmt::format("{:.1f}ms", *ms) : short_time(static_cast<int64_t>(*ms));
}

std::string bytes_text(Number bytes) {
  if (!bytes) return "-";
  constexpr std::array<char, 5> kUnits{'B', 'K', 'M', 'G', 'T'};
  auto value = static_cast<double>(*bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f}{}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string memory_text(const Figures& figures) {
  const std::string used = bytes_text(figures.memory_bytes);
  return figures.memory_limit_bytes.value_or(0) > 0 ? used + "/" + bytes_text(figures.memory_limit_bytes)
                                                    : used;
}

std::string word_or_dash(const std::string& text) { return text.empty() ? "-" : printable(text); }

// The rank of a row: unknown values after all others. Larger numbers first, unless `reversed`.
template <typename Field>
void sort_by(std::vector<LockRow>& rows, bool ascending, Field field) {
  std::ranges::stable_sort(rows, [&](const LockRow& a, const LockRow& b) {
    const auto x = field(a), y = field(b);
    if (x.has_value() != y.has_value()) return x.has_value();
    return ascending ? x < y : x > y;
  });
}

std::optional<std::string> known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Number endless_last(Number ttl_ms) { return ttl_ms == -1 ? Number(INT64_MAX) : ttl_ms; }

void add(Number& sum, Number one) {
  if (one) sum = sum.value_or(0) + *one;
}

void add_waits(Rates& sum, const Rates& one) {
  if (!one.has_waits) return;
  if (!sum.has_waits)
    sum.waits = one.waits;
  else if (sum.waits.size() == one.waits.size()) {
    for (size_t i = 0; i < sum.waits.size(); ++i) sum.waits[i].second += one.waits[i].second;
  }
  sum.has_waits = true;
}

// Which columns stay, and how wide they are.
struct Layout {
  std::vector<size_t> shown, widths;
};

size_t total_of(const Table& table, const std::vector<size_t>& shown) {
  size_t total = shown.empty() ? 0 : (shown.size() - 1) * kGap;
  for (const size_t i : shown) total += table.columns[i].narrowest;
  return total;
}

std::vector<size_t> needs_of(const Table& table) {
  std::vector<size_t> needs;
  for (const Table::Column& column : table.columns) needs.push_back(width_of(column.title));
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) needs[i] = std::max(needs[i], width_of(row[i]));
  }
  return needs;
}

// Gives the rest of the width to the columns that need more, always to the one that lacks most.
void share_rest(const Table& table, const std::vector<size_t>& needs, size_t rest, Layout& layout) {
  for (; rest > 0; --rest) {
    size_t most = 0, lacking = layout.shown.size();
    for (size_t i = 0; i < layout.shown.size(); ++i) {
      const size_t need = needs[layout.shown[i]];
      if (!table.columns[layout.shown[i]].flexible || need <= layout.widths[i] + most) continue;
      most = need - layout.widths[i];
      lacking = i;
    }
    if (lacking == layout.shown.size()) return;
    ++layout.widths[lacking];
  }
}

Layout layout_of(const Table& table, std::optional<size_t> width) {
  const std::vector<size_t> needs = needs_of(table);
  Layout layout;
  for (size_t i = 0; i < table.columns.size(); ++i) layout.shown.push_back(i);
  if (!width) {
    for (const size_t need : needs) layout.widths.push_back(std::min(need, kWidestCell));
    return layout;
  }
  while (total_of(table, layout.shown) > *width) {
    const auto worst = std::ranges::max_element(layout.shown, std::less{},
                                                [&](size_t i) { return table.columns[i].drop; });
    if (table.columns[*worst].drop == 0) break;
    layout.shown.erase(worst);
  }
  for (const size_t i : layout.shown) layout.widths.push_back(table.columns[i].narrowest);
  const size_t total = total_of(table, layout.shown);
  share_rest(table, needs, *width > total ? *width - total : 0, layout);
  return layout;
}

Json json_number(Number n) { return n ? Json(*n) : Json(nullptr); }
Json json_number(std::optional<double> n) { return n ? Json(*n) : Json(nullptr); }

Json figures_json(const ServerState& server) {
  const Figures& f = server.figures;
  return {{"grants_per_s", json_number(server.rates.grants_per_s)},
          {"waiters", json_number(f.waiters)},
          {"wait_p50_ms", json_number(wait_quantile_ms(server.rates.waits, 0.5))},
          {"wait_p99_ms", json_number(wait_quantile_ms(server.rates.waits, 0.99))},
          {"memory_bytes", json_number(f.memory_bytes)},
          {"memory_limit_bytes", json_number(f.memory_limit_bytes)},
          {"connected_clients", json_number(f.clients)}};
}

Json json_of(const ServerState& server) {
  Json row{{"server", server.name}, {"reachable", server.is_up()}, {"ready", server.is_ready()}};
  if (!server.is_up()) {
    row["error"] = server.why;
    return row;
  }
  if (!server.is_ready()) row["not_ready"] = server.figures.not_ready;
  row["version"] = server.figures.version;
  row.update(figures_json(server));
  return row;
}

Json json_of(const LockRow& row) {
  return {{"key", row.key},
          {"mode", row.mode},
          {"holders", json_number(row.holders)},
          {"owner", row.owner},
          {"note", row.note},
          {"token", json_number(row.token)},
          {"held_ms", json_number(row.held_ms)},
          {"ttl_ms", json_number(row.ttl_ms)},
          {"waiters", row.waiters},
          {"longest_wait_ms", json_number(row.longest_wait_ms)},
          {"servers", row.servers}};
}

}  // namespace

std::string name_of(TopSort sort) {
  constexpr std::array<const char*, 6> kNames{"waiters", "longest wait", "age", "TTL", "key", "holder"};
  return kNames[static_cast<size_t>(sort)];
}

void sort_rows(std::vector<LockRow>& rows, TopOrder order) {
  std::ranges::sort(rows, std::less{}, &LockRow::key);
  const bool up = order.reversed;
  if (order.by == TopSort::kKey && up) std::ranges::reverse(rows);
  if (order.by == TopSort::kWaiters) sort_by(rows, up, [](const LockRow& r) { return Number(r.waiters); });
  if (order.by == TopSort::kLongestWait)
    sort_by(rows, up, [](const LockRow& r) { return r.longest_wait_ms; });
  if (order.by == TopSort::kAge) sort_by(rows, up, [](const LockRow& r) { return r.held_ms; });
  if (order.by == TopSort::kTtl)
    sort_by(rows, !up, [](const LockRow& r) { return endless_last(r.ttl_ms); });
  if (order.by == TopSort::kHolder) sort_by(rows, !up, [](const LockRow& r) { return known(r.owner); });
}

std::vector<LockRow> rows_of(const std::vector<ServerState>& servers) {
  std::vector<const LockRows*> rows;
  for (const ServerState& server : servers) {
    if (server.is_up()) rows.push_back(&server.rows);
  }
  return merged(rows);
}

bool has_more(const std::vector<ServerState>& servers) {
  return std::ranges::any_of(servers, [](const ServerState& s) { return s.is_up() && s.has_more_rows; });
}

ServerState sum_of(const std::vector<ServerState>& servers) {
  ServerState sum;
  sum.name = "all";
  sum.asked = true;
  for (const ServerState& server : servers) {
    if (!server.is_up()) continue;
    add(sum.figures.waiters, server.figures.waiters);
    add(sum.figures.memory_bytes, server.figures.memory_bytes);
    add(sum.figures.memory_limit_bytes, server.figures.memory_limit_bytes);
    add(sum.figures.clients, server.figures.clients);
    if (server.rates.grants_per_s)
      sum.rates.grants_per_s = sum.rates.grants_per_s.value_or(0) + *server.rates.grants_per_s;
    add_waits(sum.rates, server.rates);
  }
  return sum;
}

std::vector<std::string> Table::lines(std::optional<size_t> width) const {
  const Layout layout = layout_of(*this, width);
  const auto line_of = [&](const std::function<const std::string&(size_t)>& cell) {
    std::string line;
    for (size_t i = 0; i < layout.shown.size(); ++i) {
      const size_t column = layout.shown[i];
      if (i > 0) line += std::string(kGap, ' ');
      line += fit(cell(column), layout.widths[i], columns[column].to_the_right);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return width ? line.substr(0, line.size() - without_first(line, *width).size()) : line;
  };
  std::vector<std::string> all{line_of([&](size_t i) -> const std::string& { return columns[i].title; })};
  for (const auto& row : rows) {
    all.push_back(line_of([&](size_t i) -> const std::string& { return row[i]; }));
  }
  return all;
}

Table server_table(const std::vector<ServerState>& servers) {
  Table table;
  table.columns = {{"SERVER", 14, 0, true, false}, {"GRANTS/S", 8, 4, false, true},
                   {"WAITERS", 7, 1, false, true}, {"P50", 6, 5, false, true},
                   {"P99", 6, 2, false, true},     {"MEMORY", 6, 3, true, true},
                   {"CLIENTS", 7, 6, false, true}, {"STATE", 5, 0, true, false}};
  const auto row_of = [](const ServerState& server, const std::string& state) {
    return std::vector<std::string>{printable(server.name),
                                    rate_text(server.rates.grants_per_s),
                                    number_text(server.figures.waiters),
                                    wait_text(server.rates, 0.5),
                                    wait_text(server.rates, 0.99),
                                    memory_text(server.figures),
                                    number_text(server.figures.clients),
                                    state};
  };
  size_t& name_width = table.columns.front().narrowest;
  size_t& state_width = table.columns.back().narrowest;
  for (const ServerState& server : servers) {
    table.rows.push_back(row_of(server, state_text(server)));
    name_width = std::clamp(width_of(table.rows.back().front()), name_width, kWidestName);
    state_width = std::clamp(width_of(table.rows.back().back()), state_width, kWidestState);
  }
  if (servers.size() > 1) table.rows.push_back(row_of(sum_of(servers), readiness_text(servers)));
  return table;
}

Table lock_table(const std::vector<LockRow>& rows, size_t servers) {
  Table table;
  table.columns = {{"KEY", 8, 0, true, false},     {"MODE", 9, 5, false, false},
                   {"HOLDER", 8, 0, true, false},  {"NOTE", 8, 6, true, false},
                   {"AGE", 6, 3, false, true},     {"TTL", 6, 4, false, true},
                   {"WAITERS", 7, 0, false, true}, {"LONGEST", 7, 1, false, true}};
  if (servers > 1) table.columns.push_back({"ON", 3, 7, false, true});
  for (const LockRow& row : rows) {
    const int64_t others = row.holders.value_or(1) - 1;
    const std::string owner = row.owner.empty() ? "-" : printable(row.owner, true);
    table.rows.push_back({printable(row.key, true), word_or_dash(row.mode),
                          others > 0 ? fmt::format("{} +{}", owner, others) : owner, word_or_dash(row.note),
                          short_time(row.held_ms), short_time(row.ttl_ms), std::to_string(row.waiters),
                          short_time(row.longest_wait_ms)});
    if (servers > 1) table.rows.back().push_back(fmt::format("{}/{}", row.servers, servers));
  }
  return table;
}

std::string state_text(const ServerState& server) {
  if (!server.asked) return "no answer yet";
  if (!server.is_up()) return printable(server.why);
  return server.is_ready() ? "ready" : "not ready: " + printable(server.figures.not_ready);
}

std::string readiness_text(const std::vector<ServerState>& servers) {
  if (servers.size() == 1) return state_text(servers[0]);
  const auto ready = std::ranges::count_if(servers, [](const ServerState& s) { return s.is_ready(); });
  return fmt::format("{} of {} servers ready", ready, servers.size());
}

std::vector<std::string> figure_texts(const ServerState& server) {
  const Figures& f = server.figures;
  return {"grants/s " + rate_text(server.rates.grants_per_s),
          "waiters " + number_text(f.waiters),
          "wait p50 " + wait_text(server.rates, 0.5),
          "p99 " + wait_text(server.rates, 0.99),
          "memory " + memory_text(f),
          "clients " + number_text(f.clients)};
}

std::string short_time(Number ms) {
  if (!ms) return "-";
  const int64_t s = *ms / 1000;
  if (*ms < 0) return "never";
  if (*ms < 1000) return fmt::format("{}ms", *ms);
  if (s < 60) return fmt::format("{}.{}s", s, *ms % 1000 / 100);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return s < 864000 ? fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24) : fmt::format("{}d", s / 86400);
}

Json json_of(const std::vector<ServerState>& servers, const std::vector<LockRow>& rows, int64_t database) {
  Json all{{"time", time_now()}, {"database", database}, {"servers", Json::array()}};
  for (const ServerState& server : servers) all["servers"].push_back(json_of(server));
  all["total"] = figures_json(sum_of(servers));
  all["more_locks"] = has_more(servers);
  all["locks"] = Json::array();
  for (const LockRow& row : rows) all["locks"].push_back(json_of(row));
  return all;
}

}  // namespace holdfast
