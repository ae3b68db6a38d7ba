// The real server as a child process: on a free port, ready when the constructor returns, stopped cleanly
// by the destructor. HOLDFAST_SERVER names the binary.
#pragma once

#include <string>
#include <vector>

#include "process.h"

namespace holdfast::integration {

// build/asan/holdfast-server unless HOLDFAST_SERVER says otherwise.
std::string server_program();

class Server {
 public:
  // `args` come behind "--port auto". Throws std::runtime_error, with what the server said, if it is not
  // ready within kPatience.
  explicit Server(std::vector<std::string> args = {}) : Server(Launch{std::move(args)}) {}
  explicit Server(Launch launch);
  // Stops it; a test in which the server did not end well fails.
  ~Server();

  int port() const { return port_; }  // 0: no TCP
  pid_t pid() const { return process_.pid(); }
  const Process& process() const { return process_; }
  const Capture& log() const { return process_.out(); }

  // Sends the signal, awaits the end, and returns the exit status as a shell shows it.
  int stop(int signal_number);

 private:
  Process process_;
  int port_ = 0;
  bool stopped_ = false;
};

// A server that is expected to end by itself.
struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};
Outcome run_server(const Launch& launch);

}  // namespace holdfast::integration
