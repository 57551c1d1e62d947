/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *		What the fuzz targets share.
 *
 * With libFuzzer (make fuzz) the engine calls LLVMFuzzerTestOneInput.  Without it
 * test_corpus.c does, with every file of the corpus.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "segment_format.h"

/* An invariant: abort, whatever NDEBUG says, so that the input is kept. */
#define FUZZ_INSIST(condition) \
	do { \
		if (!(condition)) \
			abort(); \
	} while (0)

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Take numbers off the input; zeros when there is nothing left. */
typedef struct FuzzInput
{
	const uint8_t *data;
	size_t		size;
} FuzzInput;

static inline uint64_t
fuzz_take(FuzzInput *input, size_t bytes)
{
	uint64_t	value = 0;

	if (bytes > input->size)
		bytes = input->size;
	memcpy(&value, input->data, bytes);
	input->data += bytes;
	input->size -= bytes;
	return value;
}

#endif							/* FUZZ_H */
