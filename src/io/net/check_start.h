// Checks what a start checks beside the values of the options: files, folders, users, TLS and addresses.
#pragma once

#include <string>
#include <vector>

#include "io/config/options.h"

namespace holdfast {

// Makes room for the clients that the options allow. Returns how many fit, as make_room_for_clients().
Result<uint32_t> make_room(const Options& options);

// Returns one line for each reason why a server with these options cannot start. Writes no file. Does not
// report a port or a data folder in use: the server that uses it may be the one to restart.
std::vector<std::string> check_start(const Options& options);

}  // namespace holdfast
