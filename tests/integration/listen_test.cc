// The server's addresses, its errors if it cannot listen, and its end.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "client.h"
#include "files/temp_folder.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

bool lacks_ipv6() {
  const bool lacks = !std::filesystem::exists("/proc/sys/net/ipv6/conf/lo");
  if (lacks) MESSAGE("this machine has no IPv6");
  return lacks;
}

// Checks that the start fails: status 1, no ready line on stdout, one line on stderr with these words.
void check_refused(const Launch& launch, std::initializer_list<const char*> words) {
  const Outcome outcome = run_server(launch);
  INFO("stderr: ", outcome.err);
  CHECK(outcome.status == 1);
  CHECK(outcome.err.starts_with("holdfast-server: "));
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(outcome.err.ends_with('\n'));
  CHECK(outcome.out.find("ready") == std::string::npos);
  for (const char* word : words) CHECK_MESSAGE(outcome.err.find(word) != std::string::npos, word);
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Makes the socket file of a killed server, on which no process listens.
void leave_stale_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

TEST_CASE("the server is reached by IPv4, IPv6 and a Unix socket, and all see the same locks") {
  const TempFolder folder;
  const Server server({"--unixsocket", folder.file("s")});
  Redis v4("127.0.0.1", server.port());
  Redis local(folder.file("s"));
  CHECK(token_of(v4.ask({"LOCK", "k", "alice", "0"}), "alice") > 0);
  CHECK(local.ask({"LOCK", "k", "bob", "0"}) == "nil");
  CHECK(local.ask({"GET", "k"}) == "\"alice\"");
  if (lacks_ipv6()) return;
  Redis v6("::1", server.port());
  CHECK(v6.ask({"UNLOCK", "k", "alice"}) == "1");
}

TEST_CASE("CLIENT INFO shows the address of each kind of connection") {
  const TempFolder folder;
  const Server server({"--unixsocket", folder.file("s")});
  Client v4(server);
  CHECK(v4.ask("CLIENT INFO").find(" addr=127.0.0.1:") != std::string::npos);
  Client local(connect_unix(folder.file("s")));
  CHECK(local.ask("CLIENT INFO").find(" addr=" + folder.file("s") + ":0") != std::string::npos);
  if (lacks_ipv6()) return;
  Client v6(connect_tcp(server.port(), "::1"));
  CHECK(v6.ask("CLIENT INFO").find(" addr=[::1]:") != std::string::npos);
}

TEST_CASE("--bind selects the addresses, and other addresses refuse connections") {
  const Server server({"--bind", "127.0.0.2"});
  Client there(connect_tcp(server.port(), "127.0.0.2"));
  CHECK(there.ask("PING") == "+PONG");
  CHECK_THROWS(connect_tcp(server.port(), "127.0.0.1"));
}

TEST_CASE("a Unix socket works without TCP, with the permissions of --unixsocketperm") {
  const TempFolder folder;
  const Server server({"--port", "0", "--unixsocket", folder.file("s"), "--unixsocketperm", "700"});
  CHECK(server.port() == 0);
  Client client(connect_unix(folder.file("s")));
  CHECK(client.ask("PING") == "+PONG");
  struct stat found {};
  REQUIRE(stat(folder.file("s").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777U) == 0700U);
}

TEST_CASE("a port in use is one line on stderr, and the server on that port continues") {
  const Server server;
  const std::string port = std::to_string(server.port());
  check_refused({{"--port", port}}, {port.c_str(), "Address already in use"});
  Client client(server);
  CHECK(client.ask("PING") == "+PONG");
}

TEST_CASE("no permission for a low port is one line on stderr") {
  int first_open_port = 1024;
  std::ifstream("/proc/sys/net/ipv4/ip_unprivileged_port_start") >> first_open_port;
  if (first_open_port <= 1) {
    MESSAGE("this machine allows low ports to all users");
    return;
  }
  Launch launch{{"--port", "1"}};
  launch.weak = true;
  check_refused(launch, {"port 1", "Permission denied"});
}

TEST_CASE("no permission for the Unix socket's folder is one line on stderr") {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("d"));
  std::filesystem::permissions(folder.file("d"), std::filesystem::perms{0500});
  Launch launch{{"--port", "auto", "--unixsocket", folder.file("d/s")}};
  launch.weak = true;
  check_refused(launch, {"d/s", "Permission denied"});
}

TEST_CASE("an address that this machine does not have is one line on stderr, unless it is optional") {
  check_refused({{"--port", "auto", "--bind", "203.0.113.1"}}, {"203.0.113.1", "--bind"});
  const Server server({"--bind", "127.0.0.1 -203.0.113.1"});
  Client client(server);
  CHECK(client.ask("PING") == "+PONG");
}

TEST_CASE("a path that is too long for a Unix socket is one line on stderr") {
  const TempFolder folder;
  const std::string stem = folder.file("");
  const std::string longest = stem + std::string(107 - stem.size(), 'x');
  const Server server({"--unixsocket", longest});
  check_refused({{"--port", "auto", "--unixsocket", longest + "x"}}, {"too long"});
}

TEST_CASE("SIGTERM and SIGINT end the server with status 0, remove its socket and close all connections") {
  for (const int number : {SIGTERM, SIGINT}) {
    CAPTURE(number);
    const TempFolder folder;
    Server server({"--unixsocket", folder.file("s")});
    Client holder(server);
    Client waiter(connect_unix(folder.file("s")));
    REQUIRE(token_of(holder.ask("LOCK k alice 0 SESSION"), "alice") > 0);
    waiter.send("LOCK k bob 0 WAIT 0\r\n");
    until_blocked(holder, 1);
    CHECK(server.stop(number) == 0);
    CHECK_FALSE(std::filesystem::exists(folder.file("s")));
    CHECK(waiter.reply() == "(closed)");  // and it got no grant from a server that ends
    CHECK(holder.reply() == "(closed)");
  }
}

TEST_CASE("a reply that was sent before SIGTERM arrives") {
  Server server;
  Client client(server);
  client.send("PING\r\n");
  CHECK(client.reply() == "+PONG");
  CHECK(server.stop(SIGTERM) == 0);
  CHECK(client.read_to_end() == "");
}

TEST_CASE("SIGTERM during large pipelines ends the server with status 0") {
  Server server;
  std::string input;
  for (int i = 0; i < 100000; ++i) input += "PING\r\n";
  Client unread(server);
  Client busy(server);
  unread.send(input);
  busy.send(input);
  CHECK(server.stop(SIGTERM) == 0);
}

TEST_CASE("--logfile is opened again on SIGHUP, after it was renamed") {
  const TempFolder folder;
  Process server(server_program(),
                 {{"--port", "0", "--unixsocket", folder.file("s"), "--logfile", folder.file("log")}});
  until("the server is ready",
        [&] { return read_file(folder.file("log")).find("ready") != std::string::npos; });
  std::filesystem::rename(folder.file("log"), folder.file("old"));
  server.signal(SIGHUP);
  until("there is a new log file", [&] { return std::filesystem::exists(folder.file("log")); });
  server.signal(SIGTERM);
  CHECK(server.wait() == 0);
  CHECK(read_file(folder.file("log")).find("stopped") != std::string::npos);
  CHECK(read_file(folder.file("old")).find("stopped") == std::string::npos);
}

TEST_CASE("--timeout: an idle client is closed, a waiter for a lock is not") {
  const Server server({"--timeout", "3"});
  Client waiter(server);
  Client idle(server);
  REQUIRE(token_of(waiter.ask("LOCK k alice 0"), "alice") > 0);
  waiter.send("LOCK k bob 0 WAIT 0\r\n");
  CHECK(idle.reply() == "(closed)");
  Client control(server);
  CHECK(control.ask("UNLOCK k alice") == "1");
  CHECK(token_of(waiter.reply(), "bob") > 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // the next check
  CHECK(waiter.ask("PING") == "+PONG");  // 3 s count from its reply, not from its request
}

TEST_CASE("--timeout: a client that waits with ASYNC, has subscribed or monitors is not idle") {
  const Server server({"--timeout", "1"});
  Client waiter(server);
  Client subscriber(server);
  Client monitor(server);
  Client idle(server);
  REQUIRE(token_of(waiter.ask("LOCK k alice 0"), "alice") > 0);
  REQUIRE(waiter.ask("HELLO 3").starts_with("{"));
  REQUIRE(waiter.ask("LOCK k bob 0 WAIT 0 ASYNC") == "+QUEUED");
  REQUIRE(subscriber.ask("PSUBSCRIBE news*").find("psubscribe") != std::string::npos);
  REQUIRE(monitor.ask("MONITOR") == "+OK");
  CHECK(idle.reply() == "(closed)");
  Client control(server);
  CHECK(control.ask("PUBLISH news.1 hello") == "1");
  CHECK(subscriber.reply().find("hello") != std::string::npos);
  CHECK(monitor.reply().find("PUBLISH") != std::string::npos);
  CHECK(control.ask("UNLOCK k alice") == "1");
  CHECK(waiter.reply().find("bob") != std::string::npos);
}

TEST_CASE("--timeout: a client whose reply waits for the disk is not idle") {
  const TempFolder folder;
  const std::string delay = folder.file("delay");
  const std::string library = std::filesystem::path(server_program()).replace_filename("slow-fsync.so");
  Launch launch{{"--timeout", "1", "--dir", folder.file("data"), "--appendfsync", "always"}};
  launch.env = preloaded(library);
  launch.env.push_back("HOLDFAST_FSYNC_DELAY=" + delay);
  const Server server(launch);
  Client client(server);
  std::ofstream(delay) << 2500;  // ms: the server looks for idle clients once a second
  CHECK(client.ask("SET k v") == "+OK");
  std::filesystem::remove(delay);
}

TEST_CASE("a stale socket is replaced") {
  const TempFolder folder;
  leave_stale_socket(folder.file("s"));
  const Server server({"--unixsocket", folder.file("s")});
  Client client(connect_unix(folder.file("s")));
  CHECK(client.ask("PING") == "+PONG");
}

TEST_CASE("a socket on which another server listens is not replaced") {
  const TempFolder folder;
  const Server server({"--unixsocket", folder.file("s")});
  check_refused({{"--port", "auto", "--unixsocket", folder.file("s")}}, {"another server", "--unixsocket"});
  Client client(connect_unix(folder.file("s")));
  CHECK(client.ask("PING") == "+PONG");
}

TEST_CASE("a file that is not a socket is never removed") {
  const TempFolder folder;
  write_file(folder.file("s"), "precious");
  check_refused({{"--port", "auto", "--unixsocket", folder.file("s")}}, {"not a socket"});
  CHECK(read_file(folder.file("s")) == "precious");
}

TEST_CASE("at its end, a server does not remove another server's socket file of the same name") {
  const TempFolder folder;
  Server first({"--unixsocket", folder.file("s")});
  std::filesystem::remove(folder.file("s"));
  const Server second({"--unixsocket", folder.file("s")});
  CHECK(first.stop(SIGTERM) == 0);
  Client client(connect_unix(folder.file("s")));
  CHECK(client.ask("PING") == "+PONG");
}

TEST_CASE("a port is free again as soon as its server has ended") {
  const int port = free_port();
  Server first = Server::on_port(port);
  Client client(first);
  REQUIRE(client.ask("PING") == "+PONG");
  REQUIRE(first.stop(SIGTERM) == 0);
  const Server second = Server::on_port(port);
  CHECK(second.port() == port);
}

TEST_CASE("an unknown option, a bad value and a stray word are one line on stderr each") {
  check_refused({{"--no-such-option", "1"}}, {"no-such-option", "--help"});
  check_refused({{"--port"}}, {"port"});
  check_refused({{"--port", "65536"}}, {"--port", "65535", "65536"});
  check_refused({{"--port", "-1"}}, {"port"});
  check_refused({{"--port", "1e3"}}, {"--port"});
  check_refused({{"--maxclients", "0"}}, {"--maxclients", "from 1 to"});
  check_refused({{"--maxmemory", "1tb"}}, {"--maxmemory", "1tb"});
  check_refused({{"--loglevel", "loud"}}, {"--loglevel", "notice"});
  check_refused({{"stray"}}, {"stray"});
  check_refused({{"--port", "0"}}, {"--unixsocket"});
  check_refused({{"--port", "auto", "--logfile", "/nowhere/log"}}, {"/nowhere/log", "--logfile"});
}

TEST_CASE("a config file is read, with comments, and the command line wins") {
  const TempFolder folder;
  write_file(folder.file("c"),
             "# a comment\nmaxclients = 77\n\n"
             "  session-grace=1500 # to the line's end\nproto-max-bulk-len = 2mb\n");
  const Server server({"--config", folder.file("c"), "--session-grace", "2500"});
  Redis client("127.0.0.1", server.port());
  CHECK(client.ask({"CONFIG", "GET", "maxclients"}) == R"(["maxclients", "77"])");
  CHECK(client.ask({"CONFIG", "GET", "session-grace"}) == R"(["session-grace", "2500"])");
  CHECK(client.ask({"CONFIG", "GET", "proto-max-bulk-len"}) == R"(["proto-max-bulk-len", "2097152"])");
}

TEST_CASE("a config file that is unreadable or wrong is one line on stderr") {
  const TempFolder folder;
  check_refused({{"--config", folder.file("none")}}, {"none", "No such file"});
  check_refused({{"--config", folder.file("")}}, {"cannot read", "Is a directory"});
  write_file(folder.file("c"), "no-such-option = 1\n");
  check_refused({{"--config", folder.file("c")}}, {"no-such-option"});
  write_file(folder.file("c"), "port = many\n");
  check_refused({{"--config", folder.file("c")}}, {"port", "many"});
  std::filesystem::permissions(folder.file("c"), std::filesystem::perms{});
  Launch launch{{"--config", folder.file("c")}};
  launch.weak = true;
  check_refused(launch, {"Permission denied"});
}

TEST_CASE("--help explains every option by group, --version prints the version") {
  const Outcome help = run_server({{"--help"}});
  CHECK(help.status == 0);
  CHECK(help.err.empty());
  for (const char* part : {"Usage: holdfast-server", "Network:", "Limits:", "Locks:", "--port",
                           "--unixsocket", "--config", "--max-waiters-per-key", "7379"}) {
    CHECK_MESSAGE(help.out.find(part) != std::string::npos, part);
  }
  const Outcome version = run_server({{"--version"}});
  CHECK(version.status == 0);
  CHECK(version.out.starts_with("holdfast-server "));
  for (const char* part : {"\ncompiler: ", "\nlibraries: libuv ", "OpenSSL "}) {
    CHECK_MESSAGE(version.out.find(part) != std::string::npos, part);
  }
}

}  // namespace
}  // namespace holdfast::integration
