/* SPDX-License-Identifier: MIT */
/* Numbers of a fuzzer's input, which is read as the dispatcher's fuzzers read theirs. */
#pragma once

#include <string.h>

#include "../../../dispatcher/fuzz/stream.h"

/* A number near one of the bounds of types and ranges, or any. */
static inline uint64_t stream_number(struct stream *in)
{
	static const uint64_t bounds[] = {
		0, 1, 100000, 1000000, 10000000, 1ull << 31, 1ull << 32, 1ull << 53, 1ull << 63,
		UINT64_MAX,
	};
	uint32_t choice = stream_below(in, sizeof(bounds) / sizeof(bounds[0]) + 1);
	uint64_t value = 0;

	if (choice > 0)
		return bounds[choice - 1] + stream_below(in, 3) - 1;
	for (int i = 0; i < 8; i++)
		value = value << 8 | stream_byte(in);
	return value;
}
