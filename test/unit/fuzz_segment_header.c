/*-------------------------------------------------------------------------
 *
 * fuzz_segment_header.c
 *		Any bytes as a segment's header and as its name.
 *
 * The input is the beginning of a header block; zeros follow.  It is tried as it
 * is and with its checksum put right, so that the checks behind that are met, too.
 * A header that passes must make a map that finds nothing out of range.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#include <stdio.h>

#include "logmap.h"

static void
try_header(const GlSegmentHeader *header)
{
	GlHeaderCheck check = gl_segment_header_check(header);
	GlMapEntry	entry;
	GlLogMap	map = {&entry, 1};
	GlMapFault	fault;
	uint64_t	lsn = header->first_lsn;
	uint32_t	index;

	(void) gl_header_check_name(check);

	/* whatever it says, a map can be made of it */
	gl_map_entry_from_header(&entry, header, UINT64_MAX);
	gl_map_finish(&map, &fault);
	(void) gl_map_lost(&map, lsn);
	if (gl_map_find(&map, &lsn, &index))
		FUZZ_INSIST(index == 0 && lsn >= entry.base && lsn < entry.end);
	if (check != GL_HEADER_OK)
		return;

	FUZZ_INSIST(entry.base == header->first_lsn);
	FUZZ_INSIST(entry.end > entry.base && entry.end - entry.base <= header->segment_size);
	FUZZ_INSIST(gl_segment_offset(header->first_lsn, entry.end) <= header->segment_size + 2 * GL_BLOCK);
	FUZZ_INSIST(header->ring_size <= header->segment_size && header->end_before <= header->first_lsn);
}

static void
try_name(const uint8_t *data, size_t size)
{
	char		name[64];
	char		again[GL_SEGMENT_NAME_SIZE];
	uint32_t	number;
	uint64_t	first_lsn;

	if (size >= sizeof(name))
		size = sizeof(name) - 1;
	memcpy(name, data, size);
	name[size] = '\0';
	if (!gl_segment_name_parse(name, &number, &first_lsn))
		return;
	gl_segment_name(again, number, first_lsn);
	FUZZ_INSIST(strcmp(name, again) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static GlSegmentHeader header;

	try_name(data, size);
	memset(&header, 0, sizeof(header));
	memcpy(&header, data, size < sizeof(header) ? size : sizeof(header));
	try_header(&header);
	header.crc = GL_CRC32C_FINAL(gl_crc32c(GL_CRC32C_INIT, &header, offsetof(GlSegmentHeader, crc)));
	try_header(&header);
	gl_segment_header_seal(&header);
	try_header(&header);
	return 0;
}
