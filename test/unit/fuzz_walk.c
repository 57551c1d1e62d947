/*-------------------------------------------------------------------------
 *
 * fuzz_walk.c
 *		A walk over any bytes: the record scan.
 *
 * The input is a few numbers (buffer, start, limit, what is sealed) and the log
 * bytes of one file.  Where the numbers say so, what lies at some places gets a
 * right header check and a right checksum first: else nothing would ever get
 * behind them.  Invariants: every record lies within the walk's bounds and
 * strictly after the one before, the walk ends, and the reads stay within the
 * file and the buffer.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include <errno.h>

#include "walk.h"

#define LOG_MAX		(UINT64_C(1) << 16)

static uint8_t bytes[LOG_MAX];
static uint64_t bytes_used;
static uint32_t fail_at;
static uint8_t buffer[1 << 15] __attribute__((aligned(4096)));
static uint32_t buffer_size;

static int64_t
read_bytes(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	(void) arg;
	FUZZ_INSIST(index == 0 && offset >= GL_BLOCK && offset % GL_BLOCK == 0 && size % GL_BLOCK == 0);
	FUZZ_INSIST((uint8_t *) buf >= buffer && (uint8_t *) buf + size <= buffer + buffer_size);
	offset -= GL_BLOCK;
	if (fail_at != 0 && offset + size > fail_at * (uint64_t) GL_BLOCK)
		return -EIO;
	if (offset >= bytes_used)
		return 0;
	if (size > bytes_used - offset)
		size = (uint32_t) (bytes_used - offset);
	memcpy(buf, bytes + offset, size);
	return size;
}

/* Make a record of what lies there, if it can be one. */
static void
seal_at(uint64_t offset, uint64_t first_lsn, const GlSeed *seed)
{
	GlRecordHeader header;
	uint32_t	crc;

	if (offset + sizeof(header) > bytes_used)
		return;
	memcpy(&header, bytes + offset, sizeof(header));
	if (header.length < sizeof(header) || header.length > bytes_used - offset)
		crc = 0;
	else
		crc = gl_record_payload_crc(bytes + offset + sizeof(header), header.length - sizeof(header));
	gl_record_seal(&header, seed, first_lsn + offset, crc);
	memcpy(bytes + offset, &header, sizeof(header));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FuzzInput	input = {data, size};
	GlSegmentHeader header;
	GlMapEntry	entry;
	GlLogMap	map = {&entry, 1};
	GlMapFault	fault;
	GlWalk		walk;
	GlWalkRecord record;
	uint32_t	seals;
	uint64_t	before;
	uint64_t	start;
	uint64_t	limit;
	uint32_t	steps = 0;

	memset(&header, 0, sizeof(header));
	header.segment_size = UINT64_C(1) << (12 + fuzz_take(&input, 1) % 6);
	header.ring_size = UINT64_C(1) << (8 + fuzz_take(&input, 1) % 10);
	header.first_lsn = fuzz_take(&input, 1) % 8 * header.segment_size + fuzz_take(&input, 1) * GL_GRANULE;
	header.number = 1;
	header.log_id = 1;
	header.epoch = 2;
	header.nonce = 3;
	gl_map_entry_from_header(&entry, &header, UINT64_MAX);
	gl_map_finish(&map, &fault);

	buffer_size = (2 + (uint32_t) fuzz_take(&input, 1) % 7) * GL_BLOCK;
	start = entry.base + fuzz_take(&input, 1) * GL_GRANULE;
	limit = fuzz_take(&input, 1) == 0 ? UINT64_MAX : entry.base + fuzz_take(&input, 2);
	fail_at = (uint32_t) fuzz_take(&input, 1) % 32;
	seals = (uint32_t) fuzz_take(&input, 1) % 16;
	if (seals * 2 > input.size)
		seals = (uint32_t) input.size / 2;

	bytes_used = input.size - seals * 2;
	if (bytes_used > LOG_MAX)
		bytes_used = LOG_MAX;
	memcpy(bytes, input.data + seals * 2, bytes_used);
	while (seals-- > 0)
		seal_at(fuzz_take(&input, 2) * GL_GRANULE, gl_block_floor(header.first_lsn), &entry.seed);

	gl_walk_init(&walk, &map, read_bytes, NULL, buffer, buffer_size, start, limit);
	before = start;
	for (;;)
	{
		GlWalkStatus status = gl_walk_next(&walk, &record);

		FUZZ_INSIST(steps++ < 2 * LOG_MAX / GL_GRANULE + 100);
		if (status == GL_WALK_INVALID)
			status = gl_walk_resync(&walk, &record);
		if (status == GL_WALK_BUFFER_TOO_SMALL)
		{
			/* twice the bound of a buffer is never needed for a record of 16 kB */
			FUZZ_INSIST(walk.buf_needed > buffer_size);
			if (walk.buf_needed > sizeof(buffer))
				break;
			buffer_size = gl_block_ceil(walk.buf_needed);
			gl_walk_set_buffer(&walk, buffer, buffer_size);
			continue;
		}
		if (status != GL_WALK_RECORD)
			break;
		FUZZ_INSIST(record.lsn >= before && record.next_lsn > record.lsn);
		FUZZ_INSIST(record.next_lsn <= limit && record.next_lsn <= entry.end);
		FUZZ_INSIST(record.payload >= buffer &&
					record.payload + record.payload_size <= buffer + buffer_size);
		before = record.next_lsn;
	}
	return 0;
}
