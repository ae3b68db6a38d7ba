// See tls_error.h.
#include "tls/tls_error.h"

#include <openssl/err.h>

#include <cstring>

namespace holdfast {

std::string take_tls_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown";
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "OpenSSL's error " + std::to_string(code);
}

}  // namespace holdfast
