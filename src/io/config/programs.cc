#include "io/config/programs.h"

#include <algorithm>
#include <iterator>

#include "io/config/options_table.h"

namespace holdfast {

namespace {

Program this_program = Program::kServer;

// A proxy keeps no data, and the servers have the queues.
bool belongs_to(const Row& row, Program program) {
  const std::string_view group = row.group;
  if (group == "Proxy") return program == Program::kProxy;
  const bool of_data = group == "Disk" || group == "Data" || group == "Locks";
  return program == Program::kServer || !of_data;
}

// A script on a proxy ends then: it would hold up the answers of the servers to other clients.
void adapt_to_proxy(std::vector<Row>& rows) {
  const auto row = std::ranges::find_if(
      rows, [](const Row& r) { return std::string_view(r.name) == "busy-reply-threshold"; });
  row->fallback = "200";
  row->help = "milliseconds for which a script may run; then it ends with an error";
}

}  // namespace

void set_program(Program program) { this_program = program; }

const char* program_name() {
  return this_program == Program::kProxy ? "holdfast proxy" : "holdfast-server";
}

std::span<const Row> option_rows() {
  static const std::vector<Row> kOfProgram = [] {
    std::vector<Row> rows;
    std::ranges::copy_if(all_option_rows(), std::back_inserter(rows),
                         [](const Row& row) { return belongs_to(row, this_program); });
    if (this_program == Program::kProxy) adapt_to_proxy(rows);
    return rows;
  }();
  return kOfProgram;
}

const Row* find_row(std::string_view name) {
  const std::span<const Alias> aliases = option_aliases();
  const auto alias = std::ranges::find_if(aliases, [name](const Alias& a) { return name == a.old_name; });
  if (alias != aliases.end()) name = alias->name;
  const std::span<const Row> rows = option_rows();
  const auto row = std::ranges::find_if(rows, [name](const Row& r) { return name == r.name; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace holdfast
