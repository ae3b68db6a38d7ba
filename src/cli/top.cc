// holdfast top: the loops of the main thread, on the terminal and in batches. Servers are asked by another
// thread (TopPoll), so the keyboard never waits for a server.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>

#include "cli/columns.h"
#include "cli/output.h"
#include "cli/servers.h"
#include "cli/show.h"
#include "cli/signals.h"
#include "cli/status.h"
#include "cli/top_poll.h"
#include "cli/top_screen.h"
#include "cli/top_table.h"
#include "cli/top_ui.h"
#include "cli/verbs.h"

namespace holdfast {
namespace {

using std::chrono::steady_clock;

constexpr size_t kTitleBlanks = 2;

// The time of the next refresh.
class Schedule {
 public:
  explicit Schedule(milliseconds interval) : interval_(interval) {}

  bool is_due() const { return steady_clock::now() >= next_; }
  void begin() { next_ = steady_clock::now() + interval_; }
  int left_ms() const {
    const auto left = std::chrono::ceil<milliseconds>(next_ - steady_clock::now());
    return static_cast<int>(std::max<int64_t>(0, left.count()));
  }

 private:
  const milliseconds interval_;
  steady_clock::time_point next_{};
};

bool any_answers(const std::vector<ServerState>& servers) {
  return std::ranges::any_of(servers, [](const ServerState& s) { return s.is_up(); });
}

// Prints one refresh as text. Columns are as wide as their cells.
void print_refresh(const std::vector<ServerState>& servers, const std::vector<LockRow>& rows) {
  print("{}\n", heading("holdfast top" + std::string(kTitleBlanks, ' ') + time_now()));
  for (const std::string& line : server_table(servers).lines({})) print("{}\n", line);
  print("\n");
  if (rows.empty()) {
    print("{}\n", any_answers(servers) ? "no lock is held" : "no server answers");
  } else {
    for (const std::string& line : lock_table(rows, servers.size()).lines({})) print("{}\n", line);
  }
  if (has_more(servers)) print("more locks are held than are shown\n");
  print("\n");
}

// Prints refreshes until their number is reached, or until a signal. The rates of the first one need two
// samples, one interval apart.
class Batch {
 public:
  Batch(const Call& call, const TopQuery& query, TopPoll& poll)
      : call_(call), query_(query), poll_(poll), schedule_(call.top.interval) {}

  int run(const Signals& signals) {
    poll_.refresh(query_);
    if (const int signal = wait_until_settled(signals)) return kSignalled + signal;
    schedule_.begin();
    for (int64_t done = 0; !call_.top.refreshes || done < *call_.top.refreshes; ++done) {
      if (const int signal = pause(signals)) return kSignalled + signal;
      schedule_.begin();
      poll_.refresh(query_);
      if (const int signal = wait_until_settled(signals)) return kSignalled + signal;
      if (!print()) return kNoOutput;
    }
    return any_answers(poll_.states()) ? 0 : kUnavailable;
  }

 private:
  static constexpr int kSignalled = 128;

  bool print() const {
    const std::vector<ServerState> servers = poll_.states();
    std::vector<LockRow> rows = rows_of(servers);
    sort_rows(rows, {});
    if (call_.json) return print_json(json_of(servers, rows, query_.database));
    print_refresh(servers, rows);
    return flush();
  }
  int wait_until_settled(const Signals& signals) {
    while (!poll_.is_settled()) {
      if (const int signal = wait_or_signal(signals, poll_.fd())) return signal;
      poll_.drain();
    }
    return 0;
  }
  int pause(const Signals& signals) {
    while (!schedule_.is_due()) {
      if (const int signal = wait_or_signal(signals, poll_.fd(), schedule_.left_ms())) return signal;
      poll_.drain();
    }
    return 0;
  }

  const Call& call_;
  const TopQuery query_;
  TopPoll& poll_;
  Schedule schedule_;
};

// The screen: waits for keys, signals, answers and the next refresh at once.
class Session {
 public:
  Session(const Call& call, const TopQuery& query, TopPoll& poll)
      : ui_(query), poll_(poll), schedule_(call.top.interval) {}

  // Returns the exit status.
  int run(const Signals& signals) {
    while (!status_) {
      if (schedule_.is_due()) refresh();
      screen_.draw(ui_.draw(screen_.width(), screen_.height()));
      wait(signals);
    }
    return *status_;
  }

 private:
  void refresh() {
    schedule_.begin();
    poll_.refresh(ui_.query());
  }

  void wait(const Signals& signals) {
    pollfd fds[] = {{signals.fd(), POLLIN, 0}, {poll_.fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    ::poll(fds, 3, schedule_.left_ms());
    while (const int number = signals.next()) take_signal(number, signals);
    if (fds[1].revents != 0) take_answers();
    if (fds[2].revents != 0) take_keys((fds[2].revents & ~POLLIN) != 0);
  }

  void take_signal(int number, const Signals& signals) {
    if (number == SIGWINCH) return screen_.resize();
    if (number == SIGTSTP) {
      screen_.leave();
      stop_process();
      return screen_.come_back();
    }
    const bool harmless = number == SIGCHLD || number == SIGCONT || (number == SIGHUP && signals.nohup());
    if (!harmless) status_ = 128 + number;
  }

  void take_answers() {
    poll_.drain();
    ui_.take(poll_.states());
    if (const std::string outcome = poll_.take_outcome(); !outcome.empty()) {
      ui_.show_message(safe_line(outcome));
      refresh();
    }
  }

  void take_keys(bool is_closed) {
    while (const auto key = screen_.next_key()) {
      const TopUi::Wish wish = ui_.press(*key);
      if (wish.quit) status_ = 0;
      if (wish.refresh) refresh();
      if (!wish.change.empty()) poll_.change(wish.change, ui_.change_key(), ui_.query().database);
    }
    if (is_closed) status_ = kNoOutput;
  }

  TopUi ui_;
  TopPoll& poll_;
  Schedule schedule_;
  TopScreen screen_;
  std::optional<int> status_;
};

}  // namespace

int verb_top(const Call& call) {
  use_utf8();
  const bool batch = call.top.batch || call.json;
  if (!batch && (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0))
    return fail(kUsage, "top: standard input or output is not a terminal; use --batch or --json");
  const Signals signals(batch ? Signals::BrokenPipe::kEnds : Signals::BrokenPipe::kFails);
  Servers servers(call.servers);
  for (const client::Address& address : servers.config().servers) {
    if (address.redis && call.top.database > 0)
      return fail(kUsage, "top: --db {}: on Redis all locks are in database 0", call.top.database);
  }
  TopPoll poll(servers);
  const TopQuery query{call.top.database, call.match.value_or(""), {}};
  return batch ? Batch(call, query, poll).run(signals) : Session(call, query, poll).run(signals);
}

}  // namespace holdfast
