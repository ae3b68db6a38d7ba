// The listening sockets in the loop.
#include "io/net/acceptor.h"

#include <fmt/format.h>

#include <utility>

#include "io/os/handles.h"

namespace holdfast {

Acceptor::Acceptor(std::vector<ListenSocket> sockets, Hooks hooks) : hooks_(std::move(hooks)) {
  for (ListenSocket& socket : sockets) {
    listeners_.push_back(std::make_unique<Listener>());
    listeners_.back()->acceptor = this;
    listeners_.back()->socket = std::move(socket);
  }
}

Result<Done> Acceptor::listen(uv_loop_t* loop, int backlog) {
  for (const auto& listener : listeners_) {
    if (Result<Done> listens = listen(*listener, loop, backlog); !listens) return listens;
  }
  return Done{};
}

Result<Done> Acceptor::listen(Listener& listener, uv_loop_t* loop, int backlog) {
  int error = 0;
  if (listener.socket.unix_path.empty()) {
    uv_tcp_init(loop, &listener.uv.tcp);
    error = uv_tcp_open(&listener.uv.tcp, listener.socket.fd);
  } else {
    uv_pipe_init(loop, &listener.uv.pipe, 0);
    error = uv_pipe_open(&listener.uv.pipe, listener.socket.fd);
  }
  listener.uv.handle.data = &listener;
  if (error == 0) error = uv_listen(&listener.uv.stream, backlog, on_connection);
  if (error == 0) return Done{};
  return Failure{fmt::format("cannot listen on {}: {}", listener.socket.name, uv_strerror(error))};
}

std::string Acceptor::names() const {
  std::string names;
  for (const auto& listener : listeners_) names += (names.empty() ? "" : ", ") + listener->socket.name;
  return names;
}

void Acceptor::on_connection(uv_stream_t* stream, int status) noexcept {
  Listener* listener = owner_of<Listener>(stream->data);
  Acceptor* acceptor = listener->acceptor;
  if (status != 0) return acceptor->hooks_.fail(uv_strerror(status));
  if (acceptor->accepted_ < kMostInIteration) return acceptor->accept(*listener);
  listener->waiting = acceptor->some_wait_ = true;
}

void Acceptor::accept(Listener& listener) {
  ++accepted_;
  hooks_.accept(listener.socket, &listener.uv.stream);
}

void Acceptor::accept_waiting() {
  if (!std::exchange(some_wait_, false)) return;
  for (const auto& listener : listeners_) {
    if (std::exchange(listener->waiting, false)) accept(*listener);
  }
}

void Acceptor::close() {
  for (const auto& listener : listeners_) {
    remove_socket_file(listener->socket);
    if (listener->uv.handle.loop != nullptr) close_handle(listener->uv.handle);
  }
}

}  // namespace holdfast
