// A program that serves: from its options to its end. What holdfast-server and holdfast proxy have in
// common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "io/config/options.h"

namespace holdfast {

class Server;

// What a program adds.
struct ProgramParts {
  std::string refusal;                            // why the options are wrong; empty: they are right
  std::string without_data;                       // ends the first log line if there is no data folder
  std::function<void(Config& config)> configure;  // before the engine is made; may be null
  std::function<void(Server& server)> add_doors;  // before the server runs; may be null
};

// Prints why the program cannot start. Returns its exit status.
int fail_to_start(const std::string& why);
int fail_to_start(const std::vector<std::string>& errors);

// Serves until a signal. Returns the exit status.
int serve(Options& options, const ProgramParts& parts);

// What a program must do first: its standard streams, its signals, its heap.
void prepare_process();

// Reads the options, and does what they ask for. Returns the exit status.
int run_program(int argc, char** argv, const std::function<ProgramParts(const Options&)>& parts);

}  // namespace holdfast
