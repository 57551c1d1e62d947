/*-------------------------------------------------------------------------
 *
 * record.h
 *		The record: its layout in the log, its checks.
 *
 * A record is a 32-byte header, the payload, and zero bytes up to the next
 * multiple of 32.  Its LSN is the position of its first byte.
 *
 *	offset size field
 *	   0     4   length      header + payload, before padding
 *	   4     4   crc         CRC-32C over payload, then header without this
 *	                         field, then seed and LSN
 *	   8     8   time        of the append, microseconds since 2000-01-01 UTC
 *	  16     8   stream      whose record it is
 *	  24     4   undurable   how many 32-byte granules before this record were
 *	                         not yet durable when it was claimed; saturates
 *	  28     1   kind        GlRecordKind
 *	  29     1   flags       GL_RECORD_TEXT, ...
 *	  30     2   check       16 bits of a seeded CRC over bytes 0..3 and 8..29;
 *	                         verified before the length is believed
 *
 * Integers are little-endian.  The seed (log id, epoch, nonce) comes from the
 * header of the segment, so recycled, stale, misplaced and cloned bytes never
 * pass for records; and since the nonce is random and secret, no payload can
 * be made to look like one.
 *
 * Pure: no server headers, no allocation, no clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_RECORD_H
#define GROUPLOG_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "grouplog's log format is little-endian, and so must the machine be"
#endif

#define GL_GRANULE				32		/* records begin at multiples of it */
#define GL_RECORD_HEADER_SIZE	32
#define GL_UNDURABLE_UNKNOWN	UINT32_MAX	/* saturated: proves nothing */

typedef enum GlRecordKind
{
	GL_RECORD_DATA = 1,
	GL_RECORD_PADDING = 2,		/* fills a segment's end; payload is zeros */
	GL_RECORD_CLOSE = 3,		/* clean shutdown; no payload */
	/* reserved for later versions; valid on disk, passed over by readers */
	GL_RECORD_CONTROL = 4,
	GL_RECORD_COMMIT = 5,
	GL_RECORD_ABORT = 6
} GlRecordKind;

#define GL_RECORD_KIND_LAST		GL_RECORD_ABORT

/* flags */
#define GL_RECORD_TEXT			0x01	/* appended as text */
#define GL_RECORD_BATCH			0x02	/* reserved: batch continues */
#define GL_RECORD_EXTENSION		0x04	/* reserved: extension area first */

typedef struct GlRecordHeader
{
	uint32_t	length;
	uint32_t	crc;
	int64_t		time;
	uint64_t	stream;
	uint32_t	undurable;
	uint8_t		kind;
	uint8_t		flags;
	uint16_t	check;
} GlRecordHeader;

_Static_assert(sizeof(GlRecordHeader) == GL_RECORD_HEADER_SIZE, "record header is 32 bytes");
_Static_assert(offsetof(GlRecordHeader, crc) == 4, "crc at 4");
_Static_assert(offsetof(GlRecordHeader, time) == 8, "time at 8");
_Static_assert(offsetof(GlRecordHeader, stream) == 16, "stream at 16");
_Static_assert(offsetof(GlRecordHeader, undurable) == 24, "undurable at 24");
_Static_assert(offsetof(GlRecordHeader, kind) == 28, "kind at 28");
_Static_assert(offsetof(GlRecordHeader, flags) == 29, "flags at 29");
_Static_assert(offsetof(GlRecordHeader, check) == 30, "check at 30");

/* What every checksum of one server run is seeded with. */
typedef struct GlSeed
{
	uint64_t	log_id;
	uint64_t	epoch;
	uint64_t	nonce;
} GlSeed;

/* Bytes of log that a record with this much payload takes. */
static inline uint64_t
gl_record_span(uint64_t payload_size)
{
	return (GL_RECORD_HEADER_SIZE + payload_size + (GL_GRANULE - 1)) & ~(uint64_t) (GL_GRANULE - 1);
}

/*
 * The payload's part of the CRC (a running value), so that the expensive part
 * is done before the claim.
 */
extern uint32_t gl_record_payload_crc(const void *payload, size_t size);

/*
 * Fill in check and crc; every other field is set, payload_crc is what
 * gl_record_payload_crc returned.
 */
extern void gl_record_seal(GlRecordHeader *header, const GlSeed *seed,
						   uint64_t lsn, uint32_t payload_crc);

typedef enum GlRecordCheck
{
	GL_RECORD_OK = 0,
	GL_RECORD_EMPTY,			/* the header is all zeros */
	GL_RECORD_BAD_HEADER,		/* header check does not match */
	GL_RECORD_BAD_LENGTH,		/* below 32, or beyond max_length */
	GL_RECORD_BAD_KIND,			/* no kind that this version knows */
	GL_RECORD_BAD_CRC
} GlRecordCheck;

/*
 * Is this the header of a record at this LSN?  Order of the checks: check
 * field, length (32 <= length <= max_length), kind.  max_length is in bytes,
 * header included.
 */
extern GlRecordCheck gl_record_check_header(const GlRecordHeader *header, const GlSeed *seed,
											uint64_t lsn, uint64_t max_length);

/*
 * Does the CRC match?  payload_crc: gl_record_payload_crc over the length - 32
 * bytes after the header.
 */
extern bool gl_record_check_crc(const GlRecordHeader *header, const GlSeed *seed,
								uint64_t lsn, uint32_t payload_crc);

/* One or two words for messages: "bad checksum", "no record", ... */
extern const char *gl_record_check_name(GlRecordCheck check);

#endif							/* GROUPLOG_RECORD_H */
