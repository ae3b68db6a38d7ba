// SIGTERM, SIGINT, SIGHUP and SHUTDOWN.
#include "io/net/server_signals.h"

#include <csignal>
#include <utility>

#include "io/os/handles.h"

namespace holdfast {

ServerSignals::ServerSignals(uv_loop_t* loop, Hooks hooks) : hooks_(std::move(hooks)) {
  for (uv_signal_t* handle : {&terminate_, &interrupt_, &hangup_}) {
    uv_signal_init(loop, handle);
    handle->data = this;
  }
  uv_async_init(loop, &stop_request_, on_stop_request);
  stop_request_.data = this;
}

void ServerSignals::start() {
  std::signal(SIGPIPE, SIG_IGN);
  uv_signal_start(&terminate_, on_stop, SIGTERM);
  uv_signal_start(&interrupt_, on_stop, SIGINT);
  uv_signal_start(&hangup_, on_hangup, SIGHUP);
}

void ServerSignals::on_stop(uv_signal_t* handle, int number) noexcept {
  owner_of<ServerSignals>(handle->data)->hooks_.stop(number == SIGTERM ? "SIGTERM" : "SIGINT");
}

void ServerSignals::on_hangup(uv_signal_t* handle, int) noexcept {
  owner_of<ServerSignals>(handle->data)->hooks_.hangup();
}

void ServerSignals::on_stop_request(uv_async_t* handle) noexcept {
  owner_of<ServerSignals>(handle->data)->hooks_.stop("SHUTDOWN");
}

void ServerSignals::close() {
  close_handle(stop_request_);
  for (uv_signal_t* handle : {&terminate_, &interrupt_, &hangup_}) close_handle(*handle);
}

}  // namespace holdfast
