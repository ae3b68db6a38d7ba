// The settings of cjson that scripts can change. A change lasts for one run.
#pragma once

namespace holdfast {

struct JsonSettings {
  static constexpr int kMaxDepth = 1000;
  static constexpr int kPrecision = 14;
  static constexpr int kSparseRatio = 2;
  static constexpr int kSparseSafe = 10;

  int sparse_convert = 0;  // whether a list with too many missing elements becomes an object
  int sparse_ratio = kSparseRatio;
  int sparse_safe = kSparseSafe;
  int encode_max_depth = kMaxDepth;
  int decode_max_depth = kMaxDepth;
  int encode_invalid = 0;  // NaN and infinity: 0 rejected, 1 written, 2 written as null
  int decode_invalid = 1;
  int keep_buffer = 1;  // can be read back but has no effect: no buffer is kept
  int precision = kPrecision;
};

}  // namespace holdfast
