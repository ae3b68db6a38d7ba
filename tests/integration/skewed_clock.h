// Wrong clocks for processes under test, and the right one to judge them by.
#pragma once

#include <cstdint>

namespace holdfast::integration {

// Of a clock that all processes of the machine share and that no HOLDFAST_TEST_CLOCK changes.
int64_t true_now_ns();

}  // namespace holdfast::integration
