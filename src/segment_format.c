/*-------------------------------------------------------------------------
 *
 * segment_format.c
 *		The segment file: its name and its header block.
 *
 * A header is valid if and only if
 *	1. its magic is ours,
 *	2. its CRC is right,
 *	3. version and header size are those of this version,
 *	4. no incompatible feature bit is unknown,
 *	5. its sizes are powers of two within their limits, the ring no larger than
 *	   the segment, and its positions are aligned, in order and in range.
 * The checks are made in this order, so that damage is told from another
 * version.  What a header says about other files is logmap.c's to check.
 *
 *-------------------------------------------------------------------------
 */
#include "segment_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "crc32c.h"

#define NUMBER_DIGITS	8
#define LSN_DIGITS		16

static uint32_t
header_crc(const GlSegmentHeader *header)
{
	uint32_t	crc = gl_crc32c(GL_CRC32C_INIT, header, offsetof(GlSegmentHeader, crc));

	return GL_CRC32C_FINAL(crc);
}

static inline bool
is_power_of_two_between(uint64_t value, uint64_t min, uint64_t max)
{
	return value >= min && value <= max && (value & (value - 1)) == 0;
}

void
gl_segment_name(char *name, uint32_t number, uint64_t first_lsn)
{
	snprintf(name, GL_SEGMENT_NAME_SIZE, "%08" PRIX32 "-%016" PRIX64 ".seg", number, first_lsn);
}

/* Exactly that many upper-case hex digits; moves *at behind them. */
static bool
parse_hex(const char **at, int digits, uint64_t *value)
{
	uint64_t	result = 0;

	for (int i = 0; i < digits; i++)
	{
		char		c = **at;

		if (c >= '0' && c <= '9')
			result = (result << 4) | (uint64_t) (c - '0');
		else if (c >= 'A' && c <= 'F')
			result = (result << 4) | (uint64_t) (c - 'A' + 10);
		else
			return false;		/* the terminating NUL, too */
		(*at)++;
	}
	*value = result;
	return true;
}

bool
gl_segment_name_parse(const char *name, uint32_t *number, uint64_t *first_lsn)
{
	uint64_t	parsed_number;
	uint64_t	parsed_lsn;

	if (!parse_hex(&name, NUMBER_DIGITS, &parsed_number))
		return false;
	if (*name++ != '-')
		return false;
	if (!parse_hex(&name, LSN_DIGITS, &parsed_lsn))
		return false;
	if (strcmp(name, ".seg") != 0 || parsed_number == 0)
		return false;

	*number = (uint32_t) parsed_number;
	*first_lsn = parsed_lsn;
	return true;
}

void
gl_segment_header_seal(GlSegmentHeader *header)
{
	memcpy(header->magic, GL_SEGMENT_MAGIC, sizeof(header->magic));
	header->version = GL_SEGMENT_VERSION;
	header->header_size = GL_BLOCK;
	header->crc = header_crc(header);
}

GlHeaderCheck
gl_segment_header_check(const GlSegmentHeader *header)
{
	if (memcmp(header->magic, GL_SEGMENT_MAGIC, sizeof(header->magic)) != 0)
		return GL_HEADER_BAD_MAGIC;
	if (header->crc != header_crc(header))
		return GL_HEADER_BAD_CRC;
	if (header->version != GL_SEGMENT_VERSION || header->header_size != GL_BLOCK)
		return GL_HEADER_BAD_VERSION;
	if ((header->incompatible & ~GL_INCOMPATIBLE_KNOWN) != 0)
		return GL_HEADER_UNSUPPORTED;

	if (!is_power_of_two_between(header->segment_size, GL_SEGMENT_SIZE_MIN, GL_SEGMENT_SIZE_MAX) ||
		!is_power_of_two_between(header->ring_size, GL_RING_SIZE_MIN, GL_RING_SIZE_MAX) ||
		header->ring_size > header->segment_size)
		return GL_HEADER_BAD_FIELD;
	if (header->number == 0 ||
		header->first_lsn == 0 || header->first_lsn > GL_LSN_MAX ||
		header->first_lsn % GL_GRANULE != 0 ||
		header->end_before > header->first_lsn ||
		header->end_before % GL_GRANULE != 0)
		return GL_HEADER_BAD_FIELD;
	return GL_HEADER_OK;
}

const char *
gl_header_check_name(GlHeaderCheck check)
{
	switch (check)
	{
		case GL_HEADER_OK:
			return "valid";
		case GL_HEADER_BAD_MAGIC:
			return "no segment header";
		case GL_HEADER_BAD_CRC:
			return "bad header checksum";
		case GL_HEADER_BAD_VERSION:
			return "unknown format version";
		case GL_HEADER_UNSUPPORTED:
			return "unsupported feature";
		case GL_HEADER_BAD_FIELD:
			return "header field out of range";
	}
	return "unknown";
}
