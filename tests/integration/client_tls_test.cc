// The client's transport over TLS, against servers that a handshake must survive: wrong certificates,
// silence, disconnects in the middle, single bytes.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "client/base/address.h"
#include "files/certificates.h"
#include "integration/listener.h"
#include "integration/redis_rig.h"
#include "integration/transport_rig.h"
#include "tls/tls_session.h"

namespace holdfast::integration {
namespace {

struct Made : Certificates {
  Made() {
    issue("server");
    issue("client");
    authority("other-ca");
  }
};

const Certificates& certificates() {
  static const Made made;
  return made;
}

std::shared_ptr<const TlsContext> server_context(const std::string& name, const std::string& clients = "") {
  TlsSettings settings;
  settings.cert_file = certificates().pem(name);
  settings.key_file = certificates().key(name);
  settings.verify = clients.empty() ? TlsVerify::kNone : TlsVerify::kRequired;
  if (!clients.empty()) settings.ca_file = certificates().pem(clients);
  const TlsContextMade made = TlsContext::make(settings);
  REQUIRE_MESSAGE(made.context, made.why);
  return made.context;
}

// A server's end of one connection.
class TlsPeer {
 public:
  TlsPeer(Listener& listener, std::shared_ptr<const TlsContext> context, size_t piece = SIZE_MAX)
      : raw_(listener.accept()), session_(std::move(context)), piece_(piece) {}

  // The next `n` bytes of the client's plaintext. If the connection ends before, "(closed)" follows them.
  std::string read(size_t n) {
    while (plain_.size() < n) {
      if (!read_more()) return std::string(plain_.view()) + "(closed)";
    }
    std::string text(plain_.view().substr(0, n));
    plain_.consume(n);
    return text;
  }
  void shake_hands() {
    while (!session_.is_open()) REQUIRE(read_more());
  }
  void send(std::string_view plaintext) {
    REQUIRE(session_.write(plaintext, out_));
    flush();
  }
  // Sends only half of the record.
  void send_half(std::string_view plaintext) {
    REQUIRE(session_.write(plaintext, out_));
    out_.truncate(out_.size() / 2);
    flush();
  }
  Client& raw() { return raw_; }
  const TlsSession& session() const { return session_; }

 private:
  bool read_more() {
    pollfd wanted{raw_.fd(), POLLIN, 0};
    REQUIRE(poll(&wanted, 1, 60000) == 1);
    std::string bytes(65536, '\0');
    const ssize_t n = recv(raw_.fd(), bytes.data(), bytes.size(), 0);
    if (n <= 0) return false;
    const bool good = session_.feed({bytes.data(), static_cast<size_t>(n)}, plain_, out_);
    flush();
    return good && session_.state() != TlsSession::State::kEnded;
  }
  void flush() {
    while (!out_.empty()) {
      const size_t n = std::min(piece_, out_.size());
      if (!raw_.try_send(out_.view().substr(0, n))) out_.truncate(n);
      out_.consume(n);
    }
  }

  Client raw_;
  TlsSession session_;
  const size_t piece_;
  Buffer plain_, out_;
};

Address address_of(int port, const std::string& settings, const std::string& host = "127.0.0.1") {
  return client::client_config_of("holdfasts://" + host + ":" + std::to_string(port) + "?" + settings)
      .servers.at(0);
}

std::string trusting() { return "cacert=" + certificates().pem("ca"); }

const std::string kPing = frame({"PING"});

// The outcome of a request to a server with this certificate by a client with these settings.
std::string ping(const std::string& certificate, const std::string& settings,
                 const std::string& clients = "", size_t piece = SIZE_MAX,
                 const std::string& host = "127.0.0.1") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(address_of(listener.port(), settings, host));
  rig.run([&] { rig.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); });
  TlsPeer peer(listener, server_context(certificate, clients), piece);
  if (peer.read(kPing.size()) == kPing) peer.send("+PONG\r\n");
  return text(inbox.take());
}

TEST_CASE("tls: a server with a valid certificate is accepted, by name and by address") {
  CHECK(ping("server", trusting()) == "text 0 PONG");
  CHECK(ping("server", trusting(), "", SIZE_MAX, "localhost") == "text 0 PONG");
  CHECK(ping("server", trusting() + "&sni=localhost") == "text 0 PONG");
}

TEST_CASE("tls: a handshake and replies that come byte by byte work") {
  CHECK(ping("server", trusting(), "", 1) == "text 0 PONG");
}

TEST_CASE("tls: a certificate that cannot be verified ends the connection, and the error says what to do") {
  const std::string failed = "lost 0 TLS: certificate verify failed: ";
  const std::string give = "; name the authority of the server's certificate by cacert=FILE";
  CHECK(ping("server", "cacert=" + certificates().pem("other-ca")) ==
        failed + "unable to get local issuer certificate" + give);
  CHECK(ping("server", "timeout=1000") == failed + "unable to get local issuer certificate" + give);
  CHECK(ping("ca", "timeout=1000") == failed + "self-signed certificate" + give);
  CHECK(ping("server", trusting() + "&sni=other.example") ==
        failed +
            "hostname mismatch; the server's certificate is not for other.example; connect to a name "
            "in the certificate, or give one by sni=NAME");
}

TEST_CASE("tls: insecure verifies nothing") { CHECK(ping("server", "insecure") == "text 0 PONG"); }

TEST_CASE("tls: a server that requires a certificate gets one, or gives the reason for the rejection") {
  const auto own = [](const std::string& name) {
    return trusting() + "&cert=" + certificates().pem(name) + "&key=" + certificates().key(name);
  };
  CHECK(ping("server", own("client"), "ca") == "text 0 PONG");
  const std::string refused = ping("server", trusting(), "ca");
  CHECK(refused.starts_with("lost 0 TLS: "));
  CHECK(refused.ends_with(
      "certificate required; the server may require a certificate: give cert=FILE and key=FILE"));
}

TEST_CASE("tls: if a server ends the connection in the handshake, the request is lost with a reason") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(address_of(listener.port(), trusting()));
  rig.wait({"PING"}, inbox);
  listener.accept().half_close();
  CHECK(text(inbox.take()) ==
        "lost 0 TLS: server closed the connection during the handshake; does this port speak TLS?");
  rig.wait({"PING"}, inbox);
  listener.accept().send("SSH-2.0-OpenSSH\r\n");
  CHECK(text(inbox.take()) == "lost 0 TLS: the peer does not speak TLS (wrong version number)");
}

TEST_CASE("tls: the handshake is a part of connecting, which has a timeout of five seconds") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(address_of(listener.port(), trusting()));
  rig.wait({"PING"}, inbox);
  const Client silent = listener.accept();
  CHECK(text(inbox.take()) == "lost 0 TLS: no handshake in time; does this port speak TLS?");
}

TEST_CASE("tls: a request is lost if its stream is cut in a record, and the next connection works") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(address_of(listener.port(), trusting()));
  const auto ask = [&] { rig.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); };
  const auto context = server_context("server");
  rig.run(ask);
  {
    TlsPeer peer(listener, context);
    CHECK(peer.read(kPing.size()) == kPing);
    peer.send_half("+PONG\r\n");
  }
  CHECK(text(inbox.take()) == "lost 0 server closed the connection");
  until("the pause is over", [&] {
    rig.run(ask);
    pollfd wanted{listener.fd(), POLLIN, 0};
    return poll(&wanted, 1, 50) == 1;
  });
  TlsPeer peer(listener, context);
  CHECK(peer.read(kPing.size()) == kPing);
  peer.send("+PONG\r\n");
  while (text(inbox.take()) != "text 0 PONG") continue;  // requests during the pause are lost
}

TEST_CASE("tls: the client tells the server the end by close_notify") {
  Listener listener;
  Inbox<Reply> inbox;
  const auto rig = std::make_unique<Rig>(address_of(listener.port(), trusting()));
  const Link::Wait wait = rig->wait({"PING"}, inbox);
  TlsPeer peer(listener, server_context("server"));
  CHECK(peer.read(kPing.size()) == kPing);
  peer.send("+PONG\r\n");
  CHECK(text(inbox.take()) == "text 0 PONG");
  rig->run([&] { rig->link().end(wait); });
  CHECK(peer.read(1) == "(closed)");
  CHECK(peer.session().state() == TlsSession::State::kEnded);
}

TEST_CASE("tls: a link may be destroyed by its own callback, and during the handshake") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(address_of(listener.port(), trusting()));
  rig.run([&] {
    rig.link().send({"PING"}, kLong, [&](const Reply& reply) {
      rig.drop_link();
      inbox.put(reply);
    });
  });
  TlsPeer peer(listener, server_context("server"));
  CHECK(peer.read(kPing.size()) == kPing);
  peer.send("+PONG\r\n+AND\r\n+MORE\r\n");
  CHECK(text(inbox.take()) == "text 0 PONG");
  CHECK(peer.read(1) == "(closed)");

  Rig early(address_of(listener.port(), trusting()));
  early.run([&] { early.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); });
  Client half = listener.accept();
  pollfd hello{half.fd(), POLLIN, 0};
  REQUIRE(poll(&hello, 1, 60000) == 1);
  early.run([&] { early.drop_link(); });
  CHECK(half.read_to_end() != "");
  CHECK(inbox.empty());
}

}  // namespace
}  // namespace holdfast::integration
