// Start and end of the client.
#include "client/api/client_core.h"

#include <unistd.h>

#include <cassert>
#include <stdexcept>
#include <utility>

#include "client/api/hold_core.h"
#include "client/api/metered_link.h"
#include "client/transport/auth.h"

namespace holdfast {

namespace {

// A server that rejected a NOTE gets the next one after this time: it may have been upgraded.
constexpr DurationMs kNotesRetried{60000};

// Lets all connections have the client's name and report to the meter.
client::ClientConfig introduced(client::ClientConfig config, const std::string& name,
                                const std::shared_ptr<ClientMeter>& meter) {
  for (size_t i = 0; i < config.servers.size(); ++i) {
    config.servers[i].client_name = client::connection_name(name);
    config.servers[i].on_connection = [meter, i](bool open) { meter->record_connection(i, open); };
  }
  return config;
}

}  // namespace

ClientCore::ClientCore(client::ClientConfig config, const ClientOptions& options)
    : meter_(std::make_shared<ClientMeter>(config.names(), options.on_event)),
      config_(introduced(std::move(config), options.name, meter_)),
      ring_(config_.names(), config_.replicas),
      pid_(getpid()),
      resume_(options.resume),
      loop_owner_(std::make_unique<client::Loop>()),
      loop_(loop_owner_.get()) {
  for (const client::Address& address : config_.servers) servers_.push_back(client::server_of(address));
  loop_->post([this] {
    for (size_t i = 0; i < config_.servers.size(); ++i) open_server(i);
  });
}

void ClientCore::open_server(size_t server) {
  const client::Address& address = config_.servers[server];
  links_.push_back(std::make_unique<MeteredLink>(client::make_link(*loop_, address), meter_, server));
  channels_.emplace_back();
  if (config_.replicas == 1 || address.redis) return;
  channels_.back() = std::make_shared<client::Channel>(
      *loop_, address, [meter = meter_.get(), server](bool answered, client::DurationUs took) {
        meter->record_request(server, answered, false, microseconds(took.count));
      });
}

ClientCore::~ClientCore() { assert(loop_owner_ == nullptr && "close() comes first"); }

bool ClientCore::is_forked() const { return getpid() != pid_; }

void ClientCore::forbid_after_fork() const {
  if (is_forked())
    throw std::logic_error("this holdfast::Client belongs to the parent process: make a new one");
}

void ClientCore::forbid_to_wait() {
  forbid_after_fork();
  const std::lock_guard lock(mutex_);
  if (!closed_ && loop_->on_thread())
    throw std::logic_error("a callback of holdfast::Client must not wait for the client");
}

bool ClientCore::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  loop_->post(std::move(work));
  return true;
}

void ClientCore::close() {
  forbid_to_wait();
  post([this] {
    closing_ = true;
    const auto all = holds_;  // a copy, because holds that end leave holds_
    for (const auto& hold : all) hold->cancel();
    forget(nullptr);
  });
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return all_ended_; });
  closed_ = true;
  lock.unlock();
  loop_owner_.reset();  // runs the work posted before
  servers_.clear();
}

bool ClientCore::takes_notes(size_t server) const {
  const auto rejected = without_notes_.find(server);
  return rejected == without_notes_.end() || is_due(rejected->second, client::Loop::now());
}

void ClientCore::record_no_notes(size_t server) {
  without_notes_[server] = client::Loop::now() + kNotesRetried;
}

bool ClientCore::waits_by_ticket(const std::vector<size_t>& servers) const {
  return servers.size() > 1 && std::ranges::all_of(servers, [this](size_t server) {
           const auto& there = channels_[server];
           return there != nullptr && there->tickets() != client::Channel::Tickets::kNotKnown;
         });
}

void ClientCore::adopt(std::shared_ptr<HoldCore> hold) { holds_.insert(std::move(hold)); }

void ClientCore::forget(const std::shared_ptr<HoldCore>& hold) {
  holds_.erase(hold);
  if (!closing_ || !holds_.empty() || works_ != 0) return;
  slots_.clear();
  channels_.clear();
  links_.clear();
  const std::lock_guard lock(mutex_);
  all_ended_ = true;
  ended_.notify_all();
}

void ClientCore::end_work() {
  --works_;
  forget(nullptr);
}

void ClientCore::resume(std::function<void()> work) const {
  if (resume_) return resume_(std::move(work));
  work();
}

void ClientCore::ask(size_t server, const std::vector<std::string>& argv,
                     const client::Link::Answered& done) {
  if (closing_) return done({client::Value::Kind::kLost, 0, "the client was destroyed", {}});
  begin_work();
  link(server).ask(argv, config_.server_timeout, [this, done](const client::Value& value) {
    done(value);
    end_work();
  });
}

}  // namespace holdfast
