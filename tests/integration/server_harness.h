// The real server as a child process, on a free port. It is ready when the constructor returns. The
// destructor stops it cleanly. HOLDFAST_SERVER names the binary.
#pragma once

#include <string>
#include <vector>

#include "process.h"

namespace holdfast::integration {

// build/asan/holdfast-server unless HOLDFAST_SERVER says otherwise.
std::string server_program();
// A port on which no process listens, nor on the bus port of Redis Cluster that belongs to it. Other tests
// do not get it while this process runs, so a server can restart on it.
int free_port();

class Server {
 public:
  // `args` follow "--port auto". Throws std::runtime_error with the server's output if the server is not
  // ready within kPatience.
  explicit Server(std::vector<std::string> args = {}) : Server(Launch{std::move(args)}) {}
  explicit Server(Launch launch);
  static Server on_port(int port) { return Server({"--port", std::to_string(port)}); }
  // Stops the server. The test fails if its status is not 0.
  ~Server();

  int port() const { return port_; }  // 0: the server has no TCP port
  pid_t pid() const { return process_.pid(); }
  const Process& process() const { return process_; }
  const Capture& log() const { return process_.out(); }

  // Sends the signal, waits for the end, and returns the exit status as in a shell.
  int stop(int signal_number);

 private:
  Process process_;
  int port_ = 0;
  bool stopped_ = false;
};

// The result of a server that must end by itself.
struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};
Outcome run_server(const Launch& launch);

}  // namespace holdfast::integration
