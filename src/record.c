/*-------------------------------------------------------------------------
 *
 * record.c
 *		The record: sealing and checking.
 *
 * Both checksums end with the seed and the LSN, so what comes before (the
 * payload above all) can be computed before the LSN is known.
 *
 * The check field exists to make a length believable before anything is read
 * with it.  A search for the next record tries it at every granule, so it is
 * one CRC call over 58 bytes gathered on the stack.
 *
 *-------------------------------------------------------------------------
 */
#include "record.h"

#include <string.h>

#include "crc32c.h"

_Static_assert(sizeof(GlSeed) == 24, "the seed is hashed as it lies in memory");
_Static_assert(offsetof(GlSeed, log_id) == 0, "log id first");
_Static_assert(offsetof(GlSeed, epoch) == 8, "then the epoch");
_Static_assert(offsetof(GlSeed, nonce) == 16, "then the nonce");

/*
 * The part of a checksum that follows the payload: header bytes 0..3 and
 * 8..header_end-1, then seed and LSN.
 */
static inline uint32_t
crc_header_and_seed(uint32_t crc, const GlRecordHeader *header, size_t header_end,
					const GlSeed *seed, uint64_t lsn)
{
	const uint8_t *raw = (const uint8_t *) header;
	uint8_t		bytes[GL_RECORD_HEADER_SIZE + sizeof(GlSeed) + sizeof(uint64_t)];
	size_t		used = 0;

	memcpy(bytes, raw, offsetof(GlRecordHeader, crc));
	used = offsetof(GlRecordHeader, crc);
	memcpy(bytes + used, raw + offsetof(GlRecordHeader, time),
		   header_end - offsetof(GlRecordHeader, time));
	used += header_end - offsetof(GlRecordHeader, time);
	memcpy(bytes + used, seed, sizeof(GlSeed));
	used += sizeof(GlSeed);
	memcpy(bytes + used, &lsn, sizeof(lsn));
	used += sizeof(lsn);

	return gl_crc32c(crc, bytes, used);
}

static inline uint16_t
header_check(const GlRecordHeader *header, const GlSeed *seed, uint64_t lsn)
{
	uint32_t	crc;

	crc = crc_header_and_seed(GL_CRC32C_INIT, header, offsetof(GlRecordHeader, check),
							  seed, lsn);
	crc = GL_CRC32C_FINAL(crc);
	return (uint16_t) ((crc >> 16) ^ (crc & 0xFFFF));
}

static inline uint32_t
record_crc(const GlRecordHeader *header, const GlSeed *seed, uint64_t lsn,
		   uint32_t payload_crc)
{
	uint32_t	crc;

	crc = crc_header_and_seed(payload_crc, header, sizeof(GlRecordHeader), seed, lsn);
	return GL_CRC32C_FINAL(crc);
}

static inline bool
header_is_zero(const GlRecordHeader *header)
{
	uint64_t	word[4];

	memcpy(word, header, sizeof(word));
	return (word[0] | word[1] | word[2] | word[3]) == 0;
}

uint32_t
gl_record_payload_crc(const void *payload, size_t size)
{
	if (size == 0)
		return GL_CRC32C_INIT;	/* payload may be NULL then */
	return gl_crc32c(GL_CRC32C_INIT, payload, size);
}

void
gl_record_seal(GlRecordHeader *header, const GlSeed *seed, uint64_t lsn, uint32_t payload_crc)
{
	/* the CRC covers the check field, so that comes first */
	header->check = header_check(header, seed, lsn);
	header->crc = record_crc(header, seed, lsn, payload_crc);
}

GlRecordCheck
gl_record_check_header(const GlRecordHeader *header, const GlSeed *seed,
					   uint64_t lsn, uint64_t max_length)
{
	if (header_is_zero(header))
		return GL_RECORD_EMPTY;
	if (header->check != header_check(header, seed, lsn))
		return GL_RECORD_BAD_HEADER;
	if (header->length < GL_RECORD_HEADER_SIZE || header->length > max_length)
		return GL_RECORD_BAD_LENGTH;
	if (header->kind < GL_RECORD_DATA || header->kind > GL_RECORD_KIND_LAST)
		return GL_RECORD_BAD_KIND;
	return GL_RECORD_OK;
}

bool
gl_record_check_crc(const GlRecordHeader *header, const GlSeed *seed,
					uint64_t lsn, uint32_t payload_crc)
{
	return header->crc == record_crc(header, seed, lsn, payload_crc);
}

const char *
gl_record_check_name(GlRecordCheck check)
{
	switch (check)
	{
		case GL_RECORD_OK:
			return "valid";
		case GL_RECORD_EMPTY:
			return "no record";
		case GL_RECORD_BAD_HEADER:
			return "bad header";
		case GL_RECORD_BAD_LENGTH:
			return "bad length";
		case GL_RECORD_BAD_KIND:
			return "unknown kind";
		case GL_RECORD_BAD_CRC:
			return "bad checksum";
	}
	return "unknown";
}
