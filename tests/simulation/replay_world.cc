// Plays the steps.
#include "replay_world.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/base/checksum.h"
#include "core/engine/engine_parts.h"
#include "core/persist/load_snapshot.h"
#include "unit/state_text.h"

namespace holdfast::simulation {
namespace {

void choose_limits(Limits& limits, Dice& dice) {
  limits.hash_packed_entries = dice.pick<uint32_t>({0, 4, 16, 512});
  limits.hash_packed_value_bytes = dice.pick<uint32_t>({0, 8, 64, 200});
  limits.set_intset_entries = dice.pick<uint32_t>({0, 4, 512});
  limits.zset_packed_entries = dice.pick<uint32_t>({0, 4, 128});
  limits.zset_packed_member_bytes = dice.pick<uint32_t>({0, 8, 64});
}

Config any_config(uint64_t seed) {
  Dice dice(seed);
  Config config = session_config();
  config.hash_seed = dice.below(UINT64_MAX);
  if (!dice.one_in(3)) choose_limits(config.limits, dice);
  return config;
}

// The first line that differs.
std::string difference(const std::string& live, const std::string& loaded) {
  std::istringstream a(live);
  std::istringstream b(loaded);
  std::string of_live;
  std::string of_loaded;
  do {
    if (!std::getline(a, of_live)) of_live = "(end)";
    if (!std::getline(b, of_loaded)) of_loaded = "(end)";
  } while (of_live == of_loaded && of_live != "(end)");
  return "the states differ\n#   live:   " + of_live.substr(0, 600) +
         "\n#   loaded: " + of_loaded.substr(0, 600);
}

// The text of a bulk string; empty if the reply is none.
std::string bulk_in(const std::string& reply) {
  const size_t end = reply.find("\r\n");
  if (!reply.starts_with("$") || reply.starts_with("$-") || end == std::string::npos) return {};
  return reply.substr(end + 2, std::stoul(reply.substr(1)));
}

}  // namespace

ReplayWorld::ReplayWorld(uint64_t seed)
    : now_(session_time(0)), engine_(std::make_unique<Engine>(any_config(seed))), clients_(kClients) {
  engine_->keep_journal();
  for (size_t i = 0; i < kClients; ++i) connect(i);
}

ReplayWorld::~ReplayWorld() = default;

void ReplayWorld::connect(size_t client) {
  clients_[client] = std::make_unique<TestClient>(*engine_, now_);
}

std::string ReplayWorld::play(const ReplayStep& step) {
  now_ = session_time(step.ms);
  using Kind = ReplayStep::Kind;
  switch (step.kind) {
    case Kind::kAsk:
      ask(step);
      break;
    case Kind::kTick: {
      Effects fx;
      engine_->tick(now_, fx);
      for (const auto& client : clients_) client->received();
      break;
    }
    case Kind::kReconnect:
      clients_[step.number]->at(now_);
      clients_[step.number]->disconnect();
      connect(step.number);
      break;
    case Kind::kOptions: {
      Dice dice(step.number);
      choose_limits(engine_->state().config.limits, dice);
      break;
    }
    case Kind::kSnapshot:
      begin_snapshot();
      break;
    case Kind::kWalk:
      walk(step.number);
      break;
    case Kind::kCompare:
    case Kind::kRestart:
      return compare(step);
  }
  if (step.ends_iteration) take_records();
  return {};
}

void ReplayWorld::ask(const ReplayStep& step) {
  TestClient& client = *clients_[step.number];
  client.at(now_);
  if (client.blocked()) return;
  const std::string reply = client.ask(step.words);
  for (const auto& other : clients_) other->received();
  const bool of_libraries = step.words[0] == "FUNCTION";
  const size_t dump = of_libraries ? 1 : 0;  // the place of this word
  if (step.words.size() <= dump || step.words[dump] != "DUMP") return;
  if (std::string payload = bulk_in(reply); !payload.empty()) payloads_[of_libraries ? 1 : 0] = payload;
}

void ReplayWorld::take_records() {
  if (const std::string_view records = engine_->journal_records(); !records.empty())
    frames_.emplace_back(records);
  engine_->clear_journal_records();
}

void ReplayWorld::begin_snapshot() {
  if (snapshot_ != nullptr || !engine_->at_rest()) return;
  take_records();
  frames_before_ = frames_.size();
  engine_->begin_journal_file();
  snapshot_ = std::make_unique<Snapshot>(engine_->state(), now_, 1, true);
}

void ReplayWorld::walk(uint64_t steps) {
  for (; snapshot_ != nullptr && steps > 0; --steps) {
    if (!snapshot_->step()) continue;
    file_ = snapshot_->bytes();
    append_crc(file_, crc64(0, file_));
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(frames_before_));
    snapshot_ = nullptr;
  }
}

std::string ReplayWorld::load(Engine& again) const {
  if (!file_.empty()) {
    Restore restore(again.state(), now_, false);
    if (!restore.feed(file_) || !restore.finish()) return "the snapshot is refused: " + restore.error();
  }
  for (size_t i = 0; i < frames_.size(); ++i) {
    if (const std::string why = again.replay(frames_[i], now_); !why.empty())
      return "record " + std::to_string(i) + " after the snapshot is refused: " + why;
  }
  return {};
}

std::string ReplayWorld::compare(const ReplayStep& step) {
  if (!engine_->at_rest()) return {};
  take_records();
  auto again = std::make_unique<Engine>(any_config(step.number));
  if (std::string why = load(*again); !why.empty()) return why;
  const std::string live = state_text(*engine_, now_);
  const std::string loaded = state_text(*again, now_);
  if (live != loaded) return difference(live, loaded);
  again->keep_journal();
  again->finish_loading(now_);
  engine_->check_invariants();
  again->check_invariants();
  if (step.kind == ReplayStep::Kind::kCompare) return {};
  snapshot_ = nullptr;
  clients_.clear();
  engine_ = std::move(again);
  clients_.resize(kClients);
  for (size_t i = 0; i < kClients; ++i) connect(i);
  begin_snapshot();
  walk(UINT64_MAX);
  return {};
}

}  // namespace holdfast::simulation
