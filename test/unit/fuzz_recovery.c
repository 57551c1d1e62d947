/*-------------------------------------------------------------------------
 *
 * fuzz_recovery.c
 *		Recovery over any set of files.
 *
 * The input is a program: each byte, with what follows it, begins a file (a run,
 * a continuation, the next one, or with fields that are anything), appends
 * records to the newest, cuts a file, removes one, or writes anything anywhere,
 * headers included.  Recovery then runs twice, strictly and as after a base
 * backup, and a walk over all of it: no crash, no hang, the same answer twice,
 * the end within what the map holds, reads bounded by what there is to read.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include <errno.h>

#include "recovery.h"

#define FILES			6
#define FILE_SIZE		(GL_BLOCK + (1 << 15))
#define STEPS			200

typedef struct File
{
	uint8_t		data[FILE_SIZE];
	uint64_t	size;
} File;

static File files[FILES];
static uint32_t file_count;
static GlMapEntry entries[FILES];
static uint32_t entry_file[FILES];
static GlLogMap map = {entries, 0};
static uint8_t buffer[1 << 17] __attribute__((aligned(4096)));
static uint64_t reads;
static uint64_t read_error;		/* reads of this file and block fail */

static int64_t
read_file(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	const File *file = &files[entry_file[index]];

	(void) arg;
	FUZZ_INSIST(index < map.count && offset >= GL_BLOCK);
	FUZZ_INSIST(offset % GL_BLOCK == 0 && size % GL_BLOCK == 0 && size > 0);
	FUZZ_INSIST((uint8_t *) buf >= buffer && (uint8_t *) buf + size <= buffer + sizeof(buffer));
	FUZZ_INSIST(++reads < 100000);
	if (read_error != 0 && (read_error - 1) / 16 == index && (read_error - 1) % 16 < offset / GL_BLOCK)
		return -EIO;
	if (offset >= file->size)
		return 0;
	if (size > file->size - offset)
		size = (uint32_t) (file->size - offset);
	memcpy(buf, file->data + offset, size);
	return size;
}

static void
begin_file(FuzzInput *input, uint64_t *lsn, uint64_t *epoch)
{
	File	   *file = &files[file_count];
	GlSegmentHeader *header = (GlSegmentHeader *) file->data;
	const GlSegmentHeader *before = file_count > 0 ? (GlSegmentHeader *) files[file_count - 1].data : NULL;
	uint32_t	what = (uint32_t) fuzz_take(input, 1);

	if (file_count == FILES)
		return;
	memset(file->data, 0, sizeof(file->data));
	file->size = FILE_SIZE;
	header->segment_size = 1 << 15;
	header->ring_size = 1 << 13;
	header->log_id = 5;
	header->number = before != NULL ? before->number + 1 : 1;
	header->end_before = *lsn;
	switch (what % 4)
	{
		case 0:
			/* a new run */
			(*epoch)++;
			*lsn = (*lsn + header->ring_size + header->segment_size) / header->segment_size * header->segment_size;
			break;
		case 1:
			/* full, and the next */
			*lsn = (*lsn + header->segment_size - 1) / header->segment_size * header->segment_size;
			header->end_before = *lsn;
			break;
		default:
			/* in the middle */
			break;
	}
	header->first_lsn = *lsn;
	header->epoch = *epoch;
	header->nonce = *epoch * 1000;
	header->nonce_before = before != NULL ? before->nonce : 0;
	if (what & 0x10)
		header->number += (uint32_t) fuzz_take(input, 1);
	if (what & 0x20)
		header->end_before = fuzz_take(input, 8);
	if (what & 0x40)
		header->first_lsn = fuzz_take(input, 8);
	if (what & 0x80)
	{
		header->segment_size = fuzz_take(input, 8);
		header->ring_size = fuzz_take(input, 8);
		header->follows = (uint32_t) fuzz_take(input, 1);
		header->log_id += fuzz_take(input, 1) == 0;
	}
	gl_segment_header_seal(header);
	if (before != NULL && header->first_lsn % GL_BLOCK != 0)
	{
		uint64_t	from = gl_segment_offset(before->first_lsn, gl_block_floor(header->first_lsn));

		if (from >= GL_BLOCK && from <= FILE_SIZE - GL_BLOCK)
			memcpy(file->data + GL_BLOCK, files[file_count - 1].data + from, header->first_lsn % GL_BLOCK);
	}
	file_count++;
}

static void
append_record(FuzzInput *input, uint64_t *lsn)
{
	File	   *file = &files[file_count - 1];
	const GlSegmentHeader *segment = (GlSegmentHeader *) file->data;
	GlSeed		seed = {segment->log_id, segment->epoch, segment->nonce};
	GlRecordHeader header;
	uint32_t	what = (uint32_t) fuzz_take(input, 1);
	uint32_t	size = (uint32_t) fuzz_take(input, what & 0x10 ? 2 : 1) % 9000;
	uint64_t	offset = gl_segment_offset(segment->first_lsn, *lsn);

	memset(&header, 0, sizeof(header));
	header.length = GL_RECORD_HEADER_SIZE + size;
	header.kind = (uint8_t) (what & 0x08 ? what & 7 : GL_RECORD_DATA);
	header.undurable = what & 0x20 ? (uint32_t) fuzz_take(input, 4) : 0;
	header.time = (int64_t) (*lsn + 1);
	if (*lsn < segment->first_lsn || offset < GL_BLOCK || offset + gl_record_span(size) > FILE_SIZE)
		return;
	memset(file->data + offset + sizeof(header), (int) what, size);
	gl_record_seal(&header, &seed, *lsn, gl_record_payload_crc(file->data + offset + sizeof(header), size));
	memcpy(file->data + offset, &header, sizeof(header));
	*lsn += gl_record_span(size);
}

static void
run_program(FuzzInput *input)
{
	uint64_t	lsn = 1 << 15;
	uint64_t	epoch = 0;

	file_count = 0;
	read_error = 0;
	for (int steps = 0; input->size > 0 && steps < STEPS; steps++)
	{
		uint32_t	what = (uint32_t) fuzz_take(input, 1);
		uint32_t	at;
		File	   *file;

		if (file_count == 0 || what % 8 == 0)
		{
			begin_file(input, &lsn, &epoch);
			continue;
		}
		file = &files[what / 8 % file_count];
		switch (what % 8)
		{
			case 1:
				file->size = (uint32_t) fuzz_take(input, 2) % (FILE_SIZE + 1);
				break;
			case 2:
				at = (uint32_t) fuzz_take(input, 2) % FILE_SIZE;
				file->data[at] ^= (uint8_t) fuzz_take(input, 1);
				break;
			case 3:
				at = (uint32_t) fuzz_take(input, 1) * 512 % FILE_SIZE;
				memset(file->data + at, (int) fuzz_take(input, 1), FILE_SIZE - at < 512 ? FILE_SIZE - at : 512);
				break;
			case 4:
				/* the file goes, the others move up */
				memmove(file, file + 1, (size_t) (files + file_count - file - 1) * sizeof(File));
				file_count--;
				break;
			case 5:
				lsn += fuzz_take(input, 1) * GL_GRANULE;
				read_error = fuzz_take(input, 1) == 7 ? 1 + fuzz_take(input, 1) % 96 : 0;
				break;
			default:
				append_record(input, &lsn);
				break;
		}
	}
}

/* As the server does: in the order of numbers, no two alike, headers valid in form. */
static void
make_map(bool any_header)
{
	map.count = 0;
	for (uint32_t i = 0; i < file_count; i++)
	{
		const GlSegmentHeader *header = (const GlSegmentHeader *) files[i].data;
		GlHeaderCheck check = gl_segment_header_check(header);
		GlMapEntry	entry;
		uint32_t	at = map.count;
		bool		known = false;

		/* the files are smaller than a server's, which is the last check */
		if (!any_header && check != GL_HEADER_OK && check != GL_HEADER_BAD_FIELD)
			continue;
		gl_map_entry_from_header(&entry, header, files[i].size);
		for (uint32_t j = 0; j < map.count; j++)
			known = known || entries[j].number == entry.number;
		if (known)
			continue;
		for (; at > 0 && entries[at - 1].number > entry.number; at--)
		{
			entries[at] = entries[at - 1];
			entry_file[at] = entry_file[at - 1];
		}
		entries[at] = entry;
		entry_file[at] = i;
		map.count++;
	}
}

static void
check_recovery(bool restored)
{
	GlRecoveryResult found;
	GlRecoveryResult again;
	GlMapFault	fault;
	GlWalk		walk;
	GlWalkRecord record;
	GlWalkStatus status;
	uint64_t	before = 0;
	bool		sane = true;	/* no header that a server would not take */

	gl_map_finish(&map, &fault);
	reads = 0;
	gl_recovery_run(&map, &fault, restored, 1 << 15, read_file, NULL, buffer, sizeof(buffer), NULL, &found);
	gl_recovery_run(&map, &fault, restored, 1 << 15, read_file, NULL, buffer, sizeof(buffer), NULL, &again);
	FUZZ_INSIST(memcmp(&found, &again, sizeof(found)) == 0);
	if (found.verdict == GL_RECOVERY_READ_ERROR || found.verdict == GL_RECOVERY_BUFFER_TOO_SMALL)
		return;
	if (found.verdict == GL_RECOVERY_CORRUPT)
		FUZZ_INSIST(found.valid_end >= found.end_lsn && (map.count == 0 || found.bad_index < map.count));
	else
		FUZZ_INSIST(found.valid_end == found.end_lsn);
	for (uint32_t i = 0; i < map.count; i++)
		sane = sane && entries[i].first_lsn <= GL_LSN_MAX && entries[i].ring_size <= GL_RING_SIZE_MAX;
	if (sane && found.end_lsn <= GL_LSN_MAX && found.valid_end <= GL_LSN_MAX)
		FUZZ_INSIST(found.next_lsn >= found.valid_end && found.next_lsn % (1 << 15) == 0);

	if (map.count == 0)
		return;
	gl_walk_init(&walk, &map, read_file, NULL, buffer, sizeof(buffer), entries[0].base, UINT64_MAX);
	for (;;)
	{
		status = gl_walk_next(&walk, &record);
		if (status == GL_WALK_INVALID)
			status = gl_walk_resync(&walk, &record);
		if (status != GL_WALK_RECORD)
			break;
		FUZZ_INSIST(record.lsn >= before && record.next_lsn > record.lsn && record.index < map.count);
		before = record.next_lsn;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FuzzInput	input = {data, size};

	run_program(&input);
	make_map(false);
	check_recovery(false);
	check_recovery(true);
	make_map(true);
	check_recovery(false);
	return 0;
}
