// The way of a connection's bytes where it speaks TLS. What is decrypted goes the way of what was read;
// what may leave is encrypted just before it is written, so that the engine's output stays plain and all
// that is said of it there (limits, held replies) holds here as well.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/net/connection.h"
#include "io/net/server.h"
#include "io/os/log.h"

namespace holdfast {
namespace {

// A step of a handshake takes as long as requests of so many bytes: many clients that come at once must not
// keep the replies of others waiting for all of them.
constexpr size_t kHandshakeWork = size_t{64} << 10;

}  // namespace

void Connection::begin_tls(std::shared_ptr<const TlsContext> context, std::string_view denial) {
  tls_ = std::make_unique<TlsStream>(std::move(context));
  tls_->denial = denial;
}

bool Connection::handshakes() const { return tls_ != nullptr && tls_->handshakes(); }

void Connection::give_up_handshake(std::string_view why) {
  if (logs(LogLevel::kVerbose)) {
    log_line(LogLevel::kVerbose, fmt::format("client {}: the TLS handshake failed: {}", id_.serial, why));
  }
  close();
}

// Requests come first, then what the session has to say, and the peer's end last, as in what was read.
void Connection::decrypt(std::string_view bytes) {
  const bool handshook = tls_->handshakes();
  if (handshook) server_.did_work(kHandshakeWork);
  Buffer& plain = input_.empty() ? server_.plaintext() : input_;
  const bool good = tls_->session.feed(bytes, plain, tls_->unsent);
  if (handshook && tls_->session.is_open() && !end_handshake()) return plain.clear();
  if (&plain == &input_) {
    parse_input();
  } else {
    input_.append(plain.view().substr(parse(plain.view())));
    plain.clear();
  }
  check_input();
  if (closed_) return;
  if (!good) return fail_tls(handshook);
  if (!tls_->unsent.empty()) send();
  if (!closed_ && !at_end_ && tls_->session.state() == TlsSession::State::kEnded) end_of_input();
}

// False: it is not to be served.
bool Connection::end_handshake() {
  if (logs(LogLevel::kVerbose)) {
    log_line(LogLevel::kVerbose, fmt::format("client {} uses {} with {}", id_.serial,
                                             tls_->session.version(), tls_->session.cipher()));
  }
  if (tls_->denial.empty()) return true;
  output_->append(tls_->denial);
  allowed_ = output_->size();
  finish();
  return false;
}

// The alert tells the peer why. If the socket does not take it, there is nobody to tell.
void Connection::fail_tls(bool handshook) {
  const std::string why = tls_->session.error();
  if (!writing_) try_write(tls_->unsent, tls_->unsent.size());
  drain();
  if (handshook) return give_up_handshake(why);
  if (logs(LogLevel::kVerbose))
    log_line(LogLevel::kVerbose, fmt::format("client {}: TLS failed: {}", id_.serial, why));
  close();
}

// Encrypts the next of what may leave; false: there is nothing to be sent.
bool Connection::encrypt() {
  const size_t n = std::min(allowed_, kTlsWriteBytes);
  if (n > 0 && tls_->unsent.size() < kTlsWriteBytes && tls_->session.is_open()) {
    tls_->session.write(output_->view().substr(0, n), tls_->unsent);
    output_->consume(n);
    note_left(n);
  }
  return !tls_->unsent.empty();
}

// Encrypts and writes as far as the socket takes it at once. False: the peer has gone.
bool Connection::write_tls() {
  while (encrypt()) {
    if (!try_write(tls_->unsent, tls_->unsent.size())) return false;
    if (!tls_->unsent.empty()) break;
  }
  return tls_->session.state() != TlsSession::State::kFailed;
}

void Connection::send_tls() {
  if (!write_tls()) return close();
  if (!tls_->unsent.empty()) {
    if (!is_reader_too_slow()) write_rest();
    return;
  }
  if (!output_->empty()) {
    is_reader_too_slow();
    return;
  }
  tidy(*output_);
  tidy(tls_->unsent);
  close_if_finished();
}

// Where all has been sent the peer is told that this is the end; where not it shall know that it is not.
void Connection::say_end() {
  if (writing_ || !tls_->unsent.empty() || !output_->empty()) return;
  tls_->session.close(tls_->unsent);
  try_write(tls_->unsent, tls_->unsent.size());
}

}  // namespace holdfast
