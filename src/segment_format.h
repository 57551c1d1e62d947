/*-------------------------------------------------------------------------
 *
 * segment_format.h
 *		The segment file: its name, its header block.
 *
 * A segment's name is its number (8 hex digits), a dash, its first LSN (16 hex
 * digits), ".seg".  Numbers are 1, 2, 3 ... in the order in which the files
 * took over.
 *
 *	file offset 0     header block, 4,096 bytes, below
 *	file offset 4096  log bytes: offset = 4096 + (lsn - base), where
 *	                  base = first LSN rounded down to a block
 *
 * A full file ends at the next multiple of segment_size after its first LSN.
 * It ends earlier where a later file's header says so (end_before): see
 * logmap.h.
 *
 *	offset size field
 *	   0     8   magic             "grouplog"
 *	   8     4   version           1
 *	  12     4   header_size       4096
 *	  16     8   segment_size      bytes, a power of two
 *	  24     8   ring_size         bytes of the ring of this run, a power of two
 *	  32     8   system_identifier of the cluster
 *	  40     8   log_id            random, made with the log
 *	  48     4   number
 *	  52     4   timeline          WAL timeline at creation
 *	  56     8   first_lsn         the first byte that this file is the authority for
 *	  64     8   end_before        end LSN of the log before this file
 *	  72     8   epoch             grows with every server start
 *	  80     8   nonce             random, new with every server start
 *	  88     8   nonce_before      of the file numbered one less; 0 in the first
 *	  96     8   next_xid          the server's next full transaction id
 *	 104     8   compatible        feature bits that an older reader may ignore
 *	 112     8   incompatible      feature bits that it must not
 *	 120     8   created           microseconds since 2000-01-01 UTC
 *	 128     4   follows           the file before this one, where that is not number - 1:
 *	                               those between were given up by accept_end; else 0
 *	 132  3960   zero
 *	4092     4   crc               CRC-32C over bytes 0..4091
 *
 * Pure: no server headers, no allocation, no clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SEGMENT_FORMAT_H
#define GROUPLOG_SEGMENT_FORMAT_H

#include "record.h"

#define GL_BLOCK				4096	/* what is written at once, at least */
#define GL_SEGMENT_MAGIC		"grouplog"
#define GL_SEGMENT_VERSION		1
#define GL_SEGMENT_NAME_SIZE	32	/* 8 + 1 + 16 + 4 characters, NUL, spare */
/* tests use smaller ones */
#ifndef GL_SEGMENT_SIZE_MIN
#define GL_SEGMENT_SIZE_MIN		(UINT64_C(1) << 20)
#define GL_SEGMENT_SIZE_MAX		(UINT64_C(1) << 30)
#define GL_RING_SIZE_MIN		(UINT64_C(1) << 17)
#endif
#define GL_RING_SIZE_MAX		(UINT64_C(1) << 30)

/* No file begins beyond this, so positions in a file never overflow. */
#define GL_LSN_MAX				(UINT64_C(1) << 62)

/* incompatible feature bits that this version understands: none yet */
#define GL_INCOMPATIBLE_KNOWN	UINT64_C(0)

typedef struct GlSegmentHeader
{
	char		magic[8];
	uint32_t	version;
	uint32_t	header_size;
	uint64_t	segment_size;
	uint64_t	ring_size;
	uint64_t	system_identifier;
	uint64_t	log_id;
	uint32_t	number;
	uint32_t	timeline;
	uint64_t	first_lsn;
	uint64_t	end_before;
	uint64_t	epoch;
	uint64_t	nonce;
	uint64_t	nonce_before;
	uint64_t	next_xid;
	uint64_t	compatible;
	uint64_t	incompatible;
	int64_t		created;
	uint32_t	follows;
	uint8_t		zero[3960];
	uint32_t	crc;
} GlSegmentHeader;

_Static_assert(sizeof(GlSegmentHeader) == GL_BLOCK, "a header is one block");
_Static_assert(offsetof(GlSegmentHeader, system_identifier) == 32, "system_identifier at 32");
_Static_assert(offsetof(GlSegmentHeader, first_lsn) == 56, "first_lsn at 56");
_Static_assert(offsetof(GlSegmentHeader, epoch) == 72, "epoch at 72");
_Static_assert(offsetof(GlSegmentHeader, incompatible) == 112, "incompatible at 112");
_Static_assert(offsetof(GlSegmentHeader, follows) == 128, "follows at 128");
_Static_assert(offsetof(GlSegmentHeader, zero) == 132, "zeros at 132");
_Static_assert(offsetof(GlSegmentHeader, crc) == 4092, "crc at 4092");

typedef enum GlHeaderCheck
{
	GL_HEADER_OK = 0,
	GL_HEADER_BAD_MAGIC,
	GL_HEADER_BAD_CRC,
	GL_HEADER_BAD_VERSION,		/* version or header size is not ours */
	GL_HEADER_UNSUPPORTED,		/* an incompatible feature bit is unknown */
	GL_HEADER_BAD_FIELD			/* sizes or positions out of their limits */
} GlHeaderCheck;

static inline uint64_t
gl_block_floor(uint64_t lsn)
{
	return lsn & ~(uint64_t) (GL_BLOCK - 1);
}

static inline uint64_t
gl_block_ceil(uint64_t lsn)
{
	return (lsn + (GL_BLOCK - 1)) & ~(uint64_t) (GL_BLOCK - 1);
}

/* Where a file that began at first_lsn is full: the next multiple of the size. */
static inline uint64_t
gl_segment_full_end(uint64_t first_lsn, uint64_t segment_size)
{
	return (first_lsn / segment_size + 1) * segment_size;
}

/* File offset of an LSN in the file that began at first_lsn. */
static inline uint64_t
gl_segment_offset(uint64_t first_lsn, uint64_t lsn)
{
	return GL_BLOCK + (lsn - gl_block_floor(first_lsn));
}

/* name: at least GL_SEGMENT_NAME_SIZE bytes */
extern void gl_segment_name(char *name, uint32_t number, uint64_t first_lsn);

/* Exactly the form above (upper-case hex digits, number not 0)? */
extern bool gl_segment_name_parse(const char *name, uint32_t *number, uint64_t *first_lsn);

/* Set magic, version, header_size and crc; the other fields are set. */
extern void gl_segment_header_seal(GlSegmentHeader *header);

extern GlHeaderCheck gl_segment_header_check(const GlSegmentHeader *header);
extern const char *gl_header_check_name(GlHeaderCheck check);

#endif							/* GROUPLOG_SEGMENT_FORMAT_H */
