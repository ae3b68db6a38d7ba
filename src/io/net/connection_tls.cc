// The data path of a TLS connection. Decrypted input is handled like input that was read. Replies are
// encrypted just before they are written. So the engine's output stays plain, and its rules (limits, held
// replies) apply here as well.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/net/connection.h"
#include "io/net/server.h"
#include "io/os/log.h"

namespace holdfast {
namespace {

// A step of a handshake costs as much time as requests of so many bytes. So many clients that connect at
// once do not delay the replies of other clients.
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

// Handles the requests first, then sends the session's own output, and handles the peer's end last, as in
// the order of the input.
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

// Returns false if the client is denied.
bool Connection::end_handshake() {
  if (logs(LogLevel::kVerbose)) {
    log_line(LogLevel::kVerbose, fmt::format("client {} uses {} with {}", id_.serial,
                                             tls_->session.version(), tls_->session.cipher()));
  }
  if (tls_->denial.empty()) return true;
  output_->append(tls_->denial);
  gate_.open(output_->size());
  finish();
  return false;
}

// Sends the alert, which tells the peer the reason. If the socket does not accept it, it is dropped.
void Connection::fail_tls(bool handshook) {
  const std::string why = tls_->session.error();
  if (!pending_.under_way()) try_write(tls_->unsent, tls_->unsent.size());
  drain();
  if (handshook) return give_up_handshake(why);
  if (logs(LogLevel::kVerbose))
    log_line(LogLevel::kVerbose, fmt::format("client {}: TLS failed: {}", id_.serial, why));
  close();
}

// Encrypts the next bytes that may leave. Returns false if there is nothing to send.
bool Connection::encrypt() {
  const size_t n = std::min(gate_.allowed(), kTlsWriteBytes);
  if (n > 0 && tls_->unsent.size() < kTlsWriteBytes && tls_->session.is_open()) {
    tls_->session.write(output_->view().substr(0, n), tls_->unsent);
    output_->consume(n);
    gate_.record_left(n);
  }
  return !tls_->unsent.empty();
}

// Encrypts and writes as much as the socket accepts now. Returns false if the peer disconnected.
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

// Tells the peer the end of the stream only if everything has been sent. Otherwise the missing end tells
// the peer that the stream was truncated.
void Connection::send_close_notify() {
  if (pending_.under_way() || !tls_->unsent.empty() || !output_->empty()) return;
  tls_->session.close(tls_->unsent);
  try_write(tls_->unsent, tls_->unsent.size());
}

}  // namespace holdfast
