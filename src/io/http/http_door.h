// The HTTP door: accepts HTTP clients in the server's loop, runs their requests on its engine, and sends
// the replies that wait for the disk. Owns the listening sockets and, through the loop, the connections.
#pragma once

#include <uv.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/metrics.h"
#include "io/disk/store.h"
#include "io/http/answer.h"
#include "io/http/event_streams.h"
#include "io/http/http_connection.h"
#include "io/http/info_json.h"
#include "io/net/acceptor.h"
#include "io/net/door.h"
#include "tls/tls_context.h"

namespace holdfast {

class Server;

class HttpDoor : public Door {
 public:
  // Takes ownership of the sockets. The server and `tls` must outlive the door.
  HttpDoor(Server& server, std::vector<ListenSocket> sockets, const std::shared_ptr<const TlsContext>& tls);

  Result<Done> start() override;
  void settle(const Now& now) override;
  void record_iteration(uint64_t ns) override { metrics_.loop_iterations.record_us(ns / 1000); }
  void stop(bool kept) override;

  // For connections:

  Server& server() { return server_; }
  HttpAnswer serve(HttpConnection& connection, const HttpRequest& request);
  // Sends the reply when the disk has what it promises.
  void hold(HttpConnection& connection, HttpAnswer answer);
  void subscribe(HttpConnection& connection, std::string user);
  // Whether the door may serve a request in this iteration: one, so that other clients do not wait.
  bool may_serve() const { return !served_; }
  // Calls proceed() in the next loop iteration.
  void serve_soon(HttpConnection& connection);
  void forget(HttpConnection& connection);

 private:
  struct HeldAnswer {
    HttpConnection* connection;
    HttpAnswer answer;
    std::optional<Store::Promise> promise;  // nullopt: made in this iteration
  };

  static void on_soon(uv_timer_t* timer) noexcept;
  static void on_second(uv_timer_t* timer) noexcept;
  void accept(const ListenSocket& socket, uv_stream_t* listening);
  bool make_room();
  bool may_leave(HeldAnswer& held, const Now& now) const;
  void update_facts();
  ServerFacts server_facts() const;

  Server& server_;
  const std::shared_ptr<const TlsContext>& tls_;
  Acceptor acceptor_;
  std::vector<HttpConnection*> connections_;
  std::vector<HttpConnection*> soon_;
  std::vector<HeldAnswer> held_;
  EventStreams events_;
  ShellMetrics metrics_;
  Now started_;
  int64_t tcp_port_;         // of the protocol: the one in use, also with --port auto; 0: none
  uv_timer_t soon_timer_;    // the rest of the work of an iteration, in the next one
  uv_timer_t second_timer_;  // runs while there are connections
  bool served_ = false;      // a request in this iteration
  TimeMs files_counted_{0};
  bool counting_files_ = false;
  bool running_ = false;
};

}  // namespace holdfast
