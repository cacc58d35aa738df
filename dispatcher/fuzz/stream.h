/* SPDX-License-Identifier: MIT */
/* A fuzzer's input, read as a stream of small numbers; zeros follow its end. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct stream {
	const uint8_t *data;
	size_t left;
};

static inline uint8_t stream_byte(struct stream *s)
{
	if (s->left == 0)
		return 0;
	s->left--;
	return *s->data++;
}

/* 0 .. limit - 1 */
static inline uint32_t stream_below(struct stream *s, uint32_t limit)
{
	return stream_byte(s) % limit;
}

/* What must hold did not. */
#define MUST(condition)                                                              \
	do {                                                                         \
		if (!(condition)) {                                                  \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                     \
		}                                                                    \
	} while (0)
