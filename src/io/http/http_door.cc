// Accepting, the replies that wait for the disk, and the work of each second.
#include "io/http/http_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/config.h"
#include "io/http/routes.h"
#include "io/net/server.h"
#include "io/os/clock.h"
#include "io/os/handles.h"
#include "io/os/jobs.h"
#include "io/os/log.h"
#include "io/os/process_facts.h"

namespace holdfast {
namespace {

constexpr DurationMs kBetweenFileCounts{5000};

}  // namespace

HttpDoor::HttpDoor(Server& server, std::vector<ListenSocket> sockets,
                   const std::shared_ptr<const TlsContext>& tls)
    : server_(server),
      tls_(tls),
      // No line in the log if a client cannot be accepted: a probe comes again.
      acceptor_(std::move(sockets),
                {[this](const ListenSocket& socket, uv_stream_t* listening) { accept(socket, listening); },
                 [](std::string_view) {}}),
      started_(read_clock()),
      tcp_port_(server.engine().config().host_facts().tcp_port) {
  metrics_.open_fds = count_open_files();
  metrics_.start_time_s = static_cast<double>(started_.wall_us) / 1e6;
}

Result<Done> HttpDoor::start() {
  uv_timer_init(server_.loop(), &soon_timer_);
  uv_timer_init(server_.loop(), &second_timer_);
  soon_timer_.data = second_timer_.data = this;
  running_ = true;
  const int backlog = static_cast<int>(server_.options().tcp_backlog);
  if (Result<Done> listens = acceptor_.listen(server_.loop(), backlog); !listens) return listens;
  log_line(LogLevel::kNotice, fmt::format("HTTP on {}", acceptor_.names()));
  return Done{};
}

void HttpDoor::accept(const ListenSocket& socket, uv_stream_t* listening) {
  server_.now();
  auto connection = std::make_unique<HttpConnection>(*this);
  const bool accepted = uv_accept(listening, connection->stream()) == 0;
  if (!accepted || !make_room()) return connection.release()->reject(socket.tls);
  const int fd = fd_of(connection->stream());
  if (connections_.empty()) uv_timer_start(&second_timer_, on_second, 1000, 1000);
  connections_.push_back(connection.get());
  connection.release()->start({peer_name(fd), local_name(fd), is_loopback_peer(fd), false},
                              socket.tls ? tls_ : nullptr);
}

// Closes the connection whose last reply is the oldest, if there are too many: clients that only stay
// connected, or do not read, must not keep probes out. Returns false if none can give way.
bool HttpDoor::make_room() {
  if (connections_.size() < server_.options().http_max_clients) return true;
  HttpConnection* oldest = nullptr;
  for (HttpConnection* connection : connections_) {
    if (!connection->can_give_way()) continue;
    if (oldest == nullptr || connection->ready_since() < oldest->ready_since()) oldest = connection;
  }
  if (oldest != nullptr) oldest->close();
  return oldest != nullptr;
}

HttpAnswer HttpDoor::serve(HttpConnection& connection, const HttpRequest& request) {
  served_ = true;
  update_facts();
  Engine& engine = server_.engine();
  HttpContext ctx{engine, server_.effects(), server_.now(), {server_.options().protected_mode == "yes"}};
  HttpAnswer answer = answer_request(ctx, {metrics_, server_facts()}, request, connection.visitor());
  if (answer.streams && events_.full()) return json_refusal(503, "too many clients follow the events");
  return answer;
}

ServerFacts HttpDoor::server_facts() const { return {started_.mono, tcp_port_}; }

// Counting the open files takes long if there are many, so a job counts them for the next scrape.
void HttpDoor::update_facts() {
  const ProcessFacts facts = read_process_facts();
  metrics_.cpu_s = facts.cpu_s;
  metrics_.rss_bytes = facts.rss_bytes;
  metrics_.max_fds = facts.max_fds;
  if (server_.store() != nullptr) metrics_.journal_syncs = server_.store()->sync_times();
  const TimeMs at = server_.now().mono;
  if (counting_files_ || !is_due(files_counted_ + kBetweenFileCounts, at)) return;
  counting_files_ = true;
  files_counted_ = at;
  auto count = std::make_shared<int64_t>(0);
  run_job(
      server_.loop(), [count] { *count = count_open_files(); },
      [this, count] {
        counting_files_ = false;
        metrics_.open_fds = *count;
      });
}

void HttpDoor::hold(HttpConnection& connection, HttpAnswer answer) {
  held_.push_back({&connection, std::move(answer), std::nullopt});
}

// The same rule as for other replies: see EffectFlush::handle().
bool HttpDoor::may_leave(HeldAnswer& held, const Now& now) const {
  const Store* store = server_.store();
  if (store == nullptr || store->may_reply(now)) return true;
  if (held.promise) return store->is_kept(*held.promise, now);
  held.promise = store->promise(now);
  return store->may_reply_to_others();
}

void HttpDoor::settle(const Now& now) {
  acceptor_.end_iteration();
  served_ = false;
  std::vector<HeldAnswer> left;
  for (HeldAnswer& held : std::exchange(held_, {})) {
    if (may_leave(held, now)) {
      held.connection->send(held.answer);
    } else {
      left.push_back(std::move(held));
    }
  }
  for (HeldAnswer& held : left) held_.push_back(std::move(held));
  if (!events_.empty()) events_.push_changes(server_.engine());
  // Started here, as libuv runs a timer that its own callback starts before it polls.
  if (running_ && (acceptor_.some_wait() || !soon_.empty())) uv_timer_start(&soon_timer_, on_soon, 0, 0);
}

void HttpDoor::subscribe(HttpConnection& connection, std::string user) {
  const Engine& engine = server_.engine();
  events_.add(connection, std::move(user), engine, common_info(engine, server_.now(), server_facts()));
}

void HttpDoor::serve_soon(HttpConnection& connection) { soon_.push_back(&connection); }

void HttpDoor::on_soon(uv_timer_t* timer) noexcept {
  HttpDoor* door = owner_of<HttpDoor>(timer->data);
  door->server_.now();
  door->acceptor_.accept_waiting();
  const std::vector<HttpConnection*> now = std::exchange(door->soon_, {});
  for (HttpConnection* connection : now) {
    if (std::ranges::find(door->connections_, connection) != door->connections_.end())
      connection->proceed();
  }
}

void HttpDoor::on_second(uv_timer_t* timer) noexcept {
  HttpDoor* door = owner_of<HttpDoor>(timer->data);
  const Now& now = door->server_.now();
  const std::vector<HttpConnection*> all = door->connections_;
  for (HttpConnection* connection : all) connection->check_time(now.mono);
  const Engine& engine = door->server_.engine();
  if (!door->events_.empty())
    door->events_.push_info(engine, common_info(engine, now, door->server_facts()));
}

void HttpDoor::forget(HttpConnection& connection) {
  std::erase(connections_, &connection);
  std::erase(soon_, &connection);
  std::erase_if(held_, [&](const HeldAnswer& held) { return held.connection == &connection; });
  events_.remove(connection);
  if (connections_.empty() && running_) uv_timer_stop(&second_timer_);
}

void HttpDoor::stop(bool kept) {
  if (!std::exchange(running_, false)) return;
  for (HeldAnswer& held : std::exchange(held_, {})) {
    if (kept) held.connection->send(held.answer);
  }
  const std::vector<HttpConnection*> all = connections_;
  for (HttpConnection* connection : all) connection->close();
  acceptor_.close();
  close_handle(soon_timer_);
  close_handle(second_timer_);
}

}  // namespace holdfast
