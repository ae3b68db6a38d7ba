// Facts and resources of the process: random bytes, open files, memory and processor time.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/config.h"
#include "io/os/result.h"

namespace holdfast {

// Fills `bytes` from the system's random source. Ends the process if there is none, because guessable owner
// names would be worse than no server.
void fill_random(std::span<uint8_t> bytes);
uint64_t random_number();
// Returns `digits` random lower-case hexadecimal digits.
std::string random_hex(size_t digits);

// Returns the kernel's id of this boot. Empty if it cannot be read.
std::string read_boot_id();
// The same for the clock of read_clock(): a time namespace has its own clock, so its offset is part of the
// id.
std::string read_clock_id();

// Raises the limit of open files so that `clients` and `http_clients` fit. If the system does not allow
// that, returns how many fit and logs a warning. Fails if none fits.
Result<uint32_t> make_room_for_clients(uint32_t clients, uint32_t http_clients);

// Returns the present facts. `started` is the start of the process on read_clock()'s clock.
HostFacts read_host_facts(int64_t tcp_port, const std::string& config_file, TimeMs started);

// Returns the C library's report of its memory, as XML.
std::string read_allocator_report();

}  // namespace holdfast
