// OpenSSL reads and writes through a BIO in memory: a read takes from the bytes given to feed(), a write
// appends to the caller's buffer. This saves a copy.
#include "tls/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include "tls/tls_error.h"

namespace holdfast {
namespace {

// The plaintext of one record, which is the most that one read returns.
constexpr size_t kRecordBytes = size_t{16} << 10;

TlsSession* self(BIO* bio) { return static_cast<TlsSession*>(BIO_get_data(bio)); }

}  // namespace

int TlsSession::on_write(bio_st* bio, const char* data, size_t size, size_t* written) {
  TlsSession* session = self(bio);
  if (session->sink_ == nullptr) return 0;
  session->sink_->append({data, size});
  *written = size;
  return 1;
}

int TlsSession::on_read(bio_st* bio, char* data, size_t size, size_t* read) {
  TlsSession* session = self(bio);
  BIO_clear_retry_flags(bio);
  if (session->source_.empty()) {
    BIO_set_retry_read(bio);
    return 0;
  }
  *read = std::min(size, session->source_.size());
  std::memcpy(data, session->source_.data(), *read);
  session->source_.remove_prefix(*read);
  return 1;
}

long TlsSession::on_control(bio_st*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

// Returns the BIO method, made once and never freed, as sessions of other threads may outlive main().
const bio_method_st* TlsSession::method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdfast");
    if (m == nullptr) throw std::bad_alloc();
    BIO_meth_set_write_ex(m, on_write);
    BIO_meth_set_read_ex(m, on_read);
    BIO_meth_set_ctrl(m, on_control);
    return m;
  }();
  return kMethod;
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, const std::string& host)
    : context_(std::move(context)), native_(SSL_new(context_->native())) {
  BIO* bio = native_ == nullptr ? nullptr : BIO_new(method());
  if (bio == nullptr) {
    SSL_free(native_);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(native_, bio, bio);
  if (context_->role() == TlsRole::kServer) {
    SSL_set_accept_state(native_);
  } else {
    SSL_set_connect_state(native_);
    if (!host.empty()) check_name(host);
  }
}

TlsSession::~TlsSession() { SSL_free(native_); }

// Sets the name to verify. After a failure the session's start fails, so that no data goes to an unverified
// peer.
void TlsSession::check_name(const std::string& host) {
  X509_VERIFY_PARAM* param = SSL_get0_param(native_);
  ERR_clear_error();
  if (X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str()) == 1) return;
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool set = X509_VERIFY_PARAM_set1_host(param, host.c_str(), host.size()) == 1 &&
                   SSL_set_tlsext_host_name(native_, host.c_str()) == 1;
  ERR_clear_error();  // the error that it is no address
  if (set) return;
  state_ = State::kFailed;
  error_ = "'" + host + "' is not a host name";
}

bool TlsSession::start(Buffer& out) {
  if (state_ != State::kHandshake) return state_ != State::kFailed;
  sink_ = &out;
  const bool going = handshake();
  sink_ = nullptr;
  return going;
}

bool TlsSession::feed(std::string_view ciphertext, Buffer& plaintext, Buffer& out) {
  if (state_ == State::kFailed) return false;
  if (state_ == State::kEnded) return true;
  source_ = ciphertext;
  sink_ = &out;
  bool going = state_ == State::kOpen || handshake();
  if (state_ == State::kOpen) going = read(plaintext);
  source_ = {};
  sink_ = nullptr;
  return going;
}

bool TlsSession::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(native_);
  if (result != 1) return fail(result);
  state_ = State::kOpen;
  return true;
}

// Reads while there are whole records. SSL_read_ex() fails only after all input has been consumed.
bool TlsSession::read(Buffer& plaintext) {
  while (true) {
    ERR_clear_error();
    size_t n = 0;
    const int result = SSL_read_ex(native_, plaintext.reserve(kRecordBytes), kRecordBytes, &n);
    if (result != 1) return fail(result);
    plaintext.commit(n);
  }
}

// Returns true if OpenSSL only needs more input, or the peer has ended its output. Otherwise sets the
// failure.
bool TlsSession::fail(int result) {
  const int error = SSL_get_error(native_, result);
  if (error == SSL_ERROR_WANT_READ) return true;
  if (error == SSL_ERROR_ZERO_RETURN) {
    if (state_ == State::kOpen) {
      state_ = State::kEnded;
      return true;
    }
    error_ = "the peer closed the connection during the handshake";
  } else {
    error_ = reason();
  }
  state_ = State::kFailed;
  return false;
}

std::string TlsSession::reason() {
  const unsigned long code = ERR_peek_last_error();
  const int number = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  std::string text = take_tls_error();
  if (number == SSL_R_CERTIFICATE_VERIFY_FAILED)
    text += std::string(": ") + X509_verify_cert_error_string(SSL_get_verify_result(native_));
  const bool no_tls = number == SSL_R_WRONG_VERSION_NUMBER || number == SSL_R_HTTP_REQUEST ||
                      number == SSL_R_HTTPS_PROXY_REQUEST;
  if (no_tls && state_ == State::kHandshake) return "the peer does not speak TLS (" + text + ")";
  return text;
}

bool TlsSession::write(std::string_view plaintext, Buffer& out) {
  assert((is_open() || state_ == State::kFailed) && !closed_);
  if (state_ == State::kFailed) return false;
  if (plaintext.empty()) return true;
  ERR_clear_error();
  sink_ = &out;
  size_t n = 0;
  const int result = SSL_write_ex(native_, plaintext.data(), plaintext.size(), &n);
  sink_ = nullptr;
  if (result == 1) return true;
  // After the handshake a write never waits for the peer, as renegotiation is disabled.
  fail(result);
  if (state_ != State::kFailed) error_ = "a write failed before its end";
  state_ = State::kFailed;
  return false;
}

void TlsSession::close(Buffer& out) {
  if (!is_open() || std::exchange(closed_, true)) return;
  ERR_clear_error();
  sink_ = &out;
  SSL_shutdown(native_);
  sink_ = nullptr;
  ERR_clear_error();
}

std::string TlsSession::version() const { return is_open() ? SSL_get_version(native_) : ""; }

std::string TlsSession::cipher() const { return is_open() ? SSL_get_cipher_name(native_) : ""; }

}  // namespace holdfast
