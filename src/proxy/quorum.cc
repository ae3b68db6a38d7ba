#include "proxy/quorum.h"

#include <utility>

#include "client/api/ticket_lock.h"

namespace holdfast::proxy {

Quorum::Quorum(client::ClientConfig place, uv_loop_s& loop)
    : place_(std::move(place)), loop_(std::make_unique<client::Loop>(loop)), owed_(place_.servers.size()) {
  for (const client::Address& address : place_.servers) {
    links_.push_back(client::make_link(*loop_, address));
    channels_.push_back(std::make_shared<client::Channel>(*loop_, address));
  }
}

Quorum::~Quorum() = default;

void Quorum::close() {
  slots_.clear();
  channels_.clear();
  links_.clear();
  loop_->leave();
}

void Quorum::ask(const std::vector<std::string>& argv, Look look) {
  struct Round {
    Answers answers;
    Look look;  // null: done
  };
  const auto round = std::make_shared<Round>(Round{Answers(size()), std::move(look)});
  for (size_t i = 0; i < size(); ++i) {
    links_[i]->ask(argv, timeout(), [round, i](const client::Value& value) {
      round->answers[i] = value;
      if (!round->look) return;
      Look judge = std::exchange(round->look, nullptr);
      if (!judge(round->answers)) round->look = std::move(judge);
    });
  }
}

void Quorum::tell(size_t server, const std::vector<std::string>& argv) {
  links_[server]->ask(argv, timeout(), [](const client::Value&) {});
}

void Quorum::owe_release(size_t server, const std::string& key, const std::string& owner) {
  owed_[server].emplace_back(key, owner);
  if (owed_[server].size() > kMostOwed) owed_[server].pop_front();
}

void Quorum::pay_releases(size_t server) {
  for (const auto& hold : std::exchange(owed_[server], {})) {
    links_[server]->ask({"UNLOCK", hold.first, hold.second}, timeout(),
                        [this, server, hold](const client::Value& value) {
                          const bool lost = value.kind == client::Value::Kind::kLost;
                          if (lost) owe_release(server, hold.first, hold.second);
                        });
  }
}

std::unique_ptr<DrivenLock> Quorum::acquire(const Wish& wish) {
  TicketLock::Settings settings;
  client::TicketConfig& config = settings.config;
  config.servers = size();
  config.quorum = wish.mode == client::LockMode::kCounted ? size() : quorum();
  config.breach = size() + 1 - config.quorum;
  config.terms = {wish.key, wish.mode, wish.limit, wish.note, wish.delay};
  config.ttl = wish.ttl;
  config.server_timeout = client::us_of(timeout());
  if (wish.wait) config.limit = client::us_of(*wish.wait);
  config.times.confirm = {0};
  settings.channels = channels_;
  settings.confirms_first = true;
  settings.max_attempts = 1;
  settings.slot = wish.slot;
  auto lock = std::make_unique<DrivenLock>();
  lock->driver = std::make_shared<TicketLock>(*loop_, slots_, *lock, std::move(settings));
  return lock;
}

}  // namespace holdfast::proxy
