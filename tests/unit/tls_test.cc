// TLS on bytes: a server's and a client's session communicate through buffers, split in every way.
#include <doctest/doctest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "files/certificates.h"
#include "tls/tls_context.h"
#include "tls/tls_session.h"

namespace holdfast {
namespace {

using State = TlsSession::State;

// One set for all tests: its creation takes a while, and no test changes it.
Certificates& files() {
  static const std::unique_ptr<Certificates> kMade = [] {
    auto made = std::make_unique<Certificates>();
    made->issue("server");
    made->issue("client");
    made->issue("old", "ca", -1);
    made->authority("other-ca");
    made->issue("stranger", "other-ca");
    return made;
  }();
  return *kMade;
}

TlsSettings settings(TlsRole role, const std::string& name, TlsVerify verify) {
  TlsSettings s;
  s.role = role;
  if (!name.empty()) {
    s.cert_file = files().pem(name);
    s.key_file = files().key(name);
  }
  s.ca_file = files().pem("ca");
  s.verify = verify;
  return s;
}

std::shared_ptr<const TlsContext> context(const TlsSettings& s) {
  const TlsContextMade made = TlsContext::make(s);
  REQUIRE_MESSAGE(made.context != nullptr, made.why);
  return made.context;
}

std::string why(const TlsSettings& s) {
  const TlsContextMade made = TlsContext::make(s);
  CHECK((made.context == nullptr) == !made.why.empty());
  return made.why;
}

TlsSettings server_settings(TlsVerify verify = TlsVerify::kNone) {
  return settings(TlsRole::kServer, "server", verify);
}
TlsSettings client_settings(const std::string& name = "") {
  return settings(TlsRole::kClient, name, TlsVerify::kRequired);
}

struct Side {
  TlsSession session;
  Buffer in;   // received plaintext
  Buffer out;  // ciphertext to send

  explicit Side(const TlsSettings& s, const std::string& host = "") : session(context(s), host) {}
};

struct Pair {
  Side server;
  Side client;

  explicit Pair(const TlsSettings& of_server = server_settings(),
                const TlsSettings& of_client = client_settings(), const std::string& host = "localhost")
      : server(of_server), client(of_client, host) {
    client.session.start(client.out);
  }

  // Moves all bytes, `piece` at a time, until neither side has output.
  void talk(size_t piece = 1U << 20U) {
    while (!client.out.empty() || !server.out.empty()) {
      move(client, server, piece);
      move(server, client, piece);
    }
  }
  static void move(Side& from, Side& to, size_t piece) {
    Buffer bytes;
    bytes.swap(from.out);
    for (size_t at = 0; at < bytes.size(); at += piece)
      to.session.feed(bytes.view().substr(at, piece), to.in, to.out);
  }
};

std::string pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

}  // namespace

TEST_CASE("TLS: text passes both ways, also byte by byte, in both versions") {
  for (const char* version : {"TLSv1.2", "TLSv1.3"}) {
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{1} << 20U}) {
      TlsSettings s = server_settings();
      s.protocols = version;
      Pair pair(s);
      pair.talk(piece);
      REQUIRE(pair.client.session.state() == State::kOpen);
      REQUIRE(pair.server.session.state() == State::kOpen);
      CHECK(pair.server.session.version() == version);
      CHECK(!pair.client.session.cipher().empty());
      REQUIRE(pair.client.session.write("PING", pair.client.out));
      REQUIRE(pair.server.session.write("PONG", pair.server.out));
      pair.talk(piece);
      CHECK(pair.server.in.view() == "PING");
      CHECK(pair.client.in.view() == "PONG");
    }
  }
}

TEST_CASE("TLS: 20 MB in one write arrive, split as by a socket") {
  Pair pair;
  pair.talk();
  const std::string large = pattern(size_t{20} << 20U);
  REQUIRE(pair.client.session.write(large, pair.client.out));
  CHECK(pair.client.out.size() > large.size());
  CHECK(pair.client.out.size() < large.size() + large.size() / 500);
  pair.talk(65536);
  CHECK(pair.server.in.view() == large);
}

TEST_CASE("TLS: the requirements for the client's certificate") {
  for (const TlsVerify verify : {TlsVerify::kNone, TlsVerify::kOptional, TlsVerify::kRequired}) {
    const bool verifies = verify != TlsVerify::kNone;
    Pair with(server_settings(verify), client_settings("client"));
    with.talk();
    CHECK(with.server.session.state() == State::kOpen);
    Pair without(server_settings(verify));
    without.talk();
    CHECK(without.server.session.is_open() == (verify != TlsVerify::kRequired));
    Pair strange(server_settings(verify), client_settings("stranger"));
    strange.talk();
    CHECK(strange.server.session.is_open() == !verifies);
  }
}

TEST_CASE("TLS: a rejected client gets the reason, and so does the server") {
  Pair pair(server_settings(TlsVerify::kRequired));
  pair.talk();
  CHECK(pair.server.session.error() == "peer did not return a certificate");
  CHECK(pair.client.session.state() == State::kFailed);
  CHECK(pair.client.session.error().find("certificate required") != std::string::npos);
  Pair strange(server_settings(TlsVerify::kRequired), client_settings("stranger"));
  strange.talk();
  CHECK(strange.server.session.error().starts_with("certificate verify failed: unable to get "));
}

TEST_CASE("TLS: a client requires the certificate of the host in its address") {
  for (const char* host : {"localhost", "127.0.0.1", ""}) {
    Pair pair(server_settings(), client_settings(), host);
    pair.talk();
    CHECK(pair.client.session.is_open());
  }
  for (const char* host : {"elsewhere", "127.0.0.2", "::1", "ocalhost"}) {
    Pair pair(server_settings(), client_settings(), host);
    pair.talk();
    CHECK(pair.client.session.state() == State::kFailed);
    CHECK(pair.client.session.error().find("mismatch") != std::string::npos);
    TlsSettings careless = client_settings();
    careless.verify = TlsVerify::kNone;
    Pair unverified(server_settings(), careless, host);
    unverified.talk();
    CHECK(unverified.client.session.is_open());
  }
  Pair impossible(server_settings(), client_settings(), std::string("local\0host", 10));
  CHECK(impossible.client.session.state() == State::kFailed);
  CHECK(impossible.client.out.empty());
}

TEST_CASE("TLS: a client does not trust a server of another authority") {
  Pair pair(settings(TlsRole::kServer, "stranger", TlsVerify::kNone));
  pair.talk();
  CHECK(pair.client.session.error().starts_with("certificate verify failed: "));
  CHECK(pair.server.session.error().find("unknown ca") != std::string::npos);
}

TEST_CASE("TLS: close_notify ends one direction, a truncation is no end") {
  Pair pair;
  pair.talk();
  pair.client.session.write("last", pair.client.out);
  pair.client.session.close(pair.client.out);
  pair.client.session.close(pair.client.out);  // the second call has no effect
  pair.talk();
  CHECK(pair.server.in.view() == "last");
  CHECK(pair.server.session.state() == State::kEnded);
  REQUIRE(pair.server.session.write("answer", pair.server.out));
  pair.server.session.close(pair.server.out);
  pair.talk();
  CHECK(pair.client.in.view() == "answer");
  CHECK(pair.client.session.state() == State::kEnded);
  Pair cut;
  cut.talk();
  cut.client.session.write("half of it", cut.client.out);
  cut.client.out.truncate(cut.client.out.size() - 1);
  cut.talk();
  CHECK(cut.server.in.empty());
  CHECK(cut.server.session.state() == State::kOpen);
}

TEST_CASE("TLS: a handshake that is cut anywhere waits, and can be dropped there") {
  Pair pair;
  const std::string hello(pair.client.out.view());
  for (size_t cut = 0; cut < hello.size(); ++cut) {
    Side server(server_settings());
    CHECK(server.session.feed(std::string_view(hello).substr(0, cut), server.in, server.out));
    CHECK(server.session.state() == State::kHandshake);
    server.session.close(server.out);
    CHECK(server.out.empty());
  }
}

TEST_CASE("TLS: bytes that are no TLS fail with a reason") {
  for (const char* text : {"*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\n\r\n", "PING\r\n"}) {
    Side server(server_settings());
    CHECK(!server.session.feed(text, server.in, server.out));
    CHECK(server.session.error().starts_with("the peer does not speak TLS ("));
    CHECK(!server.session.feed("more", server.in, server.out));
    CHECK(!server.session.write("reply", server.out));
  }
  Side client(client_settings());
  client.session.start(client.out);
  CHECK(!client.session.feed("-ERR Protocol error\r\n", client.in, client.out));
  CHECK(client.session.error().starts_with("the peer does not speak TLS ("));
}

TEST_CASE("TLS: one flipped bit fails, and earlier bytes remain") {
  Pair pair;
  pair.talk();
  pair.client.session.write("good", pair.client.out);
  const size_t good = pair.client.out.size();
  pair.client.session.write("evil", pair.client.out);
  std::string bytes(pair.client.out.view());
  bytes[good + 10] = static_cast<char>(bytes[good + 10] ^ 1);
  CHECK(!pair.server.session.feed(bytes, pair.server.in, pair.server.out));
  CHECK(pair.server.in.view() == "good");
  CHECK(pair.server.session.error().find("bad record mac") != std::string::npos);
}

TEST_CASE("TLS: versions below 1.2 are rejected") {
  TlsSettings s = client_settings();
  for (const char* version : {"TLSv1.1", "TLSv1", "SSLv3", "1.2"}) {
    s.protocols = version;
    CHECK(why(s).find("is not a supported TLS version") != std::string::npos);
  }
  TlsSettings two = client_settings();
  two.protocols = "tlsv1.2";
  TlsSettings three = server_settings();
  three.protocols = "TLSv1.3";
  Pair pair(three, two);
  pair.talk();
  CHECK(pair.server.session.error() == "unsupported protocol");
}

TEST_CASE("TLS: a client that renegotiates is rejected") {
  TlsSettings s = server_settings();
  s.protocols = "TLSv1.2";
  Side server(s);
  SSL_CTX* native = SSL_CTX_new(TLS_client_method());  // OpenSSL itself, which would renegotiate
  SSL* client = SSL_new(native);
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(client, in, out);
  SSL_set_connect_state(client);
  int reason = 0;
  const auto talk = [&] {
    for (int round = 0; round < 8 && reason == 0; ++round) {
      SSL_do_handshake(client);
      reason = ERR_GET_REASON(ERR_peek_error());
      char* bytes = nullptr;
      const long n = BIO_get_mem_data(out, &bytes);
      server.session.feed({bytes, static_cast<size_t>(n)}, server.in, server.out);
      BIO_reset(out);
      BIO_write(in, server.out.data(), static_cast<int>(server.out.size()));
      server.out.clear();
    }
  };
  talk();
  REQUIRE(SSL_is_init_finished(client) == 1);
  REQUIRE(server.session.is_open());
  REQUIRE(SSL_renegotiate(client) == 1);
  talk();
  CHECK(SSL_is_init_finished(client) == 0);
  // The server rejects it by a warning alert, and OpenSSL's client fails.
  CHECK(reason == SSL_R_NO_RENEGOTIATION);
  CHECK(server.session.error().find("alert") != std::string::npos);
  CHECK(server.in.empty());
  SSL_free(client);
  SSL_CTX_free(native);
}

TEST_CASE("TLS: each wrong file is named, with its correction") {
  TlsSettings s = server_settings();
  s.cert_file = files().path("nowhere.pem");
  CHECK(why(s) == "cannot read the certificate file " + s.cert_file +
                      ": No such file or directory; check its path and permissions");
  s.cert_file = files().path(".");
  CHECK(why(s).find("Is a directory") != std::string::npos);
  s.cert_file = files().key("server");
  CHECK(why(s).starts_with("the certificate file " + s.cert_file + " cannot be used: "));
  s.cert_file = files().pem("old");
  s.key_file = files().key("old");
  CHECK(why(s).starts_with("the certificate in " + s.cert_file + " expired at "));
  s = server_settings();
  s.key_file = files().key("client");
  CHECK(why(s).starts_with("the key in " + s.key_file + " does not match the certificate in "));
  files().run("genrsa -out " + files().key("rsa") + " 2048");
  s.key_file = files().key("rsa");
  CHECK(why(s).starts_with("the key in " + s.key_file + " does not match the certificate in "));
  s.key_file = files().pem("server");
  CHECK(why(s).starts_with("the key file " + s.key_file + " cannot be used: "));
  s.key_file = "";
  CHECK(why(s).ends_with(" is set without a key file; set both"));
  s = server_settings(TlsVerify::kRequired);
  s.ca_file = files().key("server");
  CHECK(why(s).starts_with("the CA file " + s.ca_file + " cannot be used: "));
  s.ca_file = "";
  CHECK(why(s).starts_with("no CA file or CA folder is set"));
  s.ca_dir = files().path("nowhere");
  CHECK(why(s).starts_with("cannot read the CA folder " + s.ca_dir + ": No such file"));
  s = server_settings();
  s.ciphers = "NONE-SUCH";
  CHECK(why(s).starts_with("the ciphers 'NONE-SUCH' cannot be used: no cipher match"));
  s = server_settings();
  s.ciphersuites = "NONE-SUCH";
  CHECK(why(s).starts_with("the ciphersuites 'NONE-SUCH' cannot be used: "));
}

TEST_CASE("TLS: an encrypted key needs its passphrase") {
  TlsSettings s = server_settings();
  s.key_file = files().key("locked");
  files().run("pkey -aes128 -passout pass:geheim -in " + files().key("server") + " -out " + s.key_file);
  CHECK(why(s) ==
        "the key in " + s.key_file + " is encrypted; give its passphrase, or use a key without one");
  s.key_pass = "wrong";
  CHECK(why(s).starts_with("the passphrase for the key in " + s.key_file + " is wrong: "));
  s.key_pass = "geheim";
  CHECK(why(s).empty());
}

TEST_CASE("TLS: authorities may be in a folder") {
  const std::string folder = files().path("authorities");
  std::filesystem::create_directory(folder);
  TlsSettings s = server_settings(TlsVerify::kRequired);
  s.ca_file = "";
  s.ca_dir = folder;
  CHECK(why(s).find("is empty") != std::string::npos);
  std::filesystem::copy_file(files().pem("ca"), folder + "/ca.pem");
  files().run("rehash " + folder);
  Pair pair(s, client_settings("client"));
  pair.talk();
  CHECK(pair.server.session.is_open());
}

}  // namespace holdfast
