// The login of servers: its places in an address, the servers to which it belongs, and that no output
// shows it.
#include "client/base/login.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/base/address.h"

namespace holdfast::client {
namespace {

// Returns "user/password" of each server.
std::string logins(const ClientConfig& place) {
  std::string all;
  for (const Address& address : place.servers) {
    all += (all.empty() ? "" : " ") + address.user;
    all += "/" + address.password;
  }
  return all;
}

std::string logins(const std::string& text) { return logins(parse_address(text)); }

// Returns the error of parse_address() for a text that it rejects.
std::string refusal(const std::string& text) {
  try {
    parse_address(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "taken";
}

// Returns the word as the command overwrites it in its own arguments.
std::string hidden(std::string word, bool is_address = false) {
  hide_logins(word, is_address);
  return word;
}

// Sets both variables while it lives.
struct Environment {
  Environment(const char* user, const char* password) {
    if (user != nullptr) setenv(kUserVariable, user, 1);
    if (password != nullptr) setenv(kPasswordVariable, password, 1);
  }
  ~Environment() {
    unsetenv(kUserVariable);
    unsetenv(kPasswordVariable);
  }
};

}  // namespace

TEST_CASE("login: every kind of address accepts user and password, or the password alone") {
  for (const char* scheme : {"holdfast://", "holdfasts://", "redis://", "rediss://", "quorum://"}) {
    CAPTURE(scheme);
    CHECK(logins(std::string(scheme) + "me:pw@h:1") == "me/pw");
    CHECK(logins(std::string(scheme) + ":pw@[::1]:1") == "/pw");
    CHECK(logins(std::string(scheme) + "h?user=me&password=pw") == "me/pw");
    CHECK(logins(std::string(scheme) + "h?password=p%26w") == "/p&w");
  }
  CHECK(parse_address("holdfast://me:pw@h:1").servers.at(0).text() == "h:1");
  CHECK(parse_address("holdfast://me:pw@h").servers.at(0).port == kDefaultPort);
}

TEST_CASE("login: characters with a meaning in an address are percent-encoded in a password") {
  CHECK(logins("holdfast://m%3ae:a%40%3a%25%2C%2f%3F%26b@h") == "m:e/a@:%,/?&b");
  CHECK(logins("quorum://:a%2cb@h1,h2") == "/a,b /a,b");
}

TEST_CASE("login: behind quorum:// it applies to all servers without one of their own") {
  CHECK(logins("quorum://me:pw@a,b,c") == "me/pw me/pw me/pw");
  CHECK(logins("quorum://me:pw@a,:other@b,c") == "me/pw /other me/pw");
  CHECK(logins("quorum://me:pw@a,redis://b,redis://:other@c") == "me/pw me/pw /other");
  CHECK(logins("quorum://a,b,c?user=me&password=pw") == "me/pw me/pw me/pw");
  CHECK(logins("quorum://a,you:x@b?user=me&password=pw") == "me/pw you/x");
}

TEST_CASE("login: behind the scheme of a server, or before a later one, it applies to that server") {
  CHECK(logins("quorum://holdfast://me:pw@a,b") == "me/pw /");
  CHECK(logins("quorum://holdfasts://me:pw@a,b") == "me/pw /");
  CHECK(logins("quorum://a,me:pw@b,c") == "/ me/pw /");
}

TEST_CASE("login: an invalid login is rejected, and the servers of a valid one are unambiguous") {
  CHECK(refusal("holdfast://me@h").find("user:password@") != std::string::npos);
  CHECK(refusal("holdfast://:@h").find("user:password@") != std::string::npos);
  CHECK(refusal("holdfast://h?user=me").find("needs password=") != std::string::npos);
  CHECK(refusal("holdfast://h?password=").find("no value") != std::string::npos);
  CHECK(refusal("holdfast://:pw@h?password=x").find("before the host") != std::string::npos);
  CHECK(refusal("holdfast://:p%4@h").find("two hexadecimal digits") != std::string::npos);
}

TEST_CASE("login: no error shows a password or a part of it, also where the address is wrong") {
  for (const char* text : {"holdfast://:secret@",
                           "holdfast://:secret@h:x",
                           "holdfast://me:secret@h,b",
                           "holdfast://:secret",
                           "holdfast://me:secret",
                           "holdfast://me:se,secret@h",
                           "holdfast://me:se?secret@h",
                           "holdfast://me:se/secret@h:x",
                           "holdfast://me:se//secret@h:x",
                           "holdfast://me:se@secret@h:x",
                           "quorum://a,me:secret@b,a",
                           "quorum://me:se,secret@b",
                           "quorum://a,ftp://me:secret@b",
                           "holdfast://h?password=secret&frob=1",
                           "holdfast://h?password=a&secret",
                           "holdfast://h?passwd=secret",
                           "holdfast://h?pasword=secret",
                           "holdfast://h?p=secret",
                           "holdfast://h?frob=secret",
                           "holdfast://h?pass=secret",
                           "holdfast://h?user=secret",
                           "holdfast://h:1?password=secret&timeout=x",
                           "redis://me:secret@h/2",
                           "ftp://me:secret@h",
                           "me:secret@h/x",
                           "me:secret@h:x",
                           "me:se,secret@h",
                           "me:secret@h1, h2",
                           "me:secret@7379",
                           ":secret",
                           "me:secret",
                           "secret@h",
                           "holdfast://:secret@h?password=secret",
                           "holdfast://me:secret@h?cacert=x",
                           "quorum://:secret@h,h",
                           "holdfasts://:secret@h?insecure&cacert=f"}) {
    CAPTURE(text);
    const std::string why = refusal(text);
    CHECK(why != "taken");
    const bool user_alone = std::string(text) == "holdfast://h?user=secret";
    CHECK_MESSAGE((user_alone || why.find("secret") == std::string::npos), why);
  }
}

TEST_CASE("login: an address without a sign of a password is shown as it is") {
  for (const char* text : {"holdfast://h:7379?timeout=5", "quorum://a,redis://b,[::1]:7,[fe80::1%eth0]",
                           "redis-cluster://h1,h2:1?acks=1", "embedded:jobs", "localhost:7379", "ftp://h"})
    CHECK(shown_address(text) == text);
  CHECK(shown_address("quorum://me:pw@a,b") == "quorum://...");
  CHECK(shown_address("me:pw@a") == "...");
}

TEST_CASE("login: the environment's login is for servers without one in the address") {
  {
    const Environment both("me", "p@w");
    CHECK(logins(client_config_of("holdfast://h")) == "me/p@w");
    CHECK(logins(client_config_of("quorum://a,:own@b,redis://c")) == "me/p@w /own me/p@w");
    CHECK(logins(client_config_of("holdfast://you:own@h")) == "you/own");
    CHECK(logins(client_config_of("holdfast://h?password=own")) == "/own");
    CHECK(logins(client_config_of("embedded:")) == "/");
    CHECK(client_config_of("redis-cluster://h1,h2").servers.at(0).others.at(0).password == "p@w");
    CHECK(logins(parse_address("holdfast://h")) == "/");  // parse_address() ignores the environment
  }
  {
    const Environment password(nullptr, "pw");
    CHECK(logins(client_config_of("holdfast://h")) == "/pw");
  }
  {
    const Environment empty("", "");
    CHECK(logins(client_config_of("holdfast://h")) == "/");
  }
  const Environment user("me", nullptr);
  CHECK_THROWS_AS(client_config_of("holdfast://h"), std::invalid_argument);
  CHECK(logins(client_config_of("holdfast://:own@h")) == "/own");
}

TEST_CASE("login: it is overwritten in the arguments of a process, whatever characters it has") {
  CHECK(hidden("holdfast://me:pw@h:7") == "holdfast://*****@h:7");
  CHECK(hidden("--servers=holdfast://:pw@h?timeout=5") == "--servers=holdfast://***@h?timeout=5");
  CHECK(hidden("holdfast://h?user=me&password=pw&timeout=5") ==
        "holdfast://h?user=me&password=**&timeout=5");
  CHECK(hidden("holdfast://a:b//c?@d@h") == "holdfast://*********@h");
  for (const char* word : {"holdfast://h:7379", "me@example", "run", "", "--", "password=x"})
    CHECK(hidden(word) == word);
}

TEST_CASE("login: an address without a scheme has it at the same places, and it is overwritten as well") {
  CHECK(logins("me:pw@h:1") == "me/pw");
  CHECK(logins(":pw@[::1]:1") == "/pw");
  CHECK(logins("h?user=me&password=pw") == "me/pw");
  CHECK(logins("me:pw@a,b,c") == "me/pw me/pw me/pw");
  CHECK(logins("a,me:pw@b,redis://c") == "/ me/pw /");
  CHECK(hidden("--servers=me:pw@h:7") == "--servers=*****@h:7");
  CHECK(hidden("--servers=h?password=pw&timeout=5") == "--servers=h?password=**&timeout=5");
  CHECK(hidden("me:pw@h:7", true) == "*****@h:7");
  CHECK(hidden("me:pw@h,redis://b", true) == "*****@h,redis://b");
  CHECK(hidden("h?user=me&password=pw", true) == "h?user=me&password=**");
  CHECK(hidden("holdfast://me:pw@h:7", true) == "holdfast://*****@h:7");
  CHECK(hidden("h:7379", true) == "h:7379");
}

TEST_CASE("login: a rejected login says how to correct it, other errors keep the server's text") {
  for (const char* error : {"NOAUTH Authentication required.", "WRONGPASS invalid", "NOPERM this user",
                            "ERR AUTH <password> called without any password configured"}) {
    CHECK(is_login_refusal(error));
    CHECK(with_advice(error).starts_with(error));
    CHECK(with_advice(error).size() > std::string(error).size());
  }
  CHECK_FALSE(is_login_refusal("RECOVERING locks"));
  CHECK(with_advice("ERR unknown command") == "ERR unknown command");
  CHECK(with_advice("connection refused") == "connection refused");
  for (const char* why : {"protocol error, got \"H\" as reply type byte", "no answer in 1000 ms",
                          "no connection in 1000 ms", "unknown node or service", "temporary failure"}) {
    CHECK_FALSE(is_login_refusal(why));
    CHECK(with_advice(why).starts_with(std::string(why) + " ("));
  }
}

}  // namespace holdfast::client
