// What a connection has in addition when it speaks TLS.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "core/base/buffer.h"
#include "tls/tls_session.h"

namespace holdfast {

// Ciphertext made ahead of what the socket takes; also what one write is at most.
inline constexpr size_t kTlsWriteBytes = size_t{128} << 10;

struct TlsStream {
  explicit TlsStream(std::shared_ptr<const TlsContext> context) : session(std::move(context)) {}

  bool handshakes() const { return session.state() == TlsSession::State::kHandshake; }

  TlsSession session;
  Buffer unsent;            // ciphertext that the socket has not taken
  std::string_view denial;  // said after the handshake, instead of serving it; empty: it is served
};

}  // namespace holdfast
