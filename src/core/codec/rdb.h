// The constants of Redis's RDB format, versions 10 to 12: opcodes, types of values, encodings.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast::rdb {

inline constexpr std::string_view kMagic = "REDIS";
inline constexpr int kVersion = 10;        // the written version
inline constexpr int kLatestVersion = 12;  // the latest that is read: that of Redis 7.4 and 8.0

inline constexpr uint8_t kOpFunction2 = 245;
inline constexpr uint8_t kOpModuleAux = 247;
inline constexpr uint8_t kOpIdle = 248;
inline constexpr uint8_t kOpFreq = 249;
inline constexpr uint8_t kOpAux = 250;
inline constexpr uint8_t kOpResizeDb = 251;
inline constexpr uint8_t kOpExpireMs = 252;
inline constexpr uint8_t kOpExpire = 253;
inline constexpr uint8_t kOpSelectDb = 254;
inline constexpr uint8_t kOpEnd = 255;

inline constexpr uint8_t kTypeString = 0;
inline constexpr uint8_t kTypeList = 1;
inline constexpr uint8_t kTypeSet = 2;
inline constexpr uint8_t kTypeZset = 3;  // scores as text
inline constexpr uint8_t kTypeHash = 4;
inline constexpr uint8_t kTypeZset2 = 5;  // scores as doubles
inline constexpr uint8_t kTypeModule = 7;
inline constexpr uint8_t kTypeHashZipmap = 9;
inline constexpr uint8_t kTypeListZiplist = 10;
inline constexpr uint8_t kTypeSetIntset = 11;
inline constexpr uint8_t kTypeZsetZiplist = 12;
inline constexpr uint8_t kTypeHashZiplist = 13;
inline constexpr uint8_t kTypeListQuicklist = 14;  // of ziplists
inline constexpr uint8_t kTypeHashListpack = 16;
inline constexpr uint8_t kTypeZsetListpack = 17;
inline constexpr uint8_t kTypeListQuicklist2 = 18;  // of listpacks and plain texts
inline constexpr uint8_t kTypeSetListpack = 20;
// Hashes with deadlines of fields; the first two of release candidates of Redis 7.4.
inline constexpr uint8_t kTypeHashDeadlinesRc = 22;
inline constexpr uint8_t kTypeHashListpackDeadlinesRc = 23;
inline constexpr uint8_t kTypeHashDeadlines = 24;
inline constexpr uint8_t kTypeHashListpackDeadlines = 25;
// The latest deadline of a field, in wall-clock milliseconds, that Redis takes.
inline constexpr int64_t kMaxFieldDeadlineMs = (int64_t{1} << 46U) - 1;

inline constexpr size_t kChecksumBytes = 8;

}  // namespace holdfast::rdb
