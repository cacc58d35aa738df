/* SPDX-License-Identifier: MIT */
/* A fuzzer's input, read as a stream of small numbers; zeros follow its end. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct input {
	const uint8_t *data;
	size_t left;
};

static inline uint8_t input_byte(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->data++;
}

/* 0 .. limit - 1, limit at most 65,536 */
static inline uint32_t input_below(struct input *in, uint32_t limit)
{
	uint32_t value = input_byte(in);

	if (limit > 256)
		value = value << 8 | input_byte(in);
	return value % limit;
}

/* A number near one of the bounds of types and ranges, or any. */
static inline uint64_t input_number(struct input *in)
{
	static const uint64_t bounds[] = {
		0, 1, 100000, 1000000, 10000000, 1ull << 31, 1ull << 32, 1ull << 53, 1ull << 63,
		UINT64_MAX,
	};
	uint32_t choice = input_below(in, sizeof(bounds) / sizeof(bounds[0]) + 1);
	uint64_t value = 0;

	if (choice > 0)
		return bounds[choice - 1] + (uint64_t)(int64_t)(int8_t)input_byte(in) % 3;
	for (int i = 0; i < 8; i++)
		value = value << 8 | input_byte(in);
	return value;
}

/* What must hold did not. */
#define MUST(condition)                                                                  \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: does not hold: %s (%s)\n", __FILE__, __LINE__, \
				#condition, punctual_last_error());                      \
			abort();                                                         \
		}                                                                        \
	} while (0)
