// Plays the transcripts of this folder against the real engine. The test sets the time; there are no
// sleeps and no sockets. transcript.h describes the format. HOLDFAST_TRANSCRIPTS names another folder.
// HOLDFAST_TRANSCRIPTS_REWRITE=1 writes the received replies into the files, to be reviewed as a diff: the
// documented promise decides which of them are right.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codec/resp.h"
#include "core/engine/engine.h"
#include "io/config/options.h"
#include "reply_text.h"
#include "transcript.h"

namespace holdfast::transcript {
namespace {

// Each scenario begins at this moment of the engine's clock, and in wall time on 9 September 2001.
constexpr int64_t kStartMs = 5000;
constexpr int64_t kStartWallUs = 1000000000000000;
constexpr int64_t kLongAfterMs = 100000000;
constexpr int kMostTurns = 10000;

uint32_t small(const std::string& value) { return static_cast<uint32_t>(std::stoul(value)); }

void set_option(Config& config, const std::string& name, const std::string& value) {
  if (name == "session-grace") return void(config.session_grace = DurationMs{std::stoll(value)});
  if (name == "max-token-lead") return void(config.max_token_lead = DurationMs{std::stoll(value)});
  if (name == "token-floor") return void(config.token_floor = std::stoull(value));
  if (name == "owner-bytes") return void(config.limits.owner_bytes = small(value));
  if (name == "waiters") return void(config.limits.waiters = small(value));
  if (name == "waiters-per-key") return void(config.limits.waiters_per_key = small(value));
  if (name == "patterns") return void(config.limits.patterns = small(value));
  if (name == "max-ended-leases") return void(config.limits.max_ended_leases = small(value));
  if (name == "history-max") return void(config.limits.history_events = small(value));
  if (name == "bulk-bytes") return void(config.limits.bulk_bytes = std::stoull(value));
  if (name == "arguments") return void(config.limits.arguments = small(value));
  if (name == "query-buffer-bytes") return void(config.limits.query_buffer_bytes = std::stoull(value));
  if (name == "inline-bytes") return void(config.limits.inline_bytes = small(value));
  if (name == "setting") {  // the output of CONFIG GET: name and value
    const size_t blank = value.find(' ');
    config.settings.emplace_back(value.substr(0, blank), value.substr(blank + 1));
    return;
  }
  throw std::runtime_error("no such option: " + name);
}

// Random bytes that a reader can predict: 00 01 02 and so on, so that the first '*' is 000102...0f.
auto counting_bytes() {
  return [next = uint8_t{0}](std::span<uint8_t> bytes) mutable {
    for (uint8_t& byte : bytes) byte = next++;
  };
}

// CONFIG SET by the server's own option table; each option starts with its default.
auto changer() {
  const char* const argv[] = {"holdfast-server"};
  return [options = *read_options(1, argv)](const ConfigChanges& changes, Config& config) mutable {
    auto refused = change_options(options, changes);
    if (!refused) adopt_changes(options, config);
    return refused;
  };
}

Config config_of(const Scenario& scenario) {
  Config config;
  config.random = counting_bytes();
  config.host_facts = [] { return HostFacts{}; };
  config.change = changer();
  config.rewrite = [](const std::vector<std::string>&) {
    return std::string("The server is running without a config file");
  };
  config.clock_us = [us = int64_t{0}]() mutable { return us += 1000; };
  for (const auto& [name, value] : scenario.options) set_option(config, name, value);
  return config;
}

// Returns the bytes of "a\r\n\x00" without its quotes.
std::string unquoted(const std::string& text) {
  std::string out;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char escape = text[++i];
    if (escape == 'x') {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += escape == 'r' ? '\r' : escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
    }
  }
  return out;
}

// A line that one connection received: the reply as sent, and the same with sorted arrays.
struct Said {
  std::string who;
  std::string text;
  std::string sorted;
};

// An engine and its connections. It does the shell's part: it parses input while the connection is not
// blocked, and handles the effects in their order. Throws where the engine breaks the contract of
// engine.h.
class Player {
 public:
  explicit Player(const Scenario& scenario) : engine_(config_of(scenario)) {}

  // Returns all replies and pushes that this step caused, connections in order of their names.
  std::vector<Said> play(const Step& step) {
    require(step.at_ms >= now_ms_, "time runs backwards");
    now_ms_ = step.at_ms;
    heard_.clear();
    act(step);
    settle_all();
    std::stable_sort(heard_.begin(), heard_.end(),
                     [](const Said& a, const Said& b) { return a.who < b.who; });
    return heard_;
  }

  // At the end all clients disconnect and all deadlines pass: the engine must stay consistent.
  void leave() {
    while (!peers_.empty()) {
      drop(peers_.begin()->first);
      settle_all();
    }
    now_ms_ += kLongAfterMs;
    tick();
    settle_all();
  }

 private:
  struct Peer {
    Peer(ConnId opened, const Limits& limits) : id(opened), parser(limits) {}
    ConnId id;
    RequestParser parser;
    std::string input;
    bool began_to_wait = false;
  };

  static void require(bool kept, const std::string& promise) {
    if (!kept) throw std::runtime_error(promise);
  }

  Now now() const { return {TimeMs{kStartMs + now_ms_}, kStartWallUs + now_ms_ * 1000}; }

  Peer& peer(const std::string& who) {
    const auto found = peers_.find(who);
    return found != peers_.end() ? *found->second : connect(who);
  }

  Peer& connect(const std::string& who) {
    const std::string address = "127.0.0.1:" + std::to_string(50000 + ++opened_);
    const ConnId id = engine_.open(address, "127.0.0.1:7379", now());
    return *(peers_[who] = std::make_unique<Peer>(id, engine_.config().limits));
  }

  const std::string& name_of(ConnId id) const {
    for (const auto& [name, peer] : peers_) {
      if (peer->id == id) return name;
    }
    throw std::runtime_error("effects name a connection that does not exist");
  }

  // Effects may name a connection that disconnected in the same loop iteration.
  bool is_here(ConnId id) const {
    return std::ranges::any_of(peers_, [&](const auto& named) { return named.second->id == id; });
  }

  void act(const Step& step) {
    switch (step.verb) {
      case Verb::kSend:
        return receive(peer(step.who), step.text + "\r\n");
      case Verb::kSendRaw:
        return receive(peer(step.who), unquoted(step.text));
      case Verb::kConnect:
        require(!peers_.contains(step.who), "is connected already");
        connect(step.who);
        return;
      case Verb::kDrop:
        return drop(step.who);
      case Verb::kTick:
        return tick();
    }
  }

  void drop(const std::string& who) {
    const ConnId id = peer(who).id;
    peers_.erase(peers_.find(who));
    engine_.drop(id, now(), fx_);
  }

  // The loop sleeps until next_deadline(), which must not be later than the next due work. Chunked work
  // makes the loop wake up again at once, but must end.
  void tick() {
    const std::optional<TimeMs> before = engine_.next_deadline();
    engine_.tick(now(), fx_);
    require(fx_.empty() || (before && is_due(*before, now().mono)), "the loop would have slept past this");
    for (int turns = 1; something_is_due(); ++turns) {
      require(turns < kMostTurns, "the loop would spin");
      engine_.tick(now(), fx_);
    }
  }

  bool something_is_due() const {
    const std::optional<TimeMs> next = engine_.next_deadline();
    return next && is_due(*next, now().mono);
  }

  void receive(Peer& peer, const std::string& bytes) {
    peer.input += bytes;
    run(peer);
  }

  void run(Peer& peer) {
    while (!engine_.blocked(peer.id) && !engine_.closing(peer.id)) {
      const RequestParser::Status status = peer.parser.parse(peer.input);
      if (status == RequestParser::Status::kMore) break;
      if (status == RequestParser::Status::kBroken) {
        engine_.reject(peer.id, peer.parser.error(), fx_);
        break;
      }
      const size_t consumed = peer.parser.consumed();
      if (!peer.parser.argv().empty()) engine_.apply(peer.id, peer.parser.argv(), now(), fx_);
      peer.input.erase(0, consumed);
      peer.began_to_wait = engine_.blocked(peer.id);
    }
    engine_.record_input(peer.id, peer.input.size());
  }

  bool any_began_to_wait() const {
    return std::any_of(peers_.begin(), peers_.end(),
                       [](const auto& named) { return named.second->began_to_wait; });
  }

  void settle_all() {
    while (!fx_.empty() || any_began_to_wait()) settle();
    check_nothing_is_left();
    engine_.check_invariants();
  }

  // One iteration of the shell's loop.
  void settle() {
    Effects turn;
    std::swap(turn, fx_);
    for (const ConnId id : turn.closes) close(id);
    std::set<uint64_t> told;
    for (const ConnId id : turn.dirty) {
      require(told.insert(id.serial).second, "a connection stands twice in Effects::dirty");
      if (is_here(id)) hear(id);
    }
    for (const auto& [name, peer] : peers_) {
      if (std::exchange(peer->began_to_wait, false)) heard_.push_back({name, "(waits)", "(waits)"});
    }
    for (const ConnId id : turn.wakes) {
      if (is_here(id)) run(*peers_.at(name_of(id)));
    }
  }

  void hear(ConnId id) {
    Buffer& output = engine_.output(id);
    ReplyText plain(output.view(), false);
    ReplyText sorted(output.view(), true);
    while (!plain.done()) {
      std::string text = plain.next();
      heard_.push_back({name_of(id), std::move(text), sorted.next()});
    }
    output.consume(output.size());
  }

  void close(ConnId id) {
    hear(id);
    const std::string name = name_of(id);
    heard_.push_back({name, "(closed)", "(closed)"});
    engine_.drop(id, now(), fx_);
    peers_.erase(name);
  }

  void check_nothing_is_left() {
    for (const auto& [name, peer] : peers_) {
      require(engine_.output(peer->id).empty(), name + " has output but is not in Effects::dirty");
      require(!engine_.closing(peer->id), name + " is closing but not in Effects::closes");
    }
  }

  Engine engine_;
  std::map<std::string, std::unique_ptr<Peer>> peers_;
  int64_t now_ms_ = 0;
  int opened_ = 0;
  Effects fx_;
  std::vector<Said> heard_;
};

bool same(const Heard& expected, const Said& said) {
  if (expected.who != said.who) return false;
  constexpr std::string_view kSorted = "sorted ";
  if (!expected.text.starts_with(kSorted)) return matches(expected.text, said.text);
  return matches(std::string_view(expected.text).substr(kSorted.size()), said.sorted);
}

bool same(const std::vector<Heard>& expected, const std::vector<Said>& said) {
  return std::equal(expected.begin(), expected.end(), said.begin(), said.end(),
                    [](const Heard& e, const Said& s) { return same(e, s); });
}

std::string listed(const auto& lines) {
  std::string out;
  for (const auto& line : lines) out += "\n    " + line.who + " < " + line.text;
  return out.empty() ? "\n    nothing" : out;
}

void fail_at(const Scenario& scenario, int line, const std::string& what) {
  ADD_FAIL_CHECK_AT(scenario.file.c_str(), line, scenario.name << "\n  " << what);
}

// Returns an empty text if the step caused the expected lines.
std::string play(Player& player, const Step& step) {
  std::string got;
  try {
    const std::vector<Said> said = player.play(step);
    if (same(step.heard, said)) return "";
    got = listed(said);
  } catch (const std::runtime_error& broken) {
    got = std::string("\n    a broken contract: ") + broken.what();
  }
  return "step: " + step.who + " " + step.text + "\n  expected:" + listed(step.heard) + "\n  got:" + got;
}

// Stops at the first wrong step: later steps would only repeat its error.
void check(const Scenario& scenario) {
  Player player(scenario);
  for (const Step& step : scenario.steps) {
    const std::string wrong = play(player, step);
    if (!wrong.empty()) return fail_at(scenario, step.line, wrong);
  }
  try {
    player.leave();
  } catch (const std::runtime_error& broken) {
    fail_at(scenario, scenario.line, std::string("when everybody had gone: ") + broken.what());
  }
}

// The scenarios of the files. Each has the name of its file and its own name; the pair is unique.
using Scenarios = std::map<std::string, std::vector<Scenario>>;

Scenarios read_folder() {
  const char* folder = std::getenv("HOLDFAST_TRANSCRIPTS");
  Scenarios found;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder ? folder : "tests/transcripts")) {
    if (entry.path().extension() != ".txt") continue;
    std::vector<Scenario>& scenarios = found[entry.path().string()];
    scenarios = Reader(entry.path().string()).read();
    for (Scenario& scenario : scenarios) {
      scenario.name = entry.path().stem().string() + ": " + scenario.name;
      if (!names.insert(scenario.name).second) throw std::runtime_error("twice: " + scenario.name);
    }
  }
  return found;
}

// Writes one reply as lines of a transcript, and breaks long lines after a comma.
std::string written(const Said& said) {
  constexpr size_t kColumns = 96;
  std::string out;
  std::string line = "     " + said.who + " < " + said.text;
  while (line.size() > kColumns) {
    const size_t comma = line.rfind(", ", kColumns);
    if (comma == std::string::npos) break;
    out += line.substr(0, comma + 1) + "\n";
    line = "       | " + line.substr(comma + 2);
  }
  return out + line + "\n";
}

// The changes to a file: the lines to remove, and the text to insert after the line of a step.
struct Changes {
  std::set<int> left_out;
  std::map<int, std::string> said_after;
};

void note_changes(const Scenario& scenario, Changes& changes) {
  Player player(scenario);
  for (const Step& step : scenario.steps) {
    const std::vector<Said> said = player.play(step);
    if (same(step.heard, said)) continue;
    for (const Heard& heard : step.heard) {
      for (int line = heard.line; line <= heard.last_line; ++line) changes.left_out.insert(line);
    }
    for (const Said& one : said) changes.said_after[step.line] += written(one);
  }
}

void rewrite(const std::string& file, const std::vector<Scenario>& scenarios) {
  Changes changes;
  for (const Scenario& scenario : scenarios) note_changes(scenario, changes);
  std::ifstream in(file);
  std::string text;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    if (!changes.left_out.contains(++number)) text += line + "\n";
    if (changes.said_after.contains(number)) text += changes.said_after[number];
  }
  in.close();
  std::ofstream(file) << text;
}

bool rewriting() {
  const char* wish = std::getenv("HOLDFAST_TRANSCRIPTS_REWRITE");
  return wish != nullptr && std::string_view(wish) == "1";
}

}  // namespace

TEST_CASE("transcripts: each scenario receives exactly the lines that it expects") {
  static const Scenarios kFiles = read_folder();
  REQUIRE_FALSE(kFiles.empty());
  for (const auto& [file, scenarios] : kFiles) {
    if (rewriting()) {
      rewrite(file, scenarios);
      continue;
    }
    for (const Scenario& scenario : scenarios) {
      SUBCASE(scenario.name.c_str()) { check(scenario); }
    }
  }
}

}  // namespace holdfast::transcript
