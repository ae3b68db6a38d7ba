#include "redlock_server.h"

#include <algorithm>
#include <cassert>
#include <charconv>

namespace holdfast::simulation::redlock {

namespace {

constexpr std::string_view kOwner = "$5\r\nowner\r\n$32\r\n";

// Returns the text behind `field` in a reply: "$4\r\nleft\r\n:12\r\n".
std::string_view behind(std::string_view text, std::string_view field) {
  const size_t at = text.find(field);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + field.size());
}

}  // namespace

void Server::start(int64_t now_us, const IssuedTokens& before) {
  Config config;
  config.boot_id = "boot " + std::to_string(boots_);
  config.first_ahead_ms = first_ahead_ms_;
  config.token_floor = before.largest;
  config.tokens_ahead = before.ahead;
  engine_ = std::make_unique<Engine>(std::move(config));
  const std::string failure = engine_->replay(journal_, now(now_us));
  assert(failure.empty());
  engine_->keep_journal();
  engine_->finish_loading(now(now_us));
  probe_ = engine_->open("127.0.0.1:1", "127.0.0.1:2", now(now_us));
}

std::map<uint64_t, Server::LinkName> Server::stop(int64_t now_us) {
  stopped_us_ = now_us;
  issued_ = engine_->tokens().issued();
  engine_.reset();
  links.clear();
  loading = false;
  return std::exchange(waits, {});
}

void Server::restart(int64_t now_us, const Step& step, bool reset) {
  const auto last =
      std::upper_bound(sizes_.begin(), sizes_.end(), std::pair{stopped_us_ - step.behind_us, SIZE_MAX});
  if (step.memory == Memory::kNone) sizes_.clear();
  if (step.memory == Memory::kSnapshot) sizes_.erase(last, sizes_.end());
  journal_.resize(sizes_.empty() ? 0 : sizes_.back().second);
  wall_moved_us_ += step.wall_moves_us;
  if (step.reboots) {
    constexpr int64_t kBootMs = 7;  // from the start of the machine to that of the server
    clock.start_ms += kBootMs - clock.at(now_us);
    ++boots_;
    first_ahead_ms_ = now(now_us).ahead_ms();
  }
  start(now_us, reset ? IssuedTokens{} : issued_);
}

bool Server::recovering(int64_t now_us) {
  return !is_due(engine_->availability().recovering_until, TimeMs{clock.at(now_us)});
}

std::string Server::apply(ConnId id, const std::vector<std::string>& argv, int64_t now_us, Effects& fx) {
  const std::vector<std::string_view> views(argv.begin(), argv.end());
  engine_->apply(id, views, now(now_us), fx);
  collect(now_us);
  return taken(id);
}

std::string Server::taken(ConnId id) {
  Buffer& output = engine_->output(id);
  std::string text(output.view());
  output.consume(output.size());
  return text;
}

void Server::collect(int64_t now_us) {
  const std::string_view records = engine_->journal_records();
  if (records.empty()) return;
  journal_ += records;
  sizes_.emplace_back(now_us, journal_.size());
  engine_->clear_journal_records();
}

KeyState Server::look(const std::string& key, int64_t now_us, Effects& fx) {
  const std::string all = apply(probe_, {"LOCKS", "INFO", key}, now_us, fx);
  const size_t waiters = all.find("$7\r\nwaiters\r\n*");
  KeyState state;
  state.waiters = waiters != std::string::npos && !all.substr(waiters).starts_with("$7\r\nwaiters\r\n*0");
  std::string_view text = std::string_view(all).substr(0, waiters);
  while (!(text = behind(text, kOwner)).empty()) {
    const std::string_view left = behind(text, "ttl\r\n:");
    int64_t ms = 0;
    std::from_chars(left.data(), left.data() + left.size(), ms);
    state.holders.emplace_back(text.substr(0, 32), ms);
  }
  return state;
}

}  // namespace holdfast::simulation::redlock
