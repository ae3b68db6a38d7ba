// What the process is and may use: random bytes, open files, memory and processor time.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/config.h"
#include "io/os/result.h"

namespace holdfast {

// Fills `bytes` from the system's random source; ends the process where there is none, since owners that
// can be guessed would be worse than no server.
void fill_random(std::span<uint8_t> bytes);
uint64_t random_number();
// `digits` lower-case hexadecimal digits.
std::string random_hex(size_t digits);

// The kernel's name for the time since the machine's start; empty where it cannot be read.
std::string read_boot_id();
// The same for read_clock(): a time namespace has a clock of its own, which its offset tells apart.
std::string read_clock_id();

// Raises the limit of open files so that `clients` fit. Where the system does not allow that, returns how
// many fit and logs a warning; fails where not even one does.
Result<uint32_t> make_room_for_clients(uint32_t clients);

// The facts of this moment; `started_ms` is the process's start on read_clock()'s clock.
HostFacts read_host_facts(int64_t tcp_port, const std::string& config_file, TimeMs started);

// What the C library says of its memory, as XML.
std::string read_allocator_report();

}  // namespace holdfast
