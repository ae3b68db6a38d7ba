// See tls_setup.h. CONFIG SET reads the files on the loop's thread: they are small, and the command is
// rare.
#include "io/config/tls_setup.h"

#include <algorithm>
#include <string_view>

#include "io/os/log.h"

namespace holdfast {
namespace {

TlsVerify verify_of(const Options& options) {
  if (options.tls_auth_clients == "no") return TlsVerify::kNone;
  return options.tls_auth_clients == "yes" ? TlsVerify::kRequired : TlsVerify::kOptional;
}

TlsSettings settings_of(const Options& options) {
  TlsSettings settings;
  settings.cert_file = options.tls_cert_file;
  settings.key_file = options.tls_key_file;
  settings.key_pass = options.tls_key_pass;
  settings.ca_file = options.tls_ca_file;
  settings.ca_dir = options.tls_ca_dir;
  settings.verify = verify_of(options);
  settings.protocols = options.tls_protocols;
  settings.ciphers = options.tls_ciphers;
  settings.ciphersuites = options.tls_ciphersuites;
  settings.prefer_server_ciphers = options.tls_prefer_server_ciphers == "yes";
  return settings;
}

// Whether a change of this option needs no new read of the TLS files.
bool needs_no_reload(std::string_view name) {
  return !name.starts_with("tls-") || name == "tls-handshake-timeout";
}

}  // namespace

bool has_tls(const Options& options) {
  return options.any_tls_port || options.tls_port != 0 || (has_http(options) && options.http_tls == "yes");
}

Result<std::shared_ptr<const TlsContext>> make_tls(const Options& options) {
  if (!has_tls(options)) return std::shared_ptr<const TlsContext>();
  if (options.tls_cert_file.empty() || options.tls_key_file.empty())
    return Failure{"TLS needs a certificate and its key; set tls-cert-file and tls-key-file"};
  const bool verifies = verify_of(options) != TlsVerify::kNone;
  if (verifies && options.tls_ca_file.empty() && options.tls_ca_dir.empty()) {
    return Failure{
        "TLS needs authorities to verify clients; set tls-ca-cert-file or tls-ca-cert-dir, or set "
        "tls-auth-clients no to accept clients without certificates"};
  }
  TlsContextMade made = TlsContext::make(settings_of(options));
  if (made.context == nullptr) return Failure{"TLS: " + made.why};
  return made.context;
}

std::optional<ConfigRefusal> reload_tls(const Options& options, const ConfigChanges& changes,
                                        std::shared_ptr<const TlsContext>& tls) {
  const auto named = std::ranges::find_if_not(
      changes, needs_no_reload, [](const auto& change) -> std::string_view { return change.first; });
  if (named == changes.end() || !has_tls(options)) return std::nullopt;
  Result<std::shared_ptr<const TlsContext>> made = make_tls(options);
  if (!made) return ConfigRefusal{named->first, made.error()};
  tls = *made;
  log_line(LogLevel::kNotice, "TLS: files reloaded; new connections use them");
  return std::nullopt;
}

}  // namespace holdfast
