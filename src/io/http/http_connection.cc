// The data path of one HTTP client.
#include "io/http/http_connection.h"

#include <sys/socket.h>

#include <utility>

#include "io/http/http_door.h"
#include "io/net/server.h"
#include "io/os/handles.h"

namespace holdfast {
namespace {

constexpr size_t kHttpReadBytes = size_t{16} << 10;
// Input that the server discards from a client that must not send: after the last reply, or during events.
constexpr size_t kMaxIgnoredBytes = size_t{64} << 10;
constexpr DurationMs kDrainTime{2000};
// A step of a handshake costs as much time as requests of so many bytes.
constexpr size_t kHandshakeWork = size_t{64} << 10;

}  // namespace

HttpConnection::HttpConnection(HttpDoor& door) : door_(door), pending_(this) {
  uv_tcp_init(door.server().loop(), &handle_.tcp);
  handle_.handle.data = this;
}

void HttpConnection::start(Visitor visitor, std::shared_ptr<const TlsContext> tls) {
  visitor_ = std::move(visitor);
  visitor_.tls = tls != nullptr;
  if (tls != nullptr) tls_ = std::make_unique<TlsSession>(std::move(tls));
  for (Buffer* buffer : {&input_, &out_, &pending_.bytes()}) door_.server().engine().count_memory(*buffer);
  uv_tcp_nodelay(&handle_.tcp, 1);
  ready_since_ = door_.server().now().mono;
  deadline_ = ready_since_ + kHttpRequestTime;
  read_again();
}

void HttpConnection::reject(bool tls) {
  if (!tls) {
    out_.append(answer_bytes(refusal_of(503, "too many HTTP connections"), {}));
    try_write();
  }
  closed_ = true;
  uv_close(&handle_.handle, on_closed);
}

void HttpConnection::on_alloc(uv_handle_t* handle, size_t, uv_buf_t* buf) noexcept {
  *buf = uv_buf_init(owner_of<HttpConnection>(handle->data)->door_.server().read_buffer().base,
                     kHttpReadBytes);
}

void HttpConnection::on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) noexcept {
  HttpConnection* connection = owner_of<HttpConnection>(stream->data);
  if (n == 0) return;
  Server& server = connection->door_.server();
  server.now();  // begins the iteration that sends the effects
  if (n < 0) return connection->close();
  connection->take({buf->base, static_cast<size_t>(n)});
  server.did_read(static_cast<size_t>(n));  // last, because it may end the iteration
}

void HttpConnection::take(std::string_view bytes) {
  if (state_ != State::kReading) {
    ignored_bytes_ += bytes.size();
    if (ignored_bytes_ > kMaxIgnoredBytes) close();
    return;
  }
  if (tls_ == nullptr) {
    input_.append(bytes);
  } else if (!decrypt(bytes)) {
    return close();
  }
  proceed();
}

// Returns false if the connection must close.
bool HttpConnection::decrypt(std::string_view bytes) {
  if (!tls_->is_open()) door_.server().did_work(kHandshakeWork);
  const bool good = tls_->feed(bytes, input_, out_);
  if (!out_.empty()) flush();  // perhaps an alert with the reason
  return good && !closed_ && (tls_->state() != TlsSession::State::kEnded || !input_.empty());
}

void HttpConnection::proceed() {
  if (closed_ || state_ != State::kReading || input_.empty()) return;
  if (!begun_) deadline_ = door_.server().now().mono + kHttpRequestTime;
  begun_ = true;
  if (!door_.may_serve()) {
    uv_read_stop(stream());
    return door_.serve_soon(*this);
  }
  size_t used = 0;
  const RequestReader::Status status = reader_.feed(input_.view(), used);
  input_.consume(used);
  if (status == RequestReader::Status::kBroken) return fail(reader_.status());
  status == RequestReader::Status::kDone ? serve() : read_again();
}

void HttpConnection::serve() {
  uv_read_stop(stream());
  state_ = State::kHeld;
  keeps_alive_ = reader_.request().keep_alive;
  HttpAnswer answer = door_.serve(*this, reader_.request());
  if (answer.waits_for_disk) return door_.hold(*this, std::move(answer));
  send(answer);
}

void HttpConnection::fail(int status) {
  uv_read_stop(stream());
  keeps_alive_ = false;
  send(refusal_of(status));
}

void HttpConnection::send(const HttpAnswer& answer) {
  if (closed_) return;
  const HttpRequest& request = reader_.request();
  state_ = answer.streams ? State::kStreaming : State::kWriting;
  deadline_ = door_.server().now().mono + kHttpRequestTime;
  keeps_alive_ = keeps_alive_ && !answer.streams;
  write(answer_bytes(answer, {request.http11 || request.method.empty(), keeps_alive_, request.is_head()}));
  if (answer.streams) {
    read_again();
    if (!closed_) door_.subscribe(*this, answer.user);
  }
}

void HttpConnection::push(std::string_view bytes) {
  if (closed_ || state_ != State::kStreaming) return;
  write(bytes);
  if (out_.size() + pending_.bytes().size() > kMaxUnreadEventBytes) close();
}

void HttpConnection::write(std::string_view bytes) {
  if (tls_ == nullptr) {
    out_.append(bytes);
  } else if (!tls_->is_open() || !tls_->write(bytes, out_)) {
    return close();
  }
  flush();
}

// Returns false if the peer has disconnected.
bool HttpConnection::try_write() {
  const uv_buf_t buf = buf_of(out_.view());
  const int n = uv_try_write(stream(), &buf, 1);
  if (n == UV_EAGAIN) return true;
  if (n < 0) return false;
  door_.server().did_write(static_cast<size_t>(n));
  out_.consume(static_cast<size_t>(n));
  return true;
}

void HttpConnection::flush() {
  if (pending_.under_way() || closed_) return;
  if (!out_.empty() && !try_write()) return close();
  if (out_.empty()) return end_of_answer();
  pending_.bytes().swap(out_);
  if (!pending_.begin(stream(), on_written)) close();
}

void HttpConnection::on_written(uv_write_t* request, int status) noexcept {
  HttpConnection* c = owner_of<HttpConnection>(request->data);
  c->pending_.end();
  if (c->closed_) return;
  c->door_.server().now();
  if (status != 0) return c->close();
  c->door_.server().did_write(c->pending_.bytes().size());
  c->pending_.bytes().reset(0);
  c->deadline_ = c->door_.server().now().mono + kHttpRequestTime;
  c->flush();
}

void HttpConnection::end_of_answer() {
  if (state_ != State::kWriting) return;
  if (!keeps_alive_) return begin_to_drain();
  out_.reset(0);
  reader_.reset();
  state_ = State::kReading;
  begun_ = false;
  ready_since_ = door_.server().now().mono;
  deadline_ = ready_since_ + kHttpIdleTime;
  read_again();
  if (!closed_ && !input_.empty()) door_.serve_soon(*this);  // after the other clients
}

void HttpConnection::read_again() {
  const int error = uv_read_start(stream(), on_alloc, on_read);
  if (error != 0 && error != UV_EALREADY) close();
}

// A socket closed with unread input is reset, and the reset may overtake the reply. So the server ends its
// output first, and waits a little for the peer's end.
void HttpConnection::begin_to_drain() {
  state_ = State::kDraining;
  deadline_ = door_.server().now().mono + kDrainTime;
  if (tls_ != nullptr) {
    tls_->close(out_);
    if (!out_.empty()) try_write();
  }
  uv_os_fd_t fd = -1;
  if (uv_fileno(&handle_.handle, &fd) != 0 || shutdown(fd, SHUT_WR) != 0) return close();
  read_again();
}

void HttpConnection::check_time(TimeMs now) {
  if (closed_ || !is_due(deadline_, now)) return;
  if (state_ == State::kHeld || (state_ == State::kStreaming && !pending_.under_way())) return;
  const bool can_tell = state_ == State::kReading && begun_ && (tls_ == nullptr || tls_->is_open());
  can_tell ? fail(408) : close();
}

void HttpConnection::close() {
  if (closed_) return;
  closed_ = true;
  door_.forget(*this);
  uv_close(&handle_.handle, on_closed);
}

void HttpConnection::on_closed(uv_handle_t* handle) noexcept {
  delete owner_of<HttpConnection>(handle->data);
}

}  // namespace holdfast
