// The text of `holdfast top`: lines about the servers and rows of locks, for a width, or as wide as needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/show.h"
#include "cli/top_state.h"

namespace holdfast {

enum class TopSort : uint8_t { kWaiters, kLongestWait, kAge, kTtl, kKey, kHolder };

struct TopOrder {
  TopSort by = TopSort::kWaiters;
  bool reversed = false;
};
// "waiters", "longest wait", ...
std::string name_of(TopSort sort);
// Orders by the criterion, the largest first, except for TTL, key and holder. Rows that are equal in it,
// and rows for which it is not known (these come last), are ordered by key.
void sort_rows(std::vector<LockRow>& rows, TopOrder order);

// Returns all locks of the servers that answer, merged.
std::vector<LockRow> rows_of(const std::vector<ServerState>& servers);
// Whether a server has more locks than these.
bool has_more(const std::vector<ServerState>& servers);
// The sums of all servers that answer. A lock of a quorum counts on each of its servers.
ServerState sum_of(const std::vector<ServerState>& servers);

// A table in columns. Without a width, as wide as its cells.
struct Table {
  struct Column {
    std::string title;
    size_t narrowest = 0;   // the column is dropped if the width does not allow this much
    int drop = 0;           // columns with the highest number are dropped first; 0: never
    bool flexible = false;  // gets more width if its cells need it
    bool to_the_right = false;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;

  // Returns the heading and one line for each row.
  std::vector<std::string> lines(std::optional<size_t> width) const;
};

Table server_table(const std::vector<ServerState>& servers);
Table lock_table(const std::vector<LockRow>& rows, size_t servers);
// "3 of 5 servers ready"; with one server "ready" or the reason.
std::string readiness_text(const std::vector<ServerState>& servers);
// "ready", "not ready: why", "down: why" or "no answer yet".
std::string state_text(const ServerState& server);
// The figures of one server, each with its name: "grants/s 12.0", "waiters 3", ...
std::vector<std::string> figure_texts(const ServerState& server);
// "812ms", "29.5s", "5m12s", "3h05m", "12d03h"; "never" for -1, "-" if not known.
std::string short_time(Number ms);

// The same as one object.
Json json_of(const std::vector<ServerState>& servers, const std::vector<LockRow>& rows, int64_t database);

}  // namespace holdfast
