/*-------------------------------------------------------------------------
 *
 * memlog.h
 *		A log in memory, for the tests of walk and recovery.
 *
 * Files are made with mem_start (a new run), mem_continue and mem_next;
 * mem_append puts a record at the end of the newest.  Every byte of a file is
 * at hand to be damaged.  mem_read is the callback: it insists on aligned reads
 * and can be told to fail.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MEMLOG_H
#define MEMLOG_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

#define MB				UINT64_C(0x100000)
#define MEM_FILES		16
#define MEM_SEGMENT		MB
#define MEM_RING		(MB / 4)
#define MEM_LOG_ID		UINT64_C(0xCAFE)

typedef struct MemFile
{
	GlSegmentHeader header;
	uint8_t    *data;			/* the file as a whole, header block first */
	uint64_t	size;
} MemFile;

typedef struct MemLog
{
	MemFile		file[MEM_FILES];
	uint32_t	count;
	uint64_t	epoch;
	uint64_t	lsn;			/* the end */
	int64_t		time;			/* of the last record */
	uint8_t		fill;			/* what new files are full of */

	GlMapEntry	entries[MEM_FILES];
	GlLogMap	map;
	GlMapFault	fault;

	/* reads of this file at or beyond this offset fail */
	uint32_t	error_file;
	uint64_t	error_offset;	/* 0: none fails */
	uint64_t	bytes_read;
} MemLog;

static inline uint64_t
mem_nonce(uint64_t epoch)
{
	return epoch * UINT64_C(0x9E3779B97F4A7C15);
}

static inline MemFile *
mem_newest(MemLog *log)
{
	return &log->file[log->count - 1];
}

/* Where the byte of an LSN lies in a file. */
static inline uint8_t *
mem_at(MemLog *log, uint32_t index, uint64_t lsn)
{
	MemFile    *file = &log->file[index];

	return file->data + gl_segment_offset(file->header.first_lsn, lsn);
}

static inline void
mem_add(MemLog *log, uint64_t first_lsn, uint64_t end_before)
{
	MemFile    *file = &log->file[log->count++];
	GlSegmentHeader *header = &file->header;

	if (log->count > MEM_FILES)
		abort();
	memset(header, 0, sizeof(*header));
	header->segment_size = MEM_SEGMENT;
	header->ring_size = MEM_RING;
	header->log_id = MEM_LOG_ID;
	header->number = log->count;
	header->first_lsn = first_lsn;
	header->end_before = end_before;
	header->epoch = log->epoch;
	header->nonce = mem_nonce(log->epoch);
	header->nonce_before = log->count > 1 ? (file - 1)->header.nonce : 0;
	gl_segment_header_seal(header);

	file->size = GL_BLOCK + gl_segment_full_end(first_lsn, MEM_SEGMENT) - gl_block_floor(first_lsn);
	file->data = malloc(file->size);
	memset(file->data, log->fill, file->size);
	memcpy(file->data, header, sizeof(*header));
	log->lsn = first_lsn;
}

/* A new server run. */
static inline void
mem_start(MemLog *log, uint64_t first_lsn, uint64_t end_before)
{
	log->epoch++;
	mem_add(log, first_lsn, end_before);
}

/* The next file, of the same run, at this LSN. */
static inline void
mem_continue(MemLog *log, uint64_t lsn)
{
	uint64_t	floor = gl_block_floor(lsn);

	mem_add(log, lsn, lsn);
	if (lsn > floor)
		memcpy(mem_at(log, log->count - 1, floor), mem_at(log, log->count - 2, floor), lsn - floor);
}

static inline uint64_t
mem_append_kind(MemLog *log, uint8_t kind, const void *payload, uint32_t size, uint32_t undurable)
{
	MemFile    *file = mem_newest(log);
	uint64_t	lsn = log->lsn;
	GlSeed		seed = {MEM_LOG_ID, file->header.epoch, file->header.nonce};
	GlRecordHeader header;
	uint8_t    *at = mem_at(log, log->count - 1, lsn);

	memset(&header, 0, sizeof(header));
	header.length = GL_RECORD_HEADER_SIZE + size;
	header.time = ++log->time;
	header.stream = 1;
	header.kind = kind;
	header.undurable = undurable;
	gl_record_seal(&header, &seed, lsn, gl_record_payload_crc(payload, size));

	memset(at, 0, gl_record_span(size));
	memcpy(at, &header, sizeof(header));
	if (size > 0)
		memcpy(at + sizeof(header), payload, size);
	log->lsn += gl_record_span(size);
	return lsn;
}

/* A data record whose payload is a function of LSN and size. */
static inline void
mem_payload(uint8_t *payload, uint64_t lsn, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		payload[i] = (uint8_t) (lsn / GL_GRANULE + i * 7 + 1);
}

static inline uint64_t
mem_append(MemLog *log, uint32_t size, uint32_t undurable)
{
	static uint8_t payload[MEM_RING];

	mem_payload(payload, log->lsn, size);
	return mem_append_kind(log, GL_RECORD_DATA, payload, size, undurable);
}

/* Fill the newest file to its end, and start the next one. */
static inline void
mem_next(MemLog *log)
{
	uint64_t	end = gl_segment_full_end(mem_newest(log)->header.first_lsn, MEM_SEGMENT);

	while (log->lsn < end)
	{
		uint64_t	left = end - log->lsn - GL_RECORD_HEADER_SIZE;

		mem_append(log, left < 30000 ? (uint32_t) left : 20000, 0);
	}
	mem_add(log, end, end);
}

/* The writer truncates a file that it leaves behind. */
static inline void
mem_truncate(MemLog *log, uint32_t index, uint64_t lsn)
{
	log->file[index].size = gl_segment_offset(log->file[index].header.first_lsn, lsn);
}

/* Forget a file: it is missing then, its number with it. */
static inline void
mem_remove(MemLog *log, uint32_t index)
{
	free(log->file[index].data);
	log->count--;
	memmove(&log->file[index], &log->file[index + 1], (log->count - index) * sizeof(MemFile));
}

static inline bool
mem_map(MemLog *log)
{
	log->map.entries = log->entries;
	log->map.count = log->count;
	for (uint32_t i = 0; i < log->count; i++)
		gl_map_entry_from_header(&log->entries[i], &log->file[i].header, log->file[i].size);
	return gl_map_finish(&log->map, &log->fault);
}

static inline int64_t
mem_read(void *arg, uint32_t index, uint64_t offset, void *buf, uint32_t size)
{
	MemLog	   *log = arg;
	const MemFile *file = &log->file[index];

	if (index >= log->count || offset % GL_BLOCK != 0 || size % GL_BLOCK != 0 || size == 0 ||
		offset < GL_BLOCK)
		abort();
	if (log->error_offset != 0 && index == log->error_file && offset + size > log->error_offset)
		return -EIO;
	if (offset >= file->size)
		return 0;
	if (size > file->size - offset)
		size = (uint32_t) (file->size - offset);
	memcpy(buf, file->data + offset, size);
	log->bytes_read += size;
	return size;
}

static inline void
mem_free(MemLog *log)
{
	for (uint32_t i = 0; i < log->count; i++)
		free(log->file[i].data);
	memset(log, 0, sizeof(*log));
}

#endif							/* MEMLOG_H */
