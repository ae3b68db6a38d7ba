// A loop iteration: the poll ends, callbacks pass requests to the engine, and the flush in uv_check (which
// libuv runs right after them) handles the engine's effects. So replies leave in the iteration that made
// them, and before the backlog of clients over their share continues. The backlog runs in a timer's
// callback, with its flush in uv_prepare.
#include "io/net/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cassert>
#include <utility>

#include "core/base/page_pool.h"
#include "io/net/door.h"
#include "io/os/clock.h"
#include "io/os/log.h"

namespace holdfast {

OwnedLoop::OwnedLoop() { uv_loop_init(&uv); }

OwnedLoop::~OwnedLoop() {
  const int rc = uv_loop_close(&uv);
  assert(rc == 0 && "every handle has been closed by stop()");
  static_cast<void>(rc);
}

Server::Server(Engine& engine, const Options& options, std::vector<ListenSocket> sockets, Store* store,
               const std::shared_ptr<const TlsContext>& tls)
    : engine_(engine),
      options_(options),
      store_(store),
      phases_(*this, loop()),
      signals_(loop(), {[this](const char* name) { stop(name); }, [this] { reload(); }}),
      admission_(*this, std::move(sockets), tls),
      checks_(*this, loop()),
      read_buffer_(std::make_unique<char[]>(kReadBytes)) {}

Result<Done> Server::run() {
  phases_.start();
  signals_.start();
  checks_.start();
  if (Result<Done> started = start(); !started) {
    stop("a failed start");
    uv_run(loop(), UV_RUN_DEFAULT);
    return started;
  }
  service_.start(loop(), [this] { return service_status(); });
  if (store_ != nullptr) {
    store_->start(engine_, loop(), store_hooks());
  } else {
    begin_to_serve();
  }
  uv_run(loop(), UV_RUN_DEFAULT);
  if (!failure_.empty()) return Failure{failure_};
  return Done{};
}

Result<Done> Server::start() {
  if (Result<Done> listens = admission_.listen(); !listens) return listens;
  for (Door* door : doors_) {
    if (Result<Done> opens = door->start(); !opens) return opens;
  }
  return Done{};
}

Store::Hooks Server::store_hooks() {
  Store::Hooks hooks;
  hooks.release_held = [this] { flush_.release_held(); };
  hooks.end_iteration = [this] { now(); };  // an open iteration ends before the loop polls again
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
  log_line(LogLevel::kNotice, ready_text());
  service_.ready();
}

std::string Server::ready_text() const {
  return fmt::format("ready to accept connections on {} (pid {})", admission_.names(), getpid());
}

void Server::begin_client(ConnId id, Connection& connection) {
  connections_.add(id, connection);
  if (connection.handshakes()) checks_.begin_handshake(id, now().mono);
}

void Server::forget(ConnId id) {
  connections_.remove(id);
  if (logs(LogLevel::kVerbose))
    log_line(LogLevel::kVerbose, fmt::format("client {} closed", id.serial), {{"client", id.serial}});
  engine_.drop(id, now(), effects());
}

void Server::linger(Connection& connection) {
  connections_.linger(connection);
  forget(connection.id());
}

void Server::begin_iteration() {
  const uint64_t now_ns = uv_hrtime();
  phases_.wait().end(now_ns);
  iteration_.begin(now_ns, read_clock());
  engine_.tick(iteration_.now(), effects());
}

void Server::end_iteration() {
  flush_.handle_all();
  if (store_ != nullptr) store_->settle(iteration_.now());
  iteration_.end(engine_);
  admission_.end_iteration();
  if (stopping_) return;
  checks_.end_iteration(iteration_.now().mono);
  phases_.wake_at(next_work());
  for (Door* door : doors_) door->record_iteration(uv_hrtime() - iteration_.began_ns());
  phases_.wait().begin();
}

std::optional<TimeMs> Server::next_work() const {
  const bool has_work = !backlog_.empty() || flush_.any() || admission_.some_wait();
  return has_work ? TimeMs{0} : engine_.next_deadline();
}

void Server::run_due_work() {
  now();  // runs the engine's due work
  backlog_.run(connections_);
  admission_.accept_waiting();
}

void Server::reload() {
  service_.reloading();
  reopen_log();
  service_.reloaded();
}

// Sends the replies decided so far first. But locks that the end of the connections would grant to waiters
// are not granted, because the waiters' connections close as well.
void Server::stop(const char* signal_name) {
  if (stopping_) return;
  log_line(LogLevel::kNotice, fmt::format("stopping after {}", signal_name));
  service_.stopping(signal_name);
  now();
  end_iteration();
  iteration_.keep_open();  // the grants of another iteration would not be on disk
  Result<Done> kept = store_ == nullptr ? Result<Done>(Done{}) : store_->stop();
  const bool all_kept = store_ == nullptr || store_->all_kept();
  all_kept ? flush_.flush_held() : flush_.release_held();
  if (!kept && failure_.empty()) failure_ = kept.error();
  stopping_ = true;
  for (Door* door : doors_) door->stop(all_kept);
  admission_.close();
  connections_.close_all();
  effects().clear();
  signals_.close();
  phases_.close();
  checks_.close();
  service_.close();
}

}  // namespace holdfast
