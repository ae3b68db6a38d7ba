#include "client/api/metered_link.h"

#include <utility>

#include "client/api/client_meter.h"

namespace holdfast {

using client::Loop;

MeteredLink::MeteredLink(std::unique_ptr<client::Link> link, std::shared_ptr<ClientMeter> meter,
                         size_t server)
    : meter_(std::move(meter)), server_(server), link_(std::move(link)) {}

void MeteredLink::ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) {
  link_->ask(argv, timeout,
             [meter = meter_.get(), server = server_, asked_us = Loop::now_us(),
              done = std::move(done)](const client::Value& value) {
               const microseconds took(Loop::now_us() - asked_us);
               meter->record_request(server, value.kind != client::Value::Kind::kLost, false, took);
               done(value);
             });
}

client::Link::Wait MeteredLink::wait(const std::vector<std::string>& argv, const Done& done) {
  const auto counted = [meter = meter_.get(), server = server_, asked_us = Loop::now_us(),
                        done](const client::Reply& reply) {
    const microseconds took(Loop::now_us() - asked_us);
    meter->record_request(server, reply.kind != client::Reply::Kind::kLost, true, took);
    done(reply);
  };
  return link_->wait(argv, counted);
}

client::Link::Watch MeteredLink::watch(const std::string& channel,
                                       std::function<void(const std::string&)> on_message) {
  return link_->watch(channel, std::move(on_message));
}

client::Link::Watch MeteredLink::watch_pattern(const std::string& pattern, OnPatternMessage on_message) {
  return link_->watch_pattern(pattern, std::move(on_message));
}

void MeteredLink::on_watch_loss(std::function<void(const std::string& why)> callback) {
  link_->on_watch_loss(std::move(callback));
}

}  // namespace holdfast
