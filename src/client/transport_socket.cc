// hiredis on libuv. hiredis frees its context whenever it finds the connection broken, libuv wants a
// handle's memory until its close callback has run, and the user may destroy the Connection from within any
// callback. So a Socket stands between: it belongs to libuv, points to the context while that lives and to
// the Connection while that cares.
#include "client/transport_socket.h"

#include <fcntl.h>
#include <hiredis/async.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <string_view>
#include <utility>

#include "client/transport_loop.h"

namespace holdfast::client {

struct SocketConnection::Lookup {
  uv_getaddrinfo_t uv{};
  SocketConnection* connection = nullptr;
};

struct SocketConnection::Socket {
  uv_poll_t uv{};
  int events = 0;
  redisAsyncContext* context = nullptr;
  SocketConnection* connection = nullptr;
  bool opened = false;  // since the connection was told last
  std::string why;      // the context has gone
  // How the context's reader makes replies, and what stands before that.
  const redisReplyObjectFunctions* makers = nullptr;
  redisReplyObjectFunctions guard{};
  bool unexpected = false;  // a reply was refused
};

namespace {

using Socket = SocketConnection::Socket;

// "Connection refused" -> "connection refused": it will stand inside a sentence.
std::string reason(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// Null: the context is being freed, which note_end() tells of.
void on_reply(redisAsyncContext* context, void* reply, void* /*data*/) noexcept {
  auto* socket = static_cast<Socket*>(context->data);
  if (reply == nullptr || socket->connection == nullptr) return;
  socket->connection->note_value(value_of(*static_cast<const redisReply*>(reply)));
}

// Nobody may free the context from within this callback: so it only leaves a note.
void on_connect(const redisAsyncContext* context, int status) noexcept {
  static_cast<Socket*>(context->data)->opened = status == REDIS_OK;
}

// hiredis may have freed its context in its handlers; what has come of it is told after them. The socket
// stays until its handle is closed, which is not before the loop's next turn.
void on_poll(uv_poll_t* handle, int status, int events) noexcept {
  auto* socket = static_cast<Socket*>(handle->data);
  // On an error of the socket libuv names no event; to read or write finds out what it is.
  if (status != 0) events = UV_READABLE | UV_WRITABLE;
  if (socket->context != nullptr && (events & UV_READABLE) != 0) redisAsyncHandleRead(socket->context);
  if (socket->context != nullptr && (events & UV_WRITABLE) != 0) redisAsyncHandleWrite(socket->context);
  if (status != 0 && socket->context != nullptr) {
    redisAsyncFree(socket->context);
    socket->why = uv_strerror(status);
  }
  const bool opened = std::exchange(socket->opened, false);
  if (socket->connection == nullptr) return;
  if (socket->context == nullptr) return socket->connection->note_end(reason(socket->why));
  if (opened) socket->connection->note_open();
}

void poll(void* data, int events) {
  auto* socket = static_cast<Socket*>(data);
  if (events == socket->events) return;
  socket->events = events;
  if (events == 0) {
    uv_poll_stop(&socket->uv);
  } else {
    uv_poll_start(&socket->uv, events, on_poll);
  }
}

int events_of(void* data) { return static_cast<Socket*>(data)->events; }

// The context is about to be freed and its socket to be closed. The handle must go before.
void on_cleanup(void* data) noexcept {
  auto* socket = static_cast<Socket*>(data);
  const redisAsyncContext* context = std::exchange(socket->context, nullptr);
  socket->why = context->err != 0 && context->errstr != nullptr ? context->errstr : "connection closed";
  if (socket->unexpected) socket->why = "a reply that nobody asked for";
  uv_close(reinterpret_cast<uv_handle_t*>(&socket->uv),
           [](uv_handle_t* handle) noexcept { delete static_cast<Socket*>(handle->data); });
}

// hiredis 0.14 takes it for impossible that a server answers what nobody asked, or tells a subscriber
// something of another shape, and aborts the program. So its reader gets functions that make no object of
// such a reply. The reader takes that for a lack of memory, and the connection ends.

constexpr int kNil = -1;

// [what, channel, text or number]
bool is_notice_part(const redisReadTask& task, int elements) {
  if (elements == kNil) return false;
  if (task.parent == nullptr) return task.type == REDIS_REPLY_ERROR || elements == 3;
  if (task.parent->parent != nullptr) return false;
  if (task.idx < 2) return task.type == REDIS_REPLY_STRING;
  const auto& notice = *static_cast<const redisReply*>(task.parent->obj);
  const bool message = std::string_view(notice.element[0]->str) == "message";
  return task.type == (message ? REDIS_REPLY_STRING : REDIS_REPLY_INTEGER);
}

// An error may come unasked: it says why the server will close. `elements`: of an array, as the task does
// not yet know them; or kNil.
bool is_expected(const redisReadTask* task, int elements = 0) {
  auto* socket = static_cast<Socket*>(task->privdata);
  const redisAsyncContext& context = *socket->context;
  const bool subscribed = (context.c.flags & REDIS_SUBSCRIBED) != 0;
  const bool expected = subscribed ? is_notice_part(*task, elements)
                                   : task->parent != nullptr || task->type == REDIS_REPLY_ERROR ||
                                         context.replies.head != nullptr;
  if (!expected) socket->unexpected = true;
  return expected;
}

const redisReplyObjectFunctions& makers(const redisReadTask* task) {
  return *static_cast<Socket*>(task->privdata)->makers;
}

void set_guard(redisReader& reader, Socket& socket) {
  socket.makers = reader.fn;
  socket.guard = *reader.fn;
  socket.guard.createString = [](const redisReadTask* task, char* text, size_t size) noexcept {
    return is_expected(task) ? makers(task).createString(task, text, size) : nullptr;
  };
  socket.guard.createArray = [](const redisReadTask* task, int elements) noexcept {
    return is_expected(task, elements) ? makers(task).createArray(task, elements) : nullptr;
  };
  socket.guard.createInteger = [](const redisReadTask* task, long long integer) noexcept {
    return is_expected(task) ? makers(task).createInteger(task, integer) : nullptr;
  };
  socket.guard.createNil = [](const redisReadTask* task) noexcept {
    return is_expected(task, kNil) ? makers(task).createNil(task) : nullptr;
  };
  reader.fn = &socket.guard;
  reader.privdata = &socket;
}

void set_hooks(redisAsyncContext& context, Socket& socket) {
  context.data = context.ev.data = &socket;
  context.ev.addRead = [](void* data) noexcept { poll(data, events_of(data) | UV_READABLE); };
  context.ev.delRead = [](void* data) noexcept { poll(data, events_of(data) & ~UV_READABLE); };
  context.ev.addWrite = [](void* data) noexcept { poll(data, events_of(data) | UV_WRITABLE); };
  context.ev.delWrite = [](void* data) noexcept { poll(data, events_of(data) & ~UV_WRITABLE); };
  context.ev.cleanup = on_cleanup;
  set_guard(*context.c.reader, socket);
}

void set_options(redisContext& context) {
  // A program that this one starts must not keep the connection, and with it a SESSION hold, alive.
  fcntl(context.fd, F_SETFD, FD_CLOEXEC);
  // A machine that has vanished is noticed within half a minute, whether it owes an acknowledgement or not.
  redisEnableKeepAlive(&context);
  const unsigned int longest_ms = 30000;
  setsockopt(context.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &longest_ms, sizeof longest_ms);
}

void on_lookup(uv_getaddrinfo_t* request, int error, addrinfo* found) noexcept {
  auto* lookup = static_cast<SocketConnection::Lookup*>(request->data);
  if (lookup->connection != nullptr) lookup->connection->note_lookup(error, found);
  uv_freeaddrinfo(found);
  delete lookup;
}

bool is_numeric(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return uv_inet_pton(AF_INET, host.c_str(), bytes.data()) == 0 ||
         uv_inet_pton(AF_INET6, host.c_str(), bytes.data()) == 0;
}

// Also with the zone of a link-local address, as in fe80::1%eth0.
std::string text_of(const addrinfo& address) {
  std::array<char, NI_MAXHOST> host{};
  const int error = getnameinfo(address.ai_addr, address.ai_addrlen, host.data(), host.size(), nullptr, 0,
                                NI_NUMERICHOST);
  return error == 0 ? host.data() : "";
}

}  // namespace

SocketConnection::SocketConnection(Loop& loop, const Address& address, ConnectionUser& user)
    : loop_(loop), user_(user), port_(address.port), timer_(loop, [this] { connect_next(); }) {
  if (is_numeric(address.host)) {
    hosts_ = {address.host};
    timer_.set(Loop::now());
  } else {
    look_up(address);
  }
}

SocketConnection::~SocketConnection() {
  if (lookup_ != nullptr) {
    lookup_->connection = nullptr;
    uv_cancel(reinterpret_cast<uv_req_t*>(&lookup_->uv));
  }
  drop_socket();
}

void SocketConnection::look_up(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  auto lookup = std::make_unique<Lookup>();
  lookup->connection = this;
  lookup->uv.data = lookup.get();
  const int error =
      uv_getaddrinfo(&loop_.core().uv, &lookup->uv, on_lookup, address.host.c_str(), nullptr, &hints);
  if (error == 0) {
    lookup_ = lookup.release();
  } else {
    why_ = uv_strerror(error);
    timer_.set(Loop::now());
  }
}

void SocketConnection::note_lookup(int error, const addrinfo* found) {
  lookup_ = nullptr;
  if (error != 0) why_ = uv_strerror(error);
  for (; found != nullptr; found = found->ai_next) hosts_.push_back(text_of(*found));
  connect_next();
}

// Tries its addresses one after the other: "localhost" is often ::1 first, and the server at 127.0.0.1.
void SocketConnection::connect_next() {
  drop_socket();
  while (next_ < hosts_.size()) {
    if (connect(hosts_[next_++])) {
      why_ = "no connection in time";
      return timer_.set(Loop::now() + DurationMs{kSilence.count / static_cast<int64_t>(hosts_.size())});
    }
  }
  user_.broke(why_);
}

bool SocketConnection::connect(const std::string& host) {
  redisAsyncContext* context = redisAsyncConnect(host.c_str(), port_);
  auto socket = std::make_unique<Socket>();
  const int error = context->err != 0 ? 0 : uv_poll_init(&loop_.core().uv, &socket->uv, context->c.fd);
  if (context->err != 0 || error != 0) {
    why_ = reason(error != 0 ? uv_strerror(error) : context->errstr);
    redisAsyncFree(context);
    return false;
  }
  set_options(context->c);
  socket->uv.data = socket.get();
  socket->context = context;
  socket->connection = this;
  socket_ = socket.release();
  set_hooks(*context, *socket_);
  redisAsyncSetConnectCallback(context, on_connect);  // it also waits for the socket to become writable
  return true;
}

void SocketConnection::note_open() {
  open_ = true;
  timer_.set(kNever);
  user_.opened();
}

void SocketConnection::note_end(const std::string& why) {
  socket_ = nullptr;  // on its way out
  why_ = why;
  if (!open_) return connect_next();
  open_ = false;
  user_.broke(why);
}

void SocketConnection::drop_socket() {
  Socket* socket = std::exchange(socket_, nullptr);
  if (socket == nullptr) return;
  socket->connection = nullptr;
  if (socket->context != nullptr) redisAsyncFree(socket->context);
}

void SocketConnection::send(const std::vector<std::string>& argv) {
  assert(open_);
  std::vector<const char*> words;
  std::vector<size_t> sizes;
  for (const std::string& word : argv) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  const int result = redisAsyncCommandArgv(socket_->context, on_reply, nullptr,
                                           static_cast<int>(argv.size()), words.data(), sizes.data());
  assert(result == REDIS_OK);
  static_cast<void>(result);
}

}  // namespace holdfast::client
