#include "proxy/proxy.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "client/base/address.h"
#include "client/base/login.h"
#include "proxy/gateway.h"
#include "proxy/quorum.h"

namespace holdfast::proxy {

namespace {

// A quorum of one is a server's own lock.
std::string address_of(const ProxySettings& settings) {
  std::string text = settings.servers;
  if (text.find("://") == std::string::npos) text = "quorum://" + text;
  const char separator = text.find('?') == std::string::npos ? '?' : '&';
  return text + separator + "timeout=" + std::to_string(settings.server_timeout.count);
}

}  // namespace

std::string check_servers(const ProxySettings& settings) {
  if (settings.servers.empty())
    return "--servers is missing: name the servers, as in --servers a:7379,b:7379,c:7379";
  try {
    const client::ClientConfig place = client::client_config_of(address_of(settings));
    if (std::ranges::any_of(place.servers, [](const client::Address& a) { return a.redis || a.embedded; }))
      return "--servers: the proxy needs Holdfast servers, not Redis and not embedded:";
    if (place.replicas != place.servers.size())
      return "--servers: rfactor is not possible here, all servers have all keys";
    if (client::may_have_secret(settings.servers))
      return "--servers: put user and password in HOLDFAST_USER and HOLDFAST_PASSWORD";
  } catch (const std::invalid_argument& wrong) {
    return std::string("--servers: ") + wrong.what();
  }
  return {};
}

struct Proxy::Parts {
  ProxySettings settings;
  std::optional<Quorum> quorum;
  std::optional<Gateway> gateway;
};

Proxy::Proxy(const ProxySettings& settings) : parts_(std::make_unique<Parts>()) {
  parts_->settings = settings;
}

Proxy::~Proxy() = default;

RemoteHooks Proxy::hooks() {
  Parts* parts = parts_.get();
  RemoteHooks hooks;
  // After close() nobody waits for an answer.
  hooks.take = [parts](const RemoteRequest& request) {
    return !parts->gateway || parts->gateway->take(request);
  };
  hooks.lock = [parts](const RemoteLock& lock) {
    if (parts->gateway) parts->gateway->take(lock);
  };
  hooks.refuse = [parts](std::string_view command, std::span<const std::string_view> argv, bool on_copy) {
    return parts->gateway ? parts->gateway->refuse(command, argv, on_copy) : "ERR the proxy ends";
  };
  hooks.drop = [parts](ConnId conn) {
    if (parts->gateway) parts->gateway->drop(conn);
  };
  return hooks;
}

void Proxy::start(uv_loop_s& loop, Shell shell) {
  parts_->quorum.emplace(client::client_config_of(address_of(parts_->settings)), loop);
  parts_->gateway.emplace(*parts_->quorum, std::move(shell), GatewayOptions{parts_->settings.untimed_ttl});
}

void Proxy::begin_calls() { parts_->gateway->begin_calls(); }

void Proxy::close() {
  if (!parts_->gateway) return;
  parts_->gateway->close();
  parts_->gateway.reset();
  parts_->quorum->close();
}

}  // namespace holdfast::proxy
