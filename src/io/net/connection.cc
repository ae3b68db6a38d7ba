// The data path of one client. A request is parsed in the buffer that all connections share, right after
// the read. If an earlier part of it waits in the connection's own buffer, it is parsed there.
#include "io/net/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "io/net/server.h"
#include "io/os/handles.h"
#include "io/os/log.h"

namespace holdfast {
namespace {

// The number of reads that discard the last input of a closing connection.
constexpr int kDrainReads = 16;

// One client's share of the time of a loop iteration. Reads the clock after 1, 2, 4, 8 requests, and then
// after each eighth: a few requests may take long, but most are many and short. A single small request does
// not read the clock.
class Share {
 public:
  Share(uint64_t ns, size_t bytes) : ns_(ns), from_(bytes > kSmallRequest ? uv_hrtime() : 0) {}

  // Call it before each request. Returns true if the share is used up; never before the first request.
  bool is_used_up() {
    if (requests_++ != next_look_) return false;
    next_look_ += std::min(next_look_, kMostBetweenLooks);
    const uint64_t now = uv_hrtime();
    if (from_ == 0) from_ = now;
    return now - from_ > ns_;
  }

 private:
  static constexpr size_t kSmallRequest = 512;
  static constexpr size_t kMostBetweenLooks = 8;
  const uint64_t ns_;
  uint64_t from_;
  size_t requests_ = 0;
  size_t next_look_ = 1;
};

}  // namespace

Connection::Connection(Server& server, Kind kind)
    : server_(server),
      parser_(server.engine().config().limits),
      pending_(this),
      replied_at_(server.reads()) {
  if (kind == Kind::kTcp) {
    uv_tcp_init(server.loop(), &handle_.tcp);
  } else {
    uv_pipe_init(server.loop(), &handle_.pipe, 0);
  }
  handle_.handle.data = this;
}

void Connection::start(ConnId id, TimeMs now) {
  id_ = id;
  last_active_ = now;
  output_ = &server_.engine().output(id);
  for (Buffer* buffer : {&pending_.bytes(), &last_words_}) server_.engine().count_memory(*buffer);
  if (uv_read_start(stream(), on_alloc, on_read) != 0) close();
}

void Connection::on_alloc(uv_handle_t* handle, size_t, uv_buf_t* buf) noexcept {
  *buf = owner_of<Connection>(handle->data)->next_read();
}

// An empty buffer makes libuv skip the socket until the next iteration. The function returns one in two
// cases: after a read that filled its buffer, because libuv would read up to 32 times in a row while other
// clients wait; and while the client has unparsed input in the backlog.
uv_buf_t Connection::next_read() {
  if (read_was_full_ || backlogged_) {
    read_was_full_ = false;
    return uv_buf_init(nullptr, 0);
  }
  if (input_.empty() || tls_) return server_.read_buffer();
  const size_t wanted = parser_.wanted();
  const size_t missing = wanted > input_.size() ? wanted - input_.size() : 0;
  // Input that a client announces but never sends must not cost memory: reserve at most kMaxReadBytes
  // beyond the received bytes.
  const size_t n = std::clamp(missing, kReadBytes, kMaxReadBytes);
  return uv_buf_init(input_.reserve(n), static_cast<unsigned>(n));
}

void Connection::on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) noexcept {
  Connection* connection = owner_of<Connection>(stream->data);
  if (n > 0) return connection->take(*buf, static_cast<size_t>(n));
  if (n == 0 || n == UV_ENOBUFS) return;
  if (n == UV_EOF) return connection->end_of_input();
  connection->close();  // reset by the peer, or timed out: no reply can be sent
}

void Connection::take(const uv_buf_t& buf, size_t n) {
  read_was_full_ = n == buf.len;
  last_active_ = server_.now().mono;
  server_.note_read(replied_at_);
  if (tls_) [[unlikely]] {
    decrypt({buf.base, n});
    return server_.did_read(n);
  }
  if (buf.base == server_.read_buffer().base) {
    const std::string_view bytes(buf.base, n);
    input_.append(bytes.substr(parse(bytes)));
  } else {
    input_.commit(n);
    parse_input();
  }
  check_input();
  server_.did_read(n);  // last, because it may end the iteration, and close this connection
}

// Runs the complete requests in `bytes` while the connection may continue. Returns the number of bytes
// used.
size_t Connection::parse(std::string_view bytes) {
  Engine& engine = server_.engine();
  const Now& now = server_.now();
  const size_t replies_before = output_->size();
  size_t used = 0;
  Share share(server_.share_ns(), bytes.size());
  RequestBatch& batch = server_.batch();
  batch.clear();
  backlogged_ = stopped_ = false;
  bool preauth = engine.is_preauth(id_);
  parser_.set_preauth(preauth);
  bool runs_deferred = !engine.blocked(id_) && !engine.closing(id_);
  while (used < bytes.size() && runs_deferred) {
    if (used > kReadBytes || output_->size() > replies_before + kRunReplyBytes || share.is_used_up()) {
      backlogged_ = true;
      server_.add_backlog(id_);
      return used;
    }
    RequestBatch::Taken request;
    if (parser_.at_start() && (!batch.empty() || cut_batch(batch, bytes.substr(used)))) {
      request = batch.take();
    } else {
      const RequestParser::Status status = parser_.parse(bytes.substr(used));
      if (status == RequestParser::Status::kMore) return used;
      if (status == RequestParser::Status::kBroken) {
        engine.reject(id_, parser_.error(), server_.effects());
        return bytes.size();
      }
      request = {parser_.argv(), parser_.consumed()};
    }
    if (!request.argv.empty()) runs_deferred = engine.apply(id_, request.argv, now, server_.effects());
    used += request.bytes;
    if (preauth) [[unlikely]]
      parser_.set_preauth(preauth = engine.is_preauth(id_));
  }
  stopped_ = used < bytes.size();
  return engine.closing(id_) ? bytes.size() : used;
}

// Cuts the next requests. Returns false if the parser must take the next one. A single request has nothing
// to wait for, so that prefetching would not save time.
bool Connection::cut_batch(RequestBatch& batch, std::string_view bytes) {
  Engine& engine = server_.engine();
  batch.cut(bytes, engine.config().limits);
  if (batch.size() > 1) engine.prefetch(id_, batch);
  return !batch.empty();
}

void Connection::parse_input() {
  input_.consume(parse(input_.view()));
  if (input_.empty()) tidy(input_);
}

// Frees the memory of a large buffer. The buffer is empty, or its bytes are no longer needed.
void Connection::tidy(Buffer& buffer) {
  if (buffer.capacity() > kKeptBytes) server_.free_later(buffer);
}

// While a chunked request runs, the server reads only up to the next request: the rest stays with the peer.
void Connection::check_input() {
  server_.engine().record_input(id_, input_.size());
  if (input_.size() >= kReadBytes && server_.engine().runs_deferred(id_)) stop_reading();
  if (input_.size() > server_.engine().input_limit(id_))
    return refuse("its unprocessed input exceeds client-query-buffer-limit");
  if (server_.engine().exceeds_share(id_)) refuse(kExceedsShare);
}

void Connection::resume() {
  if (!input_.empty()) {
    parse_input();
    server_.engine().record_input(id_, input_.size());
  }
  if (read_stopped_) read_again();
  close_if_finished();
}

void Connection::stop_reading() {
  uv_read_stop(stream());
  read_stopped_ = true;
}

void Connection::read_again() {
  if (closed_ || server_.engine().runs_deferred(id_)) return;
  read_stopped_ = false;
  if (!at_end_ && uv_read_start(stream(), on_alloc, on_read) != 0) close();
}

// A client that ended its input may still read: pending replies are sent first. But a waiting request ends
// here, because a disconnected peer looks the same.
void Connection::end_of_input() {
  server_.now();  // begins the iteration that flushes the replies
  at_end_ = true;
  uv_read_stop(stream());
  if (handshakes()) return give_up_handshake("the client disconnected");
  close_if_finished();
}

void Connection::close_if_finished() {
  if (!at_end_ || closed_) return;
  const Engine& engine = server_.engine();
  if (engine.runs_deferred(id_)) return;
  if (is_under_way() && !engine.blocked(id_)) return;
  tls_ ? write_tls() : write_now();
  close();
}

bool Connection::is_under_way() const {
  const bool unsent = pending_.under_way() || !output_->empty() || (tls_ && !tls_->unsent.empty());
  return unsent || backlogged_ || stopped_;
}

void Connection::flush() {
  output_ = &server_.engine().output(id_);  // which also clears the engine's dirty mark of this client
  gate_.open(output_->size());
  last_active_ = server_.now().mono;  // a client that gets its reply now has not been idle until now
  send();
}

void Connection::hold(HeldReplies& replies, const Store::Promise& promise) {
  output_ = &server_.engine().output(id_);
  gate_.hold(replies, promise, id_, output_->size());
  is_reader_too_slow();  // last, because it may close
}

void Connection::release(uint64_t end) {
  gate_.release(end, output_->size());
  last_active_ = server_.now().mono;
  send();  // last, because it may close
}

void Connection::send() {
  if (pending_.under_way() || output_->overflowed()) {
    is_reader_too_slow();
    return;
  }
  if (tls_) [[unlikely]]
    return send_tls();
  if (!write_now()) return close();
  if (output_->empty()) {
    tidy(*output_);
    return close_if_finished();
  }
  if (!is_reader_too_slow() && gate_.allowed() > 0) write_rest();
}

// Writes as many of the first `most` bytes as the socket accepts now. Returns how many; nullopt if the peer
// disconnected.
std::optional<size_t> Connection::try_write(Buffer& bytes, size_t most) {
  if (most == 0) return 0;
  const uv_buf_t buf = buf_of(bytes.view().substr(0, most));
  const int result = uv_try_write(stream(), &buf, 1);
  if (result == UV_EAGAIN) return 0;
  if (result < 0) return std::nullopt;
  const auto n = static_cast<size_t>(result);
  server_.did_write(n);
  replied_at_ = server_.reads();
  bytes.consume(n);
  return n;
}

// Writes everything that may leave, in one write. Returns false if the peer disconnected.
bool Connection::write_now() {
  const std::optional<size_t> n = try_write(*output_, gate_.allowed());
  if (n) gate_.record_left(*n);
  return n.has_value();
}

void Connection::take_allowed() {
  const size_t allowed = gate_.allowed();
  if (allowed < output_->size()) {
    pending_.bytes().append(output_->view().substr(0, allowed));
    output_->consume(allowed);
  } else {
    pending_.bytes().swap(*output_);
  }
  gate_.record_left(allowed);
}

// The socket is full: the loop sends the rest when there is room. The engine may move the bytes in output_
// as it appends, so the bytes to write move to pending_.
void Connection::write_rest() {
  if (tls_) {
    pending_.bytes().swap(tls_->unsent);
  } else {
    take_allowed();
  }
  if (!lingering_) server_.engine().record_in_flight(id_, pending_.bytes().size());
  if (!pending_.begin(stream(), on_written)) close();
}

void Connection::on_written(uv_write_t* request, int status) noexcept {
  Connection* c = owner_of<Connection>(request->data);
  c->pending_.end();
  if (c->closed_) return;
  if (status != 0) return c->close();
  c->server_.now();  // begins an iteration, because a close may have effects
  c->server_.did_write(c->pending_.bytes().size());
  c->pending_.bytes().clear();
  c->tidy(c->pending_.bytes());
  if (!c->lingering_) {
    c->server_.engine().record_in_flight(c->id_, 0);
    return c->send();
  }
  if (c->tls_ ? c->encrypt() : !c->last_words_.empty()) return c->write_rest();
  c->drain();
  c->close();
}

bool Connection::is_reader_too_slow() {
  size_t in_flight = pending_.under_way() ? uv_stream_get_write_queue_size(stream()) : 0;
  if (tls_) in_flight += tls_->unsent.size();
  const size_t limit = server_.engine().output_limit(id_);
  if (!output_->overflowed() && output_->size() + in_flight <= limit) return false;
  refuse("its unread replies exceed client-output-buffer-limit");
  return true;
}

void Connection::refuse(std::string_view why) {
  log_line(LogLevel::kWarning, fmt::format("client {} closed: {}", id_.serial, why),
           {{"client", id_.serial}, {"why", why}});
  close();
}

void Connection::finish() {
  drain();
  if (closed_) return;
  if (tls_ && !pending_.under_way() && !write_tls()) return close();
  const bool all_sent = output_->empty() && (!tls_ || tls_->unsent.empty());
  pending_.under_way() || !all_sent ? linger() : close();
}

// The engine drops the client, so its holds end now. The socket stays open until the peer has read the last
// replies.
void Connection::linger() {
  uv_read_stop(stream());
  last_words_.swap(*output_);
  lingering_ = true;
  output_ = &last_words_;
  gate_.open(last_words_.size());
  server_.linger(*this);
  if (!pending_.under_way()) write_rest();
}

void Connection::abandon() {
  drain();
  closed_ = true;
  uv_close(&handle_.handle, on_closed);
}

// Discards unread input. A socket closed with unread input is reset, and the reset may overtake the last
// reply.
void Connection::drain() {
  const int fd = closed_ ? -1 : fd_of(stream());
  if (fd < 0) return;
  const uv_buf_t buf = server_.read_buffer();
  for (int reads = 0; reads < kDrainReads; ++reads) {
    if (recv(fd, buf.base, buf.len, MSG_DONTWAIT) < static_cast<ssize_t>(buf.len)) return;
  }
}

void Connection::close() {
  if (closed_) return;
  if (tls_) send_close_notify();
  closed_ = true;
  lingering_ ? server_.end_linger(*this) : server_.forget(id_);
  uv_close(&handle_.handle, on_closed);
}

void Connection::on_closed(uv_handle_t* handle) noexcept {
  const std::unique_ptr<Connection> last_owner(owner_of<Connection>(handle->data));
  Connection& c = *last_owner;
  for (Buffer* buffer : {&c.input_, &c.pending_.bytes(), &c.last_words_}) c.tidy(*buffer);
}

}  // namespace holdfast
