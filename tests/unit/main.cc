// The main function of every doctest program: the unit tests' and the integration tests'.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
