// The data that all TLS sessions of one kind share: certificate, key, trusted authorities, versions and
// ciphers. Made from files once and never changed. A reload makes another context; running sessions keep
// theirs. Knows no socket.
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace holdfast {

enum class TlsRole { kServer, kClient };

// The check of the peer's certificate. A server with kOptional accepts clients without a certificate, but
// rejects an invalid one. For a client kOptional equals kRequired, as a server always has a certificate.
enum class TlsVerify { kNone, kOptional, kRequired };

struct TlsSettings {
  TlsRole role = TlsRole::kServer;
  std::string cert_file;  // PEM: the certificate, then those of its issuers. A client may have none
  std::string key_file;   // PEM: the key of that certificate
  std::string key_pass;   // passphrase of an encrypted key
  std::string ca_file;    // PEM: trusted authorities
  std::string ca_dir;     // folder of such files, named by hash, as "openssl rehash" names them
  TlsVerify verify = TlsVerify::kRequired;
  std::string protocols;     // "TLSv1.2", "TLSv1.3" or both; empty: both
  std::string ciphers;       // of TLS 1.2, as OpenSSL names them; empty: its default
  std::string ciphersuites;  // of TLS 1.3; empty: its default
  bool prefer_server_ciphers = false;
};

class TlsContext;

// A context, or null and one line for a person: the file or setting that is wrong, and a remedy.
struct TlsContextMade {
  std::shared_ptr<const TlsContext> context;
  std::string why;
};

class TlsContext {
 public:
  // Reads the files that `settings` name; blocks on the disk. A server needs a certificate and a key, and
  // an authority if it verifies clients. A client that verifies without a given authority trusts the
  // system's.
  static TlsContextMade make(const TlsSettings& settings);

  TlsRole role() const { return role_; }
  TlsVerify verify() const { return verify_; }
  // For sessions: OpenSSL counts the references, and making a session does not change the context.
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
