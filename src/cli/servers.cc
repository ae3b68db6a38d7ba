// The main thread waits for a promise that the loop's thread fulfils.
#include "cli/servers.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>

#include "client/base/login.h"

namespace holdfast {
namespace {

using std::chrono::steady_clock;

// One request to several servers, or several requests to one; its callbacks share the ownership.
struct Round {
  std::vector<Answer> answers;
  size_t open = 0;
  Servers::Answered done;
};

void keep(Round& round, size_t i, const client::Value& value, steady_clock::time_point asked) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - asked);
  Answer& answer = round.answers[i];
  answer.value = value;
  answer.round_trip_us = took.count();
  answer.clock_us = static_cast<int64_t>(client::Loop::clock_us()) - took.count() / 2;
  if (--round.open == 0) round.done(round.answers);
}

client::ClientConfig config_of(const std::string& where) {
  client::ClientConfig config = client::client_config_of(where);
  for (client::Address& address : config.servers) address.client_name = "holdfast";
  return config;
}

}  // namespace

std::string Answer::why() const {
  return value.text.empty()               ? "no answer"
         : is(client::Value::Kind::kLost) ? "no answer: " + client::with_advice(value.text)
                                          : client::with_advice(value.text);
}

Servers::Servers(const std::string& where)
    : config_(config_of(where)), ring_(config_.names(), config_.replicas) {
  loop_.post([this] {
    for (const client::Address& address : config_.servers)
      links_.push_back(client::make_link(loop_, address));
  });
}

Servers::~Servers() {
  loop_.post([this] { links_.clear(); });
}

std::vector<size_t> Servers::all() const {
  std::vector<size_t> numbers(config_.servers.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}

std::vector<size_t> Servers::of_key(const std::string& key) const {
  std::vector<size_t> numbers = ring_.servers_of(key);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<Answer> Servers::ask(const std::vector<size_t>& servers, const std::vector<std::string>& argv) {
  std::promise<void> done;
  const auto round = std::make_shared<Round>();
  round->open = servers.size();
  round->done = [&done](const std::vector<Answer>&) { done.set_value(); };
  for (const size_t server : servers) round->answers.push_back({name(server), {}, 0, 0});
  loop_.post([this, round, servers, argv] {
    for (size_t i = 0; i < servers.size(); ++i) {
      const auto asked = steady_clock::now();
      links_[servers[i]]->ask(argv, config_.server_timeout, [round, i, asked](const client::Value& value) {
        keep(*round, i, value, asked);
      });
    }
  });
  done.get_future().wait();
  return std::move(round->answers);
}

void Servers::start(size_t server, const std::vector<std::vector<std::string>>& requests,
                    const Answered& done) {
  const auto round = std::make_shared<Round>();
  round->open = requests.size();
  round->done = done;
  round->answers.assign(requests.size(), {name(server), {}, 0, 0});
  loop_.post([this, round, server, requests] {
    if (links_.empty()) return;  // a callback started this while the destructor ran
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto asked = steady_clock::now();
      links_[server]->ask(requests[i], config_.server_timeout,
                          [round, i, asked](const client::Value& value) { keep(*round, i, value, asked); });
    }
  });
}

void Servers::watch(const std::vector<size_t>& servers, const std::string& channel,
                    const OnMessage& on_message, const Lost& lost) {
  loop_.post([this, servers, channel, on_message, lost] {
    for (const size_t server : servers) {
      links_[server]->on_watch_loss([server, lost](const std::string& why) { lost(server, why); });
      links_[server]->watch(
          channel, [server, on_message](const std::string& message) { on_message(server, message); });
    }
  });
}

void Servers::watch_pattern(const std::vector<size_t>& servers, const std::string& pattern,
                            const OnPatternMessage& on_message, const Lost& lost) {
  loop_.post([this, servers, pattern, on_message, lost] {
    for (const size_t server : servers) {
      links_[server]->on_watch_loss([server, lost](const std::string& why) { lost(server, why); });
      links_[server]->watch_pattern(
          pattern, [server, on_message](const std::string& channel, const std::string& message) {
            on_message(server, channel, message);
          });
    }
  });
}

}  // namespace holdfast
