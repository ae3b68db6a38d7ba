// A loop iteration: the poll ends, callbacks pass requests to the engine, and the flush in uv_check (which
// libuv runs right after them) handles the engine's effects. So replies leave in the iteration that made
// them, and before the backlog of clients over their share continues. The backlog runs in a timer's
// callback, with its flush in uv_prepare.
#include "io/net/server.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/page_pool.h"
#include "io/net/door.h"
#include "io/os/clock.h"
#include "io/os/handles.h"
#include "io/os/jobs.h"
#include "io/os/log.h"

namespace holdfast {
namespace {

// Bytes that an iteration reads before it sends replies.
constexpr size_t kTurnBytes = size_t{256} << 10;
// Clients that an iteration accepts: clients that connect and disconnect without end must not delay the
// replies of other clients.
constexpr size_t kTurnAccepts = 8;
constexpr uint64_t kShareNs = 100'000;      // ns for all clients over their share together
constexpr uint64_t kLeastShareNs = 50'000;  // ns for each of them, at least
// Effects cause effects: a reply wakes a client, whose request wakes the next. After so many rounds the
// server polls the sockets first.
constexpr int kMaxRounds = 16;
// The loop's timers stop while the machine is suspended, but the engine's clock runs on: so the server
// wakes early to read the clock.
constexpr int64_t kMaxSleepMs = 1000;
constexpr uint64_t kIdleCheckMs = 1000;
constexpr DurationMs kAcceptWarningEvery{1000};

constexpr std::string_view kDenied =
    "-DENIED Holdfast is running in protected mode because protected mode is enabled and no password is "
    "set for the default user. In this mode connections are only accepted from the loopback interface. If "
    "you want to connect from external computers to Holdfast you may adopt one of the following solutions: "
    "1) Set a password for the default user: the option '--requirepass', or 'CONFIG SET requirepass' from "
    "the machine that the server is running on; or, with ACL users, turn the default user off. 2) If only "
    "clients that may do everything can reach the server, disable protected mode: the option "
    "'--protected-mode no', or 'CONFIG SET protected-mode no' from the same machine. NOTE: You only need "
    "to do one of the above things in order for the server to start accepting connections from the "
    "outside.\r\n";

int fd_of(Connection& connection) {
  uv_os_fd_t fd = -1;
  uv_fileno(reinterpret_cast<uv_handle_t*>(connection.stream()), &fd);
  return fd;
}

// Detects a dead peer after the keepalive time plus three probes within the same time again.
void set_tcp_options(int fd, int keepalive_s) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (keepalive_s == 0) return;
  const int probes = 3;
  const int interval_s = std::max(1, keepalive_s / probes);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive_s, sizeof keepalive_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace

Server::Server(Engine& engine, const Options& options, std::vector<ListenSocket> sockets, Store* store,
               const std::shared_ptr<const TlsContext>& tls)
    : engine_(engine),
      options_(options),
      store_(store),
      tls_(tls),
      memory_upkeep_(engine.pages()),
      read_buffer_(std::make_unique<char[]>(kReadBytes)) {
  uv_loop_init(&loop_);
  uv_prepare_init(&loop_, &prepare_);
  uv_check_init(&loop_, &check_);
  uv_timer_init(&loop_, &timer_);
  uv_timer_init(&loop_, &idle_timer_);
  uv_idle_init(&loop_, &no_sleep_);
  memory_upkeep_.start(&loop_);
  for (uv_signal_t* handle : {&terminate_, &interrupt_, &hangup_}) uv_signal_init(&loop_, handle);
  uv_async_init(&loop_, &stop_request_, [](uv_async_t* a) { owner_of<Server>(a->data)->stop("SHUTDOWN"); });
  for (void** data : {&stop_request_.data, &prepare_.data, &check_.data, &timer_.data, &idle_timer_.data,
                      &no_sleep_.data, &terminate_.data, &interrupt_.data, &hangup_.data}) {
    *data = this;
  }
  for (ListenSocket& socket : sockets) {
    listeners_.push_back(std::make_unique<Listener>());
    listeners_.back()->server = this;
    listeners_.back()->socket = std::move(socket);
  }
}

Server::~Server() {
  const int rc = uv_loop_close(&loop_);
  assert(rc == 0 && "every handle has been closed by stop()");
  static_cast<void>(rc);
}

Result<Done> Server::run() {
  std::signal(SIGPIPE, SIG_IGN);
  uv_prepare_start(&prepare_, [](uv_prepare_t* p) {
    owner_of<Server>(p->data)->end_open_turn();
    owner_of<Server>(p->data)->meter_.count();
    owner_of<Server>(p->data)->polled_ = true;
  });
  uv_check_start(&check_, [](uv_check_t* c) { owner_of<Server>(c->data)->end_open_turn(); });
  uv_signal_start(&terminate_, on_stop_signal, SIGTERM);
  uv_signal_start(&interrupt_, on_stop_signal, SIGINT);
  uv_signal_start(&hangup_, on_hangup_signal, SIGHUP);
  uv_timer_start(&idle_timer_, on_idle_check, kIdleCheckMs, kIdleCheckMs);
  std::string names;
  for (const auto& listener : listeners_) {
    if (Result<Done> listens = listen(*listener); !listens) {
      stop("a failed start");
      uv_run(&loop_, UV_RUN_DEFAULT);
      return listens;
    }
    names += (names.empty() ? "" : ", ") + listener->socket.name;
  }
  if (Result<Done> opens = door_ == nullptr ? Done{} : door_->start(); !opens) {
    stop("a failed start");
    uv_run(&loop_, UV_RUN_DEFAULT);
    return opens;
  }
  ready_text_ = fmt::format("ready to accept connections on {} (pid {})", names, getpid());
  service_.start(&loop_, [this] { return service_status(); });
  if (store_ != nullptr) {
    store_->start(engine_, &loop_, store_hooks());
  } else {
    begin_to_serve();
  }
  uv_run(&loop_, UV_RUN_DEFAULT);
  if (!failure_.empty()) return Failure{failure_};
  return Done{};
}

void Server::ask_to_stop() { uv_async_send(&stop_request_); }

Store::Hooks Server::store_hooks() {
  Store::Hooks hooks;
  hooks.release_held = [this] { release_held(); };
  hooks.end_turn = [this] { now(); };  // an open iteration ends before the loop polls again
  hooks.working = [this] { service_.working(); };
  hooks.fail = [this](const std::string& why) {
    failure_ = why;
    stop("a failed start");
  };
  hooks.loaded = [this] {
    now();
    begin_to_serve();
  };
  return hooks;
}

void Server::begin_to_serve() {
  engine_.pages().expect_spares();
  log_line(LogLevel::kNotice, ready_text_);
  service_.ready();
}

// Sends the held replies whose data is as safe as the settings require.
void Server::release_held() {
  for (const auto [id, end] : held_.take_kept(*store_, now())) {
    if (Connection* connection = find(id)) connection->release(end);
    finish_if_closing(id);
  }
}

// Sends all held replies: all data is as safe as the settings require.
void Server::flush_held() {
  for (const auto [id, end] : held_.take_all()) {
    if (Connection* connection = find(id)) connection->flush();
    finish_if_closing(id);
  }
}

// A connection closes after its held replies have left.
void Server::finish_if_closing(ConnId id) {
  Connection* connection = find(id);
  if (connection != nullptr && !connection->held() && engine_.closing(id)) connection->finish();
}

Result<Done> Server::listen(Listener& listener) {
  int error = 0;
  if (listener.socket.unix_path.empty()) {
    uv_tcp_init(&loop_, &listener.uv.tcp);
    error = uv_tcp_open(&listener.uv.tcp, listener.socket.fd);
  } else {
    uv_pipe_init(&loop_, &listener.uv.pipe, 0);
    error = uv_pipe_open(&listener.uv.pipe, listener.socket.fd);
  }
  listener.uv.handle.data = &listener;
  const int backlog = static_cast<int>(options_.tcp_backlog);
  if (error == 0) error = uv_listen(&listener.uv.stream, backlog, on_connection);
  if (error == 0) return Done{};
  return Failure{fmt::format("cannot listen on {}: {}", listener.socket.name, uv_strerror(error))};
}

void Server::on_connection(uv_stream_t* stream, int status) noexcept {
  auto* listener = static_cast<Listener*>(stream->data);
  Server* server = listener->server;
  if (status != 0) return server->warn_of_accept(uv_strerror(status));
  if (server->accepted_ < kTurnAccepts) return server->accept(*listener);
  listener->waiting = server->some_wait_ = true;  // libuv reports no other until accepted
}

void Server::accept_waiting() {
  if (!std::exchange(some_wait_, false)) return;
  for (const auto& listener : listeners_) {
    if (std::exchange(listener->waiting, false)) accept(*listener);
  }
}

void Server::accept(Listener& listener) {
  now();  // begins the iteration that counts this client
  ++accepted_;
  const bool tcp = listener.socket.unix_path.empty();
  auto connection =
      std::make_unique<Connection>(*this, tcp ? Connection::Kind::kTcp : Connection::Kind::kUnix);
  const int error = uv_accept(&listener.uv.stream, connection->stream());
  if (error != 0) {
    warn_of_accept(uv_strerror(error));
    return connection.release()->abandon();
  }
  if (clients_ >= engine_.config().limits.clients) {
    warn_of_accept(fmt::format("maxclients {} is reached", engine_.config().limits.clients));
    // A TLS client could not read the text.
    return refuse(std::move(connection),
                  listener.socket.tls ? "" : "-ERR max number of clients reached\r\n");
  }
  admit(std::move(connection), listener);
}

void Server::admit(std::unique_ptr<Connection> connection, Listener& listener) {
  const int fd = fd_of(*connection);
  const std::string_view denial = is_denied(listener, fd) ? kDenied : "";
  if (listener.socket.tls) {
    connection->begin_tls(tls_, denial);
    if (!denial.empty()) engine_.record_rejected_connection();
  } else if (!denial.empty()) {
    return refuse(std::move(connection), denial);
  }
  std::string peer = listener.socket.unix_path + ":0";
  std::string local = peer;
  if (listener.socket.unix_path.empty()) {
    set_tcp_options(fd, static_cast<int>(options_.tcp_keepalive_s));
    peer = peer_name(fd);
    local = local_name(fd);
  }
  const Now& at = now();
  const ConnId id = engine_.open(peer, local, at);
  if (logs(LogLevel::kVerbose))
    log_line(LogLevel::kVerbose, fmt::format("client {} accepted from {}", id.serial, peer),
             {{"client", id.serial}, {"address", peer}});
  if (connections_.size() <= id.slot) connections_.resize(size_t{id.slot} + 1, nullptr);
  connections_[id.slot] = connection.get();
  ++clients_;
  if (listener.socket.tls) handshakes_.emplace_back(id, at.mono);
  connection.release()->start(id, at.mono);
}

// Protected mode: a server without a password accepts only clients on its own machine.
bool Server::is_denied(const Listener& listener, int fd) const {
  if (options_.protected_mode != "yes" || !listener.socket.unix_path.empty()) return false;
  return engine_.allows_unauthenticated() && !is_loopback_peer(fd);
}

void Server::refuse(std::unique_ptr<Connection> connection, std::string_view why) {
  const uv_buf_t buf = uv_buf_init(const_cast<char*>(why.data()), static_cast<unsigned>(why.size()));
  uv_try_write(connection->stream(), &buf, 1);  // the text is lost if the socket is full
  engine_.record_rejected_connection();
  connection.release()->abandon();
}

// Logs at most one line a second, because failures may come in bursts.
void Server::warn_of_accept(std::string_view why) {
  const TimeMs at = now().mono;
  if (at - accept_warned_ < kAcceptWarningEvery) return;
  accept_warned_ = at;
  log_line(LogLevel::kWarning, fmt::format("cannot accept a connection: {}", why));
}

Connection* Server::find(ConnId id) const {
  if (id.slot >= connections_.size()) return nullptr;
  Connection* connection = connections_[id.slot];
  return connection != nullptr && connection->id() == id ? connection : nullptr;
}

void Server::forget(ConnId id) {
  assert(find(id) != nullptr);
  connections_[id.slot] = nullptr;
  --clients_;
  if (logs(LogLevel::kVerbose))
    log_line(LogLevel::kVerbose, fmt::format("client {} closed", id.serial), {{"client", id.serial}});
  engine_.drop(id, now(), effects_);
}

void Server::linger(Connection& connection) {
  lingering_.push_back(&connection);
  ++clients_;  // forget() subtracts it again
  forget(connection.id());
}

void Server::end_linger(Connection& connection) {
  std::erase(lingering_, &connection);
  --clients_;
}

const Now& Server::now() {
  if (turn_open_) return now_;
  turn_open_ = true;
  turn_began_ns_ = uv_hrtime();
  if (std::exchange(polled_, false)) busy_poll_.end_wait(turn_began_ns_);
  now_ = read_clock();
  engine_.tick(now_, effects_);
  return now_;
}

uv_buf_t Server::read_buffer() { return uv_buf_init(read_buffer_.get(), kReadBytes); }

void Server::did_read(size_t bytes) {
  read_bytes_ += bytes;
  turn_bytes_ += bytes;
  if (turn_bytes_ >= kTurnBytes) end_turn();
}

void Server::end_open_turn() {
  if (turn_open_) end_turn();
}

void Server::end_turn() {
  int round = 0;
  do {
    handle_effects();
  } while (++round < kMaxRounds && !effects_.empty());
  if (store_ != nullptr) store_->settle(now_);
  engine_.record_traffic(read_bytes_, written_bytes_);
  read_bytes_ = written_bytes_ = 0;
  turn_bytes_ = 0;
  accepted_ = 0;
  turn_open_ = false;
  if (stopping_) return;
  memory_upkeep_.end_turn(engine_.state(), now_.mono);
  arm_timer();
  if (door_ != nullptr) door_->record_turn(uv_hrtime() - turn_began_ns_);
  begin_wait();
}

// Handles the effects in the order that Effects requires. Skips connections that closed meanwhile. Replies
// leave when they are as safe as the settings require; a held reply holds all later ones of its connection.
void Server::handle_effects() {
  if (store_ != nullptr) store_->commit();
  const bool all_may = store_ == nullptr || store_->may_reply(now_);
  const bool others_may = all_may || store_->may_reply_to_others();
  const Store::Promise promise = all_may ? Store::Promise{} : store_->promise(now_);
  std::swap(effects_, handled_);
  all_may ? flush_held() : release_held();
  for (const ConnId id : handled_.closes) {
    Connection* connection = find(id);
    if (connection == nullptr) continue;
    if (!all_may && (!others_may || connection->held())) {
      connection->hold(held_, promise);
      continue;
    }
    connection->flush();
    if ((connection = find(id)) != nullptr) connection->finish();
  }
  // The last first: what a request causes for other clients, as the grant of a waiter, precedes its reply.
  std::for_each(handled_.dirty.rbegin(), handled_.dirty.rend(), [&](ConnId id) {
    Connection* connection = find(id);
    if (connection == nullptr) return;
    const bool may = all_may || (others_may && !connection->held());
    may ? connection->flush() : connection->hold(held_, promise);
  });
  for (const ConnId id : handled_.wakes) {
    if (Connection* connection = find(id)) connection->resume();
  }
  handled_.clear();
  if (door_ != nullptr) door_->settle(now_);
}

uint64_t Server::share_ns() const {
  return std::max(kShareNs / std::max(runnable_.size(), backlog_.size() + 1), kLeastShareNs);
}

void Server::run_backlog() {
  std::swap(backlog_, runnable_);
  for (const ConnId id : runnable_) {
    if (Connection* connection = find(id)) connection->resume();
  }
  runnable_.clear();
}

// Measures the deadline from the present clock, not from the iteration's time, because the iteration's work
// took time.
void Server::arm_timer() {
  int64_t sleep_ms = 0;
  if (backlog_.empty() && effects_.empty() && !some_wait_) {
    const std::optional<TimeMs> deadline = engine_.next_deadline();
    if (!deadline) {
      uv_timer_stop(&timer_);
      return;
    }
    sleep_ms = std::clamp(deadline->count - read_clock().mono.count, int64_t{0}, kMaxSleepMs);
  }
  uv_timer_start(&timer_, on_timer, static_cast<uint64_t>(sleep_ms), 0);
}

void Server::on_timer(uv_timer_t* timer) noexcept {
  Server* server = owner_of<Server>(timer->data);
  server->now();  // runs the engine's due work
  server->run_backlog();
  server->accept_waiting();
}

void Server::on_stop_signal(uv_signal_t* handle, int number) noexcept {
  owner_of<Server>(handle->data)->stop(number == SIGTERM ? "SIGTERM" : "SIGINT");
}

void Server::on_hangup_signal(uv_signal_t* handle, int) noexcept {
  owner_of<Server>(handle->data)->service_.reloading();
  reopen_log();
  owner_of<Server>(handle->data)->service_.reloaded();
}

// Sends the replies decided so far first. But locks that the end of the connections would grant to waiters
// are not granted, because the waiters' connections close as well. The signal handlers end too, so a second
// signal has its default effect and ends the process.
void Server::stop(const char* signal_name) {
  if (stopping_) return;
  log_line(LogLevel::kNotice, fmt::format("stopping after {}", signal_name));
  service_.stopping(signal_name);
  now();
  end_turn();
  turn_open_ = true;  // prevents another iteration: its grants would not be on disk
  Result<Done> kept = store_ == nullptr ? Result<Done>(Done{}) : store_->stop();
  store_ == nullptr || store_->all_kept() ? flush_held() : release_held();
  if (!kept && failure_.empty()) failure_ = kept.error();
  stopping_ = true;
  if (door_ != nullptr) door_->stop(store_ == nullptr || store_->all_kept());
  for (const auto& listener : listeners_) {
    remove_socket_file(listener->socket);
    if (listener->uv.handle.loop != nullptr) close_handle(listener->uv.handle);
  }
  for (Connection* connection : connections_) {
    if (connection != nullptr) connection->close();
  }
  while (!lingering_.empty()) lingering_.back()->close();
  effects_.clear();
  close_handle(stop_request_);
  close_handle(prepare_);
  close_handle(check_);
  close_handle(timer_);
  close_handle(idle_timer_);
  close_handle(no_sleep_);
  memory_upkeep_.close();
  service_.close();
  for (uv_signal_t* handle : {&terminate_, &interrupt_, &hangup_}) close_handle(*handle);
}

}  // namespace holdfast
