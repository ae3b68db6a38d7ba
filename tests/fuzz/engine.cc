// The whole engine: bytes become connections, requests and time. After each step the invariants hold and
// the output consists of complete replies. At the end the journal and a snapshot give the same state.
#include "core/engine/engine.h"

#include <array>
#include <string>
#include <vector>

#include "core/codec/resp.h"
#include "core/command/command.h"
#include "fuzz/engines.h"
#include "fuzz/resp_reader.h"
#include "fuzz/words.h"
#include "io/config/options.h"

namespace holdfast::fuzz {
namespace {

constexpr int kMaxSteps = 150;
constexpr int64_t kMaxMs = int64_t{1} << 37U;

// CONFIG SET works, and scripts reach their limits: each read of the clock advances it by 1 ms.
Config config_for(Options& options, int64_t& clock_us) {
  Config c = engine_config();
  c.limits.script_hard_ms = 20;
  c.limits.busy_reply_ms = 5;
  c.debug_command = "yes";
  c.clock_us = [&clock_us] { return clock_us += 1000; };
  c.change = [&options](const ConfigChanges& changes, Config& config) {
    std::optional<ConfigRefusal> refusal = change_options(options, changes);
    if (!refusal) adopt_changes(options, config);
    return refusal;
  };
  c.rewrite = [](const auto&) { return std::string("no file"); };
  c.sleep = [](int64_t) {};
  return c;
}

class World {
 public:
  explicit World(Source& source)
      : source_(source), options_(default_options()), engine_(config_for(options_, clock_us_)) {
    engine_.keep_journal();
    for (ConnId& conn : conns_) conn = open();
  }

  void run() {
    for (int i = 0; i < kMaxSteps && !source_.empty(); ++i) {
      step();
      look();
    }
  }

  // Checks that the persisted state equals the state.
  void check_kept() {
    if (!engine_.at_rest()) return;
    const std::string text = state_text(engine_, now());
    Engine twin(fuzz::engine_config());
    const std::string why = twin.replay(records_, now());
    must(why.empty(), why);
    must(state_text(twin, now()) == text, "the journal gives the state");
    finish_restore(twin, now());
    Engine restored(fuzz::engine_config());
    must(restore(restored, snapshot_of(engine_, now()), now()).empty(), "the snapshot is read");
    must(state_text(restored, now()) == text, "the snapshot gives the state");
    finish_restore(restored, now());
  }

  // All clients disconnect, and all deadlines pass.
  void end() {
    for (const ConnId conn : conns_) engine_.drop(conn, now(), fx_);
    ms_ += 10000000;
    engine_.tick(now(), fx_);
    engine_.check_invariants();
  }

 private:
  static const Options& default_options() {
    static const Options options = [] {
      const char* const argv[] = {"holdfast-server"};
      return *read_options(1, argv);
    }();
    return options;
  }
  static const std::vector<std::string>& words() {
    static const std::vector<std::string> words = all_words();
    return words;
  }

  Now now() const { return time_at(ms_); }
  ConnId open() { return engine_.open("127.0.0.1:1", "127.0.0.1:2", now()); }

  void step() {
    const uint8_t kind = source_.byte();
    ConnId& conn = conns_[kind % conns_.size()];
    if (kind < 40) return pass(source_.byte());
    if (kind < 50) return replace(conn);
    if (engine_.blocked(conn) || engine_.closing(conn)) return;
    if (kind < 60) return say_bytes(conn, source_.text());
    say(conn, request());
  }

  void pass(uint8_t how) {
    const std::optional<TimeMs> due = engine_.next_deadline();
    if (how < 64 && due) {
      ms_ = std::max(ms_, due->count - 5000 + static_cast<int64_t>(how % 3) - 1);
    } else {
      ms_ += how < 250 ? how : int64_t{1} << (how - 220U);
    }
    ms_ = std::min(ms_, kMaxMs);
    if (how % 4 != 0) engine_.tick(now(), fx_);
  }

  void replace(ConnId& conn) {
    engine_.drop(conn, now(), fx_);
    conn = open();
  }

  void say(ConnId conn, const std::vector<std::string_view>& argv) {
    engine_.apply(conn, argv, now(), fx_);
  }

  void say_bytes(ConnId conn, std::string_view bytes) {
    const Limits limits = engine_.config().limits;
    RequestParser parser(limits);
    for (;;) {
      switch (parser.parse(bytes)) {
        case RequestParser::Status::kMore:
          return engine_.record_input(conn, bytes.size());
        case RequestParser::Status::kBroken:
          return engine_.reject(conn, parser.error(), fx_);
        case RequestParser::Status::kRequest:
          if (!parser.argv().empty() && !engine_.apply(conn, parser.argv(), now(), fx_)) return;
          bytes.remove_prefix(parser.consumed());
      }
    }
  }

  // Returns a command of the table with about as many arguments as it takes, from the dictionary or the
  // bytes.
  std::vector<std::string_view> request() {
    const auto commands = all_commands();
    const Command& command = commands[source_.below(commands.size())];
    std::vector<std::string_view> argv;
    argv.push_back(command.container());
    if (command.is_subcommand()) argv.push_back(command.name.substr(argv[0].size() + 1));
    const auto least = static_cast<size_t>(std::abs(command.arity));
    size_t size = std::max(least, argv.size());
    if (command.arity < 0) size += source_.below(6);
    if (command.handler == nullptr && size < 2) ++size;
    while (argv.size() < size) argv.push_back(argument());
    return argv;
  }
  std::string_view argument() {
    if (source_.one_in(8)) return source_.text();
    return words()[source_.below(words().size())];
  }

  // Checks the result of a step.
  void look() {
    for (const ConnId closed : fx_.closes) {
      for (ConnId& conn : conns_) {
        if (conn == closed) replace(conn);
      }
    }
    fx_.clear();
    for (const ConnId conn : conns_) {
      Buffer& out = engine_.output(conn);
      must(RespReader(out.view()).only_whole_replies(), "whole replies");
      out.consume(out.size());
    }
    engine_.check_invariants();
    if (engine_.at_rest()) {
      records_ += engine_.journal_records();
      engine_.clear_journal_records();
    }
  }

  Source& source_;
  Options options_;
  int64_t clock_us_ = 0;
  Engine engine_;
  int64_t ms_ = 0;
  Effects fx_;
  std::array<ConnId, 4> conns_;
  std::string records_;
};

}  // namespace

void fuzz_engine(std::string_view bytes) {
  Source source(bytes);
  const bool kept = source.one_in(4);
  World world(source);
  world.run();
  if (kept) world.check_kept();
  world.end();
}

}  // namespace holdfast::fuzz
