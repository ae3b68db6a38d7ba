#include "proxy/server_check.h"

#include <map>
#include <utility>

namespace holdfast::proxy {

using client::Value;

namespace {

constexpr DurationMs kBetween{1000};
constexpr std::string_view kOfProxy = "ERR holdfast-proxy ";

std::string run_id_in(const Value& answer) {
  const bool known = answer.kind == Value::Kind::kArray && !answer.elements.empty();
  return known ? answer.elements.front().text : std::string();
}

}  // namespace

std::string refuse_servers(const std::vector<std::string>& names, const Quorum::Answers& answers) {
  std::map<std::string, size_t> by_run_id;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) continue;
    if (answers[i]->kind == Value::Kind::kError && answers[i]->text.starts_with(kOfProxy))
      return "ERR holdfast-proxy: " + names[i] + " is a proxy; name Holdfast servers in --servers";
    const std::string run_id = run_id_in(*answers[i]);
    if (run_id.empty()) continue;
    const auto [other, is_new] = by_run_id.emplace(run_id, i);
    if (!is_new)
      return "ERR holdfast-proxy: " + names[other->second] + " and " + names[i] +
             " are one server; name each server once in --servers";
  }
  return {};
}

ServerCheck::ServerCheck(Quorum& quorum, std::function<void(const std::string&)> log,
                         std::function<void()> known)
    : quorum_(quorum),
      log_(std::move(log)),
      known_(std::move(known)),
      answers_(quorum.size()),
      timer_(quorum.loop(), [this] { ask(); }) {
  ask();
}

void ServerCheck::ask() {
  quorum_.ask({"LOCKS", "HEARTBEAT"}, [this](const Quorum::Answers& answers) {
    for (const auto& answer : answers) {
      if (!answer) return false;
    }
    judge(answers);
    return true;
  });
}

void ServerCheck::judge(const Quorum::Answers& answers) {
  std::vector<std::string> names;
  for (size_t i = 0; i < answers.size(); ++i) {
    names.push_back(quorum_.name(i));
    record(i, *answers[i]);
  }
  std::string refusal = refuse_servers(names, answers);
  if (!refusal.empty() && refusal != refusal_) log_("no request on keys is served: " + refusal);
  if (refusal.empty() && !refusal_.empty()) log_("requests on keys are served again");
  refusal_ = std::move(refusal);
  timer_.set(client::Loop::now() + kBetween);
  if (const auto known = std::exchange(known_, nullptr)) known();
}

void ServerCheck::record(size_t server, const Value& answer) {
  const bool answers = answer.kind != Value::Kind::kLost;
  if (answers) quorum_.pay_releases(server);
  const std::optional<bool> before = std::exchange(answers_[server], answers);
  if (before == answers) return;
  const std::string name = "server " + quorum_.name(server);
  const bool refuses = answer.kind == Value::Kind::kError;
  log_(name + (answers ? " answers" : " does not answer") +
       (answers && !refuses ? "" : ": " + answer.text));
}

}  // namespace holdfast::proxy
