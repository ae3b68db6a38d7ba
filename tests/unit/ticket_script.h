// A TicketWait driven by a test: its requests as short lines, answers by server, and a clock that the test
// sets. The clocks of the servers are 5 s ahead of the client's, whose time begins at 1 s.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/algorithm/ticket_wait.h"

namespace holdfast::client {

inline TicketConfig ticket_config(size_t servers = 3) {
  TicketConfig config;
  config.servers = servers;
  config.quorum = servers / 2 + 1;
  config.terms.key = "k";
  config.ttl = {1000};  // so V = 500 ms; X = 80 ms, and a wait with votes is repeated after 32 ms
  return config;
}

struct TicketScript {
  explicit TicketScript(TicketConfig with = ticket_config(), uint64_t clock_us = 700,
                        bool late_clock = false)
      : config(std::move(with)), slot("s", config.servers), pulses(config.servers) {
    slot.clock_is_late = late_clock;
    for (Pulse& pulse : pulses) pulse.open(now);
    wait = std::make_unique<TicketWait>(config, slot, std::span<const Pulse>(pulses));
    wait->acquire(now, clock_us);
    look();
  }

  // The requests since the last call, as "0:LOCK k s.1 500 TICKET 700|...".
  std::string sent() {
    look();
    return std::exchange(sent_, "");
  }
  // Forgets them.
  void skip() { sent(); }

  // Answers the last request of this kind to the server, one `trip` after it was sent at the earliest.
  void answer(size_t server, std::string_view kind, const Answer& answer) {
    look();
    const auto found = asked_.find({server, std::string(kind)});
    REQUIRE(found != asked_.end());
    answer_to(found->second, answer);
  }
  void answer_to(const Asked& asked, const Answer& answer) {
    REQUIRE(pulses[asked.server].answered(pulses[asked.server].newest(), asked.at, now));
    if (const auto* a = std::get_if<WaitAnswer>(&answer))
      pulses[asked.server].record_time(asked.at, a->now);
    wait->on_answer(asked, answer, now);
    look();
  }
  void queued(size_t server, uint64_t floor = 0, std::vector<std::string> over = {}) {
    answer(server, "LOCK",
           WaitAnswer{WaitAnswer::State::kQueued, 0, {}, server_now(), floor, std::move(over)});
  }
  void vote(size_t server, uint64_t token, uint64_t floor = 0) {
    answer(server, "LOCK",
           WaitAnswer{WaitAnswer::State::kVote, token, server_now(), server_now(), floor, {}});
  }
  void number(size_t server, std::string_view kind, int64_t n) { answer(server, kind, Count{n}); }
  void refuse(size_t server, Refusal::Code code) { answer(server, "LOCK", Refusal{code, "why"}); }
  void push_vote(size_t server, uint64_t token, std::vector<std::string> over = {}) {
    wait->on_push(server, VotePush{wait->owner(), token, server_now(), server_now(), 0, std::move(over)},
                  now);
    look();
  }
  void inquire(size_t server, uint64_t token) {
    wait->on_push(server, InquirePush{wait->owner(), token}, now);
    look();
  }
  // The server has answered a heartbeat that was sent now.
  void beat(size_t server) { pulses[server].answered(pulses[server].newest(), now, now); }

  // Sets the time, in us since the begin, and runs the due work.
  void at(int64_t us) {
    now = {1'000'000 + us};
    wait->on_time(now);
    look();
  }
  int64_t deadline() const { return wait->next_deadline().count - 1'000'000; }
  TimeMs server_now() const { return {now.count / 1000 + 5000}; }
  TicketWait::State state() const { return wait->state(); }
  bool waiting() const { return state() == TicketWait::State::kWaiting; }
  bool holding() const { return state() == TicketWait::State::kHolding; }
  bool parked() const { return state() == TicketWait::State::kParked; }
  Asked asked(size_t server, const std::string& kind) const { return asked_.at({server, kind}); }

  TicketConfig config;
  TicketSlot slot;
  std::vector<Pulse> pulses;
  TimeUs now{1'000'000};
  std::unique_ptr<TicketWait> wait;

 private:
  std::map<std::pair<size_t, std::string>, Asked> asked_;
  std::string sent_;

  void look() {
    wait->check_invariants();
    for (const Asked& asked : wait->take_requests()) {
      const std::vector<std::string> words = encode(asked.request, config.terms);
      sent_ += (sent_.empty() ? "" : "|") + std::to_string(asked.server) + ":";
      for (const std::string& word : words) sent_ += (&word == words.data() ? "" : " ") + word;
      asked_.insert_or_assign({asked.server, words[words[0] == "LOCKS" ? 1 : 0]}, asked);
      pulses[asked.server].sent(asked.at);
    }
  }
};

}  // namespace holdfast::client
