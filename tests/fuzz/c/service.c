/* SPDX-License-Identifier: MIT */
/* A client of the service that sends what the fuzzer chooses. */
#include <stddef.h>
#include <stdint.h>

void punctual_fuzz_service(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	punctual_fuzz_service(data, size);
	return 0;
}
