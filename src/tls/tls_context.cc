// Each step returns why it failed, or an empty string. Their order gives the clearest message: a file is
// opened before OpenSSL reads it, and the certificate is read before the key that must match it.
#include "tls/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tls/tls_error.h"

namespace holdfast {
namespace {

// A session is resumed only with the same session id context. Without one OpenSSL rejects every resumption
// if clients' certificates are verified.
constexpr unsigned char kSessionContext[] = "holdfast";

std::string check_readable(const std::string& what, const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  // A folder can be opened but not read: peek() detects that.
  if (file && (file.peek() != std::ifstream::traits_type::eof() || file.eof())) return "";
  const char* why = errno != 0 ? std::strerror(errno) : "it cannot be opened";
  return "cannot read the " + what + " " + path + ": " + why + "; check its path and permissions";
}

std::string time_text(const ASN1_TIME* time) {
  tm parts{};
  std::array<char, 64> text{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "an unknown time";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

std::string load_certificate(SSL_CTX* native, const std::string& path) {
  if (std::string why = check_readable("certificate file", path); !why.empty()) return why;
  if (SSL_CTX_use_certificate_chain_file(native, path.c_str()) != 1) {
    return "the certificate file " + path + " cannot be used: " + take_tls_error() +
           "; the file must be PEM: the certificate, then those of its issuers";
  }
  const X509* certificate = SSL_CTX_get0_certificate(native);
  const ASN1_TIME* begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(begin) > 0) {
    return "the certificate in " + path + " is not valid before " + time_text(begin) +
           "; check the clock of this machine, or use another certificate";
  }
  if (X509_cmp_current_time(end) > 0) return "";
  return "the certificate in " + path + " expired at " + time_text(end) + "; renew it";
}

struct Passphrase {
  const std::string& text;
  bool asked = false;
};

// Returns the passphrase to OpenSSL. Without a callback OpenSSL would prompt on the terminal.
int give_passphrase(char* buffer, int size, int, void* data) {
  auto* pass = static_cast<Passphrase*>(data);
  pass->asked = true;
  if (pass->text.empty() || pass->text.size() > static_cast<size_t>(size)) return -1;
  std::memcpy(buffer, pass->text.data(), pass->text.size());
  return static_cast<int>(pass->text.size());
}

std::string load_key(SSL_CTX* native, const TlsSettings& settings) {
  const std::string& path = settings.key_file;
  if (std::string why = check_readable("key file", path); !why.empty()) return why;
  Passphrase pass{settings.key_pass};
  SSL_CTX_set_default_passwd_cb(native, give_passphrase);
  SSL_CTX_set_default_passwd_cb_userdata(native, &pass);
  const bool used = SSL_CTX_use_PrivateKey_file(native, path.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(native, nullptr);
  if (used && SSL_CTX_check_private_key(native) == 1) return "";
  if (used || ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_X509) {
    ERR_clear_error();
    return "the key in " + path + " does not match the certificate in " + settings.cert_file +
           "; use the key that the certificate was made with";
  }
  const std::string reason = take_tls_error();
  if (pass.asked && settings.key_pass.empty())
    return "the key in " + path + " is encrypted; give its passphrase, or use a key without one";
  if (pass.asked) return "the passphrase for the key in " + path + " is wrong: " + reason;
  return "the key file " + path + " cannot be used: " + reason + "; the file must be a private key in PEM";
}

std::string load_authorities(SSL_CTX* native, const TlsSettings& settings) {
  const bool none = settings.ca_file.empty() && settings.ca_dir.empty();
  if (none && settings.role == TlsRole::kClient && settings.verify != TlsVerify::kNone) {
    if (SSL_CTX_set_default_verify_paths(native) == 1) return "";
    return "the system's authorities cannot be read: " + take_tls_error() + "; name a CA file";
  }
  if (!settings.ca_file.empty()) {
    if (std::string why = check_readable("CA file", settings.ca_file); !why.empty()) return why;
    if (SSL_CTX_load_verify_file(native, settings.ca_file.c_str()) != 1) {
      return "the CA file " + settings.ca_file + " cannot be used: " + take_tls_error() +
             "; the file must contain certificates in PEM";
    }
  }
  if (settings.ca_dir.empty()) return "";
  std::error_code error;
  const std::filesystem::directory_iterator entries(settings.ca_dir, error);
  if (error)
    return "cannot read the CA folder " + settings.ca_dir + ": " + error.message() + "; check its path";
  if (entries == std::filesystem::directory_iterator())
    return "the CA folder " + settings.ca_dir +
           " is empty; put certificates there, then run openssl rehash";
  if (SSL_CTX_load_verify_dir(native, settings.ca_dir.c_str()) == 1) return "";
  return "the CA folder " + settings.ca_dir + " cannot be used: " + take_tls_error();
}

std::string set_protocols(SSL_CTX* native, const std::string& protocols) {
  bool two = false;
  bool three = false;
  std::istringstream words(protocols);
  for (std::string word; words >> word;) {
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    if (word == "tlsv1.2") {
      two = true;
    } else if (word == "tlsv1.3") {
      three = true;
    } else {
      return "'" + word + "' is not a supported TLS version; give TLSv1.2, TLSv1.3 or both";
    }
  }
  if (!two && !three) two = three = true;
  SSL_CTX_set_min_proto_version(native, two ? TLS1_2_VERSION : TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(native, three ? TLS1_3_VERSION : TLS1_2_VERSION);
  return "";
}

std::string set_ciphers(SSL_CTX* native, const TlsSettings& settings) {
  if (!settings.ciphers.empty() && SSL_CTX_set_cipher_list(native, settings.ciphers.c_str()) != 1) {
    return "the ciphers '" + settings.ciphers + "' cannot be used: " + take_tls_error() +
           "; see openssl ciphers";
  }
  if (!settings.ciphersuites.empty() &&
      SSL_CTX_set_ciphersuites(native, settings.ciphersuites.c_str()) != 1) {
    return "the ciphersuites '" + settings.ciphersuites + "' cannot be used: " + take_tls_error() +
           "; see openssl ciphers -tls1_3";
  }
  return "";
}

// Disables renegotiation, which is expensive for one side and cheap for the other. Disables compression,
// which reveals facts about the plaintext.
void set_options(SSL_CTX* native, const TlsSettings& settings) {
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  if (settings.prefer_server_ciphers) SSL_CTX_set_options(native, SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_dh_auto(native, 1);
  // An idle session keeps no buffers: for 10,000 clients they would take 340 MB.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // Clients resume by tickets, which cost the server no memory.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(native, kSessionContext, sizeof kSessionContext - 1);
  int verify = settings.verify == TlsVerify::kNone ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
  if (settings.verify == TlsVerify::kRequired) verify |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(native, verify, nullptr);
}

std::string what_is_missing(const TlsSettings& settings) {
  if (settings.role == TlsRole::kServer && settings.cert_file.empty())
    return "no certificate file is set; set a certificate file and its key file";
  if (settings.cert_file.empty() && !settings.key_file.empty())
    return "the key file " + settings.key_file + " is set without a certificate file; set both";
  if (!settings.cert_file.empty() && settings.key_file.empty())
    return "the certificate file " + settings.cert_file + " is set without a key file; set both";
  const bool verifies = settings.role == TlsRole::kServer && settings.verify != TlsVerify::kNone;
  if (verifies && settings.ca_file.empty() && settings.ca_dir.empty())
    return "no CA file or CA folder is set to verify the certificates of clients; set one";
  return "";
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* native) const { SSL_CTX_free(native); }

TlsContext::TlsContext(const TlsSettings& settings)
    : native_(SSL_CTX_new(settings.role == TlsRole::kServer ? TLS_server_method() : TLS_client_method())),
      role_(settings.role),
      verify_(settings.verify) {}

TlsContextMade TlsContext::make(const TlsSettings& settings) {
  ERR_clear_error();
  if (std::string why = what_is_missing(settings); !why.empty()) return {nullptr, why};
  const std::shared_ptr<TlsContext> context(new TlsContext(settings));
  if (context->native_ == nullptr) return {nullptr, "OpenSSL cannot start: " + take_tls_error()};
  std::string why = context->load(settings);
  ERR_clear_error();  // reading some files to their end leaves an entry in the queue
  if (!why.empty()) return {nullptr, why};
  return {context, ""};
}

std::string TlsContext::load(const TlsSettings& settings) {
  SSL_CTX* native = native_.get();
  set_options(native, settings);
  std::string why = set_protocols(native, settings.protocols);
  if (why.empty()) why = set_ciphers(native, settings);
  if (why.empty() && !settings.cert_file.empty()) why = load_certificate(native, settings.cert_file);
  if (why.empty() && !settings.key_file.empty()) why = load_key(native, settings);
  if (why.empty()) why = load_authorities(native, settings);
  return why;
}

}  // namespace holdfast
