// Unpredictable random numbers: any client that knows the name of an owner or a lease can end it.
#pragma once

#include <cstdint>
#include <span>

namespace holdfast::client {

// Fills `bytes` with random bytes of the kernel. Throws std::runtime_error if the kernel provides none.
void fill_random(std::span<uint8_t> bytes);

// Returns a random number below n. The kernel is asked for 32 numbers at a time. No number is used twice,
// also after fork(), because the child process does not have this thread.
uint64_t random_below(uint64_t n);

}  // namespace holdfast::client
