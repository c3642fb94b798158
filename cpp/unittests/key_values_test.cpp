// SPDX-License-Identifier: Apache-2.0
#include "hlotag/analysis/key_values.h"
#include "testing.h"

using hlotag::analysis::whyIllegal;

static bool isLegal(const char *key, const char *value) { return whyIllegal(key, value).empty(); }

TEST(integers_beyond_32_bits_are_illegal) {
  const char *key = "scheduler_delay_priority";
  for (const char *value : {"2147483647", "-2147483648", "+0002147483647"})
    CHECK(isLegal(key, value));
  for (const char *value : {"2147483648", "-2147483649", "4294967296", "18446744073709551616"})
    CHECK(!isLegal(key, value));
}

TEST(integers_beyond_64_bits_are_illegal) {
  for (const char *key : {"FUSE_LIMIT", "latency_metadata", "num_batch_dims"}) {
    for (const char *value : {"9223372036854775807", "-9223372036854775808"})
      CHECK(isLegal(key, value));
    // The last three are small modulo 2^64.
    for (const char *value : {"9223372036854775808", "-9223372036854775809", "18446744073709551616",
                              "18446744073709551620", "36893488147419103233"})
      CHECK(!isLegal(key, value));
  }
}
