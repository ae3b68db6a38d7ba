// One TLS connection without a socket: bytes in, bytes out. Whoever owns it moves the ciphertext. What it
// appends to `out` is for the peer, and has to be sent in that order even if the call failed, since it may
// be the alert that tells the peer why.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/buffer.h"
#include "tls/tls_context.h"

struct ssl_st;
struct bio_st;
struct bio_method_st;

namespace holdfast {

// Not to be moved: OpenSSL keeps its address. One thread at a time.
class TlsSession {
 public:
  enum class State {
    kHandshake,  // nothing can be written yet
    kOpen,
    kEnded,   // the peer has said that it sends no more; it may still read
    kFailed,  // error() says why
  };

  // `host`, of a client: whom it wants to reach, a name or an address without a port. The certificate has
  // to be for it, unless the context does not verify; empty: any certificate of the trusted authorities
  // will do.
  explicit TlsSession(std::shared_ptr<const TlsContext> context, const std::string& host = "");
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  State state() const { return state_; }
  bool is_open() const { return state_ == State::kOpen || state_ == State::kEnded; }
  // Why it failed: one line.
  const std::string& error() const { return error_; }

  // A client begins, once. False: it failed.
  bool start(Buffer& out);

  // Takes what the peer sent, cut in any way. What is decrypted is appended to `plaintext`, and is never
  // longer than what came. False: it failed; what was decrypted before that is good. Behind the end and
  // after a failure what comes is forgotten.
  bool feed(std::string_view ciphertext, Buffer& plaintext, Buffer& out);

  // Encrypts all of `plaintext`; about 22 bytes are added for each 16 KB. Only while is_open() and before
  // close(). False: it failed.
  bool write(std::string_view plaintext, Buffer& out);

  // Says that nothing more comes, where there is somebody to tell: else nothing is sent.
  void close(Buffer& out);

  // "TLSv1.3", and the cipher's name. Empty during the handshake.
  std::string version() const;
  std::string cipher() const;

 private:
  static int on_write(bio_st* bio, const char* data, size_t size, size_t* written);
  static int on_read(bio_st* bio, char* data, size_t size, size_t* read);
  static long on_control(bio_st* bio, int command, long number, void* data);
  static const bio_method_st* method();

  void check_name(const std::string& host);
  bool handshake();
  bool read(Buffer& plaintext);
  bool fail(int result);
  std::string reason();

  std::shared_ptr<const TlsContext> context_;
  ssl_st* native_ = nullptr;
  State state_ = State::kHandshake;
  bool closed_ = false;  // close() has been called
  std::string error_;
  // During a call only: where OpenSSL reads from and writes to.
  std::string_view source_;
  Buffer* sink_ = nullptr;
};

}  // namespace holdfast
