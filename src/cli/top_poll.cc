// The loop's thread takes the answers, and the main thread copies the result under a mutex.
#include "cli/top_poll.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <utility>

#include "cli/printable.h"

namespace holdfast {
namespace {

using client::Value;
using Kind = Value::Kind;
using Argv = std::vector<std::string>;
using std::chrono::steady_clock;

// Returns the answer to the request of a change_in_database().
Answer answer_of_change(const std::vector<Answer>& answers) {
  Answer last = answers.back();
  if (answers.size() == 1 || !last.is(Kind::kArray)) return last;
  for (const Value& value : last.value.elements) {
    if (value.kind == Kind::kError) return {last.server, value, 0, 0};
  }
  last.value = last.value.elements.empty() ? Value{} : Value(last.value.elements.back());
  return last;
}

}  // namespace

struct TopPoll::Core : std::enable_shared_from_this<TopPoll::Core> {
  // The round of one server.
  struct Round {
    size_t server = 0;
    TopQuery query;
    ServerState state;
    size_t pages = 0, listed = 0;
    std::string cursor = "0";
  };
  using RoundPtr = std::shared_ptr<Round>;

  explicit Core(Servers& all) : servers(all), event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    for (const size_t i : servers.all()) {
      states.push_back({});
      states.back().name = servers.name(i);
    }
    busy.resize(states.size());
    has_selected.resize(states.size());
    taken_at.resize(states.size());
  }
  ~Core() { close(event); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Whether requests need a SELECT. A link begins in database 0, and stays there until SELECT has
  // succeeded: so a user without that right can use database 0.
  bool selects(size_t server, int64_t database) const {
    const std::lock_guard lock(mutex);
    return database > 0 || has_selected[server];
  }

  // Requests for one database. All requests of this program go through here: SELECT comes with the
  // requests, so that no reconnect separates them.
  std::vector<Argv> in_database(size_t server, int64_t database, std::vector<Argv> requests) const {
    if (selects(server, database)) requests.insert(requests.begin(), {"SELECT", std::to_string(database)});
    return requests;
  }

  // As in_database() for a change, which must not happen in another database: all in one transaction.
  std::vector<Argv> change_in_database(size_t server, int64_t database, const Argv& request) const {
    if (!selects(server, database)) return {request};
    return {{"MULTI"}, {"SELECT", std::to_string(database)}, request, {"EXEC"}};
  }

  void signal() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(event, &one, sizeof one);
  }

  void begin(const RoundPtr& round);
  void take_first(const RoundPtr& round, const std::vector<Answer>& answers);
  void take_page(const RoundPtr& round, const Answer& page);
  void list_on(const RoundPtr& round);
  void ask_details(const RoundPtr& round);
  void finish(const RoundPtr& round);
  Argv list_request(const Round& round) const;
  void add_outcome(const std::string& done, const Answer& answer);

  Servers& servers;
  const int event;
  mutable std::mutex mutex;  // guards all below
  std::vector<ServerState> states;
  std::vector<bool> busy;
  std::vector<bool> has_selected;                  // a SELECT of the server has succeeded
  std::vector<steady_clock::time_point> taken_at;  // when the figures were taken
  size_t changing = 0;                             // servers whose answer to a change is open
  int64_t changed_holds = 0;
  size_t changed_servers = 0;
  std::string change_failures, outcome, change_key;
};

Argv TopPoll::Core::list_request(const Round& round) const {
  Argv argv{"LOCKS", "LIST", round.cursor, "COUNT", std::to_string(kListPage)};
  if (!round.query.pattern.empty()) argv.insert(argv.end(), {"MATCH", round.query.pattern});
  return argv;
}

void TopPoll::Core::begin(const RoundPtr& round) {
  std::vector<Argv> requests{{"INFO"},
                             {"LOCKS", "TOP", "BY", "waiters", "COUNT", std::to_string(kTopKeys)}};
  requests.push_back(list_request(*round));
  if (!round->query.queue_key.empty()) requests.push_back({"LOCKS", "INFO", round->query.queue_key});
  servers.start(round->server, in_database(round->server, round->query.database, requests),
                [core = shared_from_this(), round](const std::vector<Answer>& answers) {
                  core->take_first(round, answers);
                });
}

void TopPoll::Core::take_first(const RoundPtr& round, const std::vector<Answer>& answers) {
  ServerState& state = round->state;
  const size_t first = answers.size() - (round->query.queue_key.empty() ? 3 : 4);  // 1 behind a SELECT
  for (size_t i = 0; i <= first; ++i) {
    if (state.why.empty() && !answers[i].good()) state.why = answers[i].why();
  }
  if (!state.why.empty()) return finish(round);
  if (first > 0) {
    const std::lock_guard lock(mutex);
    has_selected[round->server] = true;
  }
  state.figures = read_figures(answers[first].value.text);
  add_contended(answers[first + 1].value, round->query.database, round->query.pattern, state.rows);
  if (answers.size() > first + 3) {
    state.queue = answers[first + 3].value;
    state.queue_key = round->query.queue_key;
  }
  take_page(round, answers[first + 2]);
}

void TopPoll::Core::take_page(const RoundPtr& round, const Answer& page) {
  if (!page.is(Kind::kArray) || page.value.elements.size() != 2) {
    if (!page.good()) round->state.why = page.why();
    return finish(round);
  }
  ++round->pages;
  round->cursor = page.value.elements[0].text;
  round->listed += page.value.elements[1].elements.size();
  add_listed(page.value.elements[1].elements, round->state.rows);
  round->state.has_more_rows = round->cursor != "0";
  const bool enough = round->listed >= kListRows || round->pages >= kMaxPages;
  return round->cursor == "0" || enough ? ask_details(round) : list_on(round);
}

void TopPoll::Core::list_on(const RoundPtr& round) {
  servers.start(round->server, in_database(round->server, round->query.database, {list_request(*round)}),
                [core = shared_from_this(), round](const std::vector<Answer>& answers) {
                  core->take_page(round, answers.back());
                });
}

// Asks for the ages and the waits, which no page has, and for the contended locks that no page had; the
// longest queues first.
void TopPoll::Core::ask_details(const RoundPtr& round) {
  std::vector<const LockRow*> wanted;
  for (const auto& [key, row] : round->state.rows) {
    if (!row.held_ms || (row.waiters > 0 && !row.longest_wait_ms)) wanted.push_back(&row);
  }
  std::ranges::stable_sort(wanted, std::greater{}, &LockRow::waiters);
  std::vector<Argv> requests;
  int64_t waiters = 0;
  for (const LockRow* row : wanted) {
    if (requests.size() == kMaxDetails) break;
    if (waiters + row->waiters > kMaxDetailWaiters && !requests.empty()) continue;
    waiters += row->waiters;
    requests.push_back({"LOCKS", "INFO", row->key});
  }
  if (requests.empty()) return finish(round);
  servers.start(round->server, in_database(round->server, round->query.database, requests),
                [core = shared_from_this(), round](const std::vector<Answer>& answers) {
                  for (const Answer& answer : answers) add_details(answer.value, round->state.rows);
                  core->finish(round);
                });
}

void TopPoll::Core::finish(const RoundPtr& round) {
  const std::lock_guard lock(mutex);
  ServerState& old = states[round->server];
  const auto now = steady_clock::now();
  if (old.is_up() && round->state.why.empty()) {
    const std::chrono::duration<double> since = now - taken_at[round->server];
    round->state.rates = rates_between(old.figures, round->state.figures, since.count());
  }
  round->state.name = old.name;
  round->state.asked = true;
  if (!round->state.why.empty()) round->state.rows.clear();
  old = std::move(round->state);
  taken_at[round->server] = now;
  busy[round->server] = false;
  signal();
}

void TopPoll::Core::add_outcome(const std::string& done, const Answer& answer) {
  const std::lock_guard lock(mutex);
  if (answer.good()) {
    ++changed_servers;
    changed_holds = std::max(changed_holds, answer.value.integer);
  } else {
    change_failures += fmt::format("; {}: {}", answer.server, answer.why());
  }
  if (--changing > 0) return;
  const std::string holds = fmt::format("{} hold{}", changed_holds, changed_holds == 1 ? "" : "s");
  const std::string where =
      states.size() == 1 ? ""
                         : fmt::format(" on {} server{}", changed_servers, changed_servers == 1 ? "" : "s");
  outcome =
      changed_servers == 0
          ? fmt::format("{}: not {}{}", printable(change_key, true), done, change_failures)
          : fmt::format("{}: {} {}{}{}", printable(change_key, true), holds, done, where, change_failures);
  signal();
}

TopPoll::TopPoll(Servers& servers) : core_(std::make_shared<Core>(servers)) {}

int TopPoll::fd() const { return core_->event; }

void TopPoll::drain() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(core_->event, &count, sizeof count);
}

void TopPoll::refresh(const TopQuery& query) {
  for (const size_t server : core_->servers.all()) {
    {
      const std::lock_guard lock(core_->mutex);
      if (core_->busy[server]) continue;
      core_->busy[server] = true;
    }
    const auto round = std::make_shared<Core::Round>();
    round->server = server;
    round->query = query;
    core_->begin(round);
  }
}

bool TopPoll::is_settled() const {
  const std::lock_guard lock(core_->mutex);
  return std::ranges::none_of(core_->busy, [](bool one) { return one; });
}

std::vector<ServerState> TopPoll::states() const {
  const std::lock_guard lock(core_->mutex);
  return core_->states;
}

void TopPoll::change(const std::string& subcommand, const std::string& key, int64_t database) {
  const std::vector<size_t> all = core_->servers.of_key(key);
  {
    const std::lock_guard lock(core_->mutex);
    if (core_->changing > 0) return;  // one change at a time
    core_->changing = all.size();
    core_->changed_servers = 0;
    core_->changed_holds = 0;
    core_->change_failures.clear();
    core_->change_key = key;
  }
  const std::string done = subcommand == "BREAK" ? "broken" : "asked to end";
  for (const size_t server : all) {
    core_->servers.start(server, core_->change_in_database(server, database, {"LOCKS", subcommand, key}),
                         [core = core_, done](const std::vector<Answer>& answers) {
                           core->add_outcome(done, answer_of_change(answers));
                         });
  }
}

std::string TopPoll::take_outcome() {
  const std::lock_guard lock(core_->mutex);
  return std::exchange(core_->outcome, {});
}

}  // namespace holdfast
