// The additional state of a connection that uses TLS.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "core/base/buffer.h"
#include "tls/tls_session.h"

namespace holdfast {

// Limit of the ciphertext that the socket has not accepted, and of one write.
inline constexpr size_t kTlsWriteBytes = size_t{128} << 10;

struct TlsStream {
  explicit TlsStream(std::shared_ptr<const TlsContext> context) : session(std::move(context)) {}

  bool handshakes() const { return session.state() == TlsSession::State::kHandshake; }

  TlsSession session;
  Buffer unsent;            // ciphertext that the socket has not accepted
  std::string_view denial;  // sent after the handshake, instead of serving the client; empty: not denied
};

}  // namespace holdfast
