// The Makefile defines HOLDFAST_COMMIT for this file only, so that a new commit compiles one file. Includes
// only the headers with the versions of the libraries, and calls none of them.
#include "io/os/build_info.h"

#include <absl/base/config.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <lua.h>
#include <openssl/opensslv.h>
#include <spdlog/version.h>
#include <uv/version.h>
#include <xxhash.h>

#include <boost/version.hpp>

#include "core/base/version.h"

#ifndef HOLDFAST_COMMIT
#define HOLDFAST_COMMIT ""
#endif

namespace holdfast {
namespace {

#ifdef __clang__
constexpr std::string_view kCompiler = "Clang " __clang_version__;
#else
constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif

std::string libraries() {
  return fmt::format(
      "libuv {}.{}.{}, OpenSSL {}, {}, Abseil {}, Boost {}.{}.{}, fmt {}.{}.{}, hiredis {}.{}.{}, spdlog "
      "{}.{}.{}, xxHash {}.{}.{}",
      UV_VERSION_MAJOR, UV_VERSION_MINOR, UV_VERSION_PATCH, OPENSSL_VERSION_STR, LUA_RELEASE,
      ABSL_LTS_RELEASE_VERSION, BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100,
      FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100, HIREDIS_MAJOR, HIREDIS_MINOR,
      HIREDIS_PATCH, SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH, XXH_VERSION_MAJOR,
      XXH_VERSION_MINOR, XXH_VERSION_RELEASE);
}

}  // namespace

std::string version_text(std::string_view program) {
  const std::string_view commit(HOLDFAST_COMMIT);  // NOLINT(readability-redundant-string-init): may be ""
  return fmt::format("{} {}\n{}compiler: {}\nlibraries: {}\n", program, kHoldfastVersion,
                     commit.empty() ? "" : fmt::format("commit: {}\n", commit), kCompiler, libraries());
}

}  // namespace holdfast
