// What all TLS sessions of one kind share: certificate, key, the authorities that are trusted, versions and
// ciphers. Made from files once and never changed: to reload them is to make another context, and sessions
// that run keep the one they began with. Knows no socket.
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace holdfast {

enum class TlsRole { kServer, kClient };

// What is asked of the peer's certificate. A server of kOptional takes clients without one, but none that
// shows a wrong one. For a client kOptional is kRequired, as a server always has one.
enum class TlsVerify { kNone, kOptional, kRequired };

struct TlsSettings {
  TlsRole role = TlsRole::kServer;
  std::string cert_file;  // PEM: the certificate, then those of its issuers. A client may have none
  std::string key_file;   // PEM: the key of that certificate
  std::string key_pass;   // of an encrypted key
  std::string ca_file;    // PEM: authorities whose certificates are good
  std::string ca_dir;  // folder of such files by the hashes of their names, as "openssl rehash" makes them
  TlsVerify verify = TlsVerify::kRequired;
  std::string protocols;     // "TLSv1.2", "TLSv1.3" or both; empty: both
  std::string ciphers;       // of TLS 1.2, as OpenSSL names them; empty: its default
  std::string ciphersuites;  // of TLS 1.3; empty: its default
  bool prefer_server_ciphers = false;
};

class TlsContext;

// A context, or null and one line for a person: which file or setting is wrong, and what to do about it.
struct TlsContextMade {
  std::shared_ptr<const TlsContext> context;
  std::string why;
};

class TlsContext {
 public:
  // Reads the files that `settings` name; waits for the disk. A server needs certificate and key, and an
  // authority where it verifies. A client that verifies and has no authority trusts those of the system.
  static TlsContextMade make(const TlsSettings& settings);

  TlsRole role() const { return role_; }
  TlsVerify verify() const { return verify_; }
  // For sessions: OpenSSL counts its users, and does not change it by making them.
  ssl_ctx_st* native() const { return native_.get(); }

 private:
  struct Free {
    void operator()(ssl_ctx_st* native) const;
  };
  explicit TlsContext(const TlsSettings& settings);
  std::string load(const TlsSettings& settings);

  std::unique_ptr<ssl_ctx_st, Free> native_;
  TlsRole role_;
  TlsVerify verify_;
};

}  // namespace holdfast
