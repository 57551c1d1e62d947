/*-------------------------------------------------------------------------
 *
 * logcheck.c
 *		Recover the log in a folder as the server would, and list its records.
 *
 *	logcheck FOLDER
 *
 * Built from the pure modules alone, so that hundreds of crash images can be
 * looked at without a server.  Prints, for the records of tests ("client-number:"
 * and letters), a line each:
 *
 *	LSN key letters letter
 *
 * where a letter that is not the same all through is shown as "?", and at the
 * end "verdict WORD LSN".  Recovery and the walk after it read with direct I/O
 * where that is possible, like the server.
 *
 *-------------------------------------------------------------------------
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recovery.h"

#define MAX_FILES	1000
#define BUFFER_SIZE (4 << 20)

static const char *folder;
static GlMapEntry entries[MAX_FILES];
static GlLogMap map = {entries, 0};
static uint8_t buffer[BUFFER_SIZE] __attribute__((aligned(GL_BLOCK)));

static void
fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static int
open_segment(uint32_t number, uint64_t first_lsn)
{
	char		name[GL_SEGMENT_NAME_SIZE];
	char		path[4096];
	int			fd;

	gl_segment_name(name, number, first_lsn);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_DIRECT);
	return fd >= 0 ? fd : open(path, O_RDONLY);
}

static int64_t
read_segment(void *arg, uint32_t index, uint64_t offset, void *to, uint32_t size)
{
	static int	fd = -1;
	static int64_t open_index = -1;
	ssize_t		got;

	(void) arg;
	if (open_index != index)
	{
		if (fd >= 0)
			close(fd);
		fd = open_segment(entries[index].number, entries[index].first_lsn);
		if (fd < 0)
			return -errno;
		open_index = index;
	}
	got = pread(fd, to, size, offset);
	return got >= 0 ? got : -errno;
}

static int
by_number(const void *a, const void *b)
{
	uint32_t	x = ((const GlMapEntry *) a)->number;
	uint32_t	y = ((const GlMapEntry *) b)->number;

	return x < y ? -1 : x > y;
}

static void
read_headers(void)
{
	DIR		   *dir = opendir(folder);
	struct dirent *entry;

	if (dir == NULL)
		fail(folder);
	while ((entry = readdir(dir)) != NULL)
	{
		uint32_t	number;
		uint64_t	first_lsn;
		struct stat st;
		GlHeaderCheck check;
		int			fd;

		if (!gl_segment_name_parse(entry->d_name, &number, &first_lsn))
			continue;
		if (map.count == MAX_FILES)
		{
			errno = EFBIG;
			fail(folder);
		}
		fd = open_segment(number, first_lsn);
		if (fd < 0 || pread(fd, buffer, GL_BLOCK, 0) != GL_BLOCK || fstat(fd, &st) != 0)
			fail(entry->d_name);
		close(fd);
		check = gl_segment_header_check((GlSegmentHeader *) buffer);
		if (check != GL_HEADER_OK)
		{
			printf("verdict bad file %s: %s\n", entry->d_name, gl_header_check_name(check));
			exit(0);
		}
		gl_map_entry_from_header(&entries[map.count++], (GlSegmentHeader *) buffer, st.st_size);
	}
	closedir(dir);
	qsort(entries, map.count, sizeof(GlMapEntry), by_number);
}

static void
show(const GlWalkRecord *record)
{
	const char *payload = (const char *) record->payload;
	const char *colon;
	uint32_t	letters;
	char		letter = '-';

	if (record->header->kind != GL_RECORD_DATA)
		return;
	colon = memchr(payload, ':', record->payload_size);
	if (colon == NULL)
	{
		printf("%" PRIX64 "/%" PRIX64 " ? 0 ?\n", record->lsn >> 32, record->lsn & 0xFFFFFFFF);
		return;
	}
	letters = record->payload_size - (uint32_t) (colon + 1 - payload);
	for (uint32_t i = 0; i < letters; i++)
	{
		if (i == 0)
			letter = colon[1];
		else if (colon[1 + i] != letter)
			letter = '?';
	}
	printf("%" PRIX64 "/%" PRIX64 " %.*s %u %c\n", record->lsn >> 32, record->lsn & 0xFFFFFFFF,
		   (int) (colon - payload), payload, letters, letter);
}

int
main(int argc, char **argv)
{
	GlMapFault	fault;
	GlRecoveryResult result;
	GlWalk		walk;
	GlWalkRecord record;
	GlWalkStatus status;

	if (argc != 2)
	{
		fprintf(stderr, "usage: logcheck FOLDER\n");
		return 2;
	}
	folder = argv[1];
	read_headers();
	gl_map_finish(&map, &fault);
	gl_recovery_run(&map, &fault, false, map.count > 0 ? entries[map.count - 1].segment_size : GL_SEGMENT_SIZE_MIN,
					read_segment, NULL, buffer, BUFFER_SIZE, NULL, &result);

	if (map.count > 0)
	{
		gl_walk_init(&walk, &map, read_segment, NULL, buffer, BUFFER_SIZE,
					 entries[0].first_lsn, result.end_lsn);
		while ((status = gl_walk_next(&walk, &record)) == GL_WALK_RECORD)
			show(&record);
		if (status != GL_WALK_END)
		{
			printf("verdict stopped at %" PRIX64 "/%" PRIX64 ": %s\n", walk.lsn >> 32,
				   walk.lsn & 0xFFFFFFFF, gl_record_check_name(walk.check));
			return 0;
		}
	}
	printf("verdict %s %" PRIX64 "/%" PRIX64 "\n", gl_recovery_verdict_name(result.verdict),
		   result.end_lsn >> 32, result.end_lsn & 0xFFFFFFFF);
	return 0;
}
