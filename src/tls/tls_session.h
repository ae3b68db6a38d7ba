// One TLS connection without a socket: bytes in, bytes out. Its owner moves the ciphertext. The owner must
// send the bytes appended to `out` to the peer in order, even if the call failed: they may be the alert
// with the reason.
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

// Must not be moved: OpenSSL keeps its address. One thread at a time may use it.
class TlsSession {
 public:
  enum class State {
    kHandshake,  // write() is not possible yet
    kOpen,
    kEnded,   // the peer has ended its output; it may still read
    kFailed,  // error() says why
  };

  // `host` (client only): the server to reach, a name or an address without a port. The certificate must be
  // valid for it, unless the context does not verify. Empty: accepts any certificate of a trusted
  // authority.
  explicit TlsSession(std::shared_ptr<const TlsContext> context, const std::string& host = "");
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  State state() const { return state_; }
  bool is_open() const { return state_ == State::kOpen || state_ == State::kEnded; }
  // Returns the reason of a failure in one line.
  const std::string& error() const { return error_; }

  // Begins the handshake of a client. Call it once. Returns false if it failed.
  bool start(Buffer& out);

  // Accepts bytes from the peer, in pieces of any size. Appends the decrypted bytes to `plaintext`: never
  // more than the input. Returns false if it failed; bytes decrypted before the failure are valid. Ignores
  // input after the end or a failure.
  bool feed(std::string_view ciphertext, Buffer& plaintext, Buffer& out);

  // Encrypts all of `plaintext`, which adds about 22 bytes for each 16 KB. Call it only while is_open() and
  // before close(). Returns false if it failed.
  bool write(std::string_view plaintext, Buffer& out);

  // Tells the peer the end of the output. Sends nothing unless the session is open.
  void close(Buffer& out);

  // Return "TLSv1.3" or "TLSv1.2", and the cipher's name. Empty during the handshake.
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
  // Set only during a call: the source and the target of OpenSSL's reads and writes.
  std::string_view source_;
  Buffer* sink_ = nullptr;
};

}  // namespace holdfast
