/*-------------------------------------------------------------------------
 *
 * test_segment_format.c
 *		The segment's name and header block, byte by byte.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "crc32c.h"
#include "segment_format.h"

/* computed by another program from the table in segment_format.h */
static const uint8_t golden_header[128] = {
	0x67, 0x72, 0x6F, 0x75, 0x70, 0x6C, 0x6F, 0x67, /* magic */
	0x01, 0x00, 0x00, 0x00,		/* version */
	0x00, 0x10, 0x00, 0x00,		/* header_size */
	0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, /* segment_size */
	0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, /* ring_size */
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* system_identifier */
	0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* log_id */
	0x24, 0x23, 0x22, 0x21,		/* number */
	0x34, 0x33, 0x32, 0x31,		/* timeline */
	0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, /* first_lsn */
	0xE0, 0xFF, 0xFF, 0x03, 0x00, 0x00, 0x00, 0x00, /* end_before */
	0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51, /* epoch */
	0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61, /* nonce */
	0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x71, /* nonce_before */
	0x88, 0x87, 0x86, 0x85, 0x84, 0x83, 0x82, 0x81, /* next_xid */
	0x98, 0x97, 0x96, 0x95, 0x94, 0x93, 0x92, 0x91, /* compatible */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* incompatible */
	0xA7, 0xA6, 0xA5, 0xA4, 0xA3, 0xA2, 0xA1, 0x00	/* created */
};

#define GOLDEN_CRC	UINT32_C(0x5EFFEDE7)

static GlSegmentHeader
golden(void)
{
	GlSegmentHeader header;

	memset(&header, 0, sizeof(header));
	header.segment_size = UINT64_C(64) << 20;
	header.ring_size = UINT64_C(4) << 20;
	header.system_identifier = UINT64_C(0x0102030405060708);
	header.log_id = UINT64_C(0x1112131415161718);
	header.number = 0x21222324;
	header.timeline = 0x31323334;
	header.first_lsn = UINT64_C(64) << 20;
	header.end_before = (UINT64_C(64) << 20) - 32;
	header.epoch = UINT64_C(0x5152535455565758);
	header.nonce = UINT64_C(0x6162636465666768);
	header.nonce_before = UINT64_C(0x7172737475767778);
	header.next_xid = UINT64_C(0x8182838485868788);
	header.compatible = UINT64_C(0x9192939495969798);
	header.created = INT64_C(0x00A1A2A3A4A5A6A7);
	gl_segment_header_seal(&header);
	return header;
}

/* A CRC that is right, whatever the fields say. */
static void
reseal(GlSegmentHeader *header)
{
	header->crc = GL_CRC32C_FINAL(gl_crc32c(GL_CRC32C_INIT, header,
											offsetof(GlSegmentHeader, crc)));
}

static void
test_golden_bytes(void **state)
{
	GlSegmentHeader header = golden();
	const uint8_t *raw = (const uint8_t *) &header;

	(void) state;
	assert_memory_equal(raw, golden_header, sizeof(golden_header));
	for (size_t i = sizeof(golden_header); i < 4092; i++)
		assert_int_equal(raw[i], 0);
	assert_int_equal(header.crc, GOLDEN_CRC);
	assert_int_equal(raw[4092] | raw[4093] << 8 | raw[4094] << 16 | (uint32_t) raw[4095] << 24,
					 GOLDEN_CRC);
	assert_int_equal(gl_segment_header_check(&header), GL_HEADER_OK);
}

/* The CRC covers all 4,092 bytes before it. */
static void
test_every_header_byte(void **state)
{
	(void) state;
	for (size_t i = 0; i < GL_BLOCK; i++)
	{
		GlSegmentHeader header = golden();

		((uint8_t *) &header)[i] ^= 0x10;
		assert_int_equal(gl_segment_header_check(&header),
						 i < 8 ? GL_HEADER_BAD_MAGIC : GL_HEADER_BAD_CRC);
	}
}

#define SET(field, value)	offsetof(GlSegmentHeader, field), \
							sizeof(((GlSegmentHeader *) 0)->field), (uint64_t) (value)

static void
test_fields(void **state)
{
	static const struct
	{
		size_t		offset;
		size_t		size;
		uint64_t	value;
		GlHeaderCheck expect;
	}			cases[] = {
		{SET(version, 0), GL_HEADER_BAD_VERSION},
		{SET(version, 2), GL_HEADER_BAD_VERSION},
		{SET(header_size, 8192), GL_HEADER_BAD_VERSION},
		{SET(incompatible, 1), GL_HEADER_UNSUPPORTED},
		{SET(incompatible, UINT64_C(1) << 63), GL_HEADER_UNSUPPORTED},
		{SET(compatible, UINT64_MAX), GL_HEADER_OK},
		{SET(zero, 1), GL_HEADER_OK},
		{SET(segment_size, 0), GL_HEADER_BAD_FIELD},
		{SET(segment_size, GL_SEGMENT_SIZE_MIN / 2), GL_HEADER_BAD_FIELD},
		{SET(segment_size, GL_SEGMENT_SIZE_MAX), GL_HEADER_OK},
		{SET(segment_size, GL_SEGMENT_SIZE_MAX * 2), GL_HEADER_BAD_FIELD},
		{SET(segment_size, (UINT64_C(64) << 20) + 4096), GL_HEADER_BAD_FIELD},
		{SET(segment_size, UINT64_C(2) << 20), GL_HEADER_BAD_FIELD},	/* ring > segment */
		{SET(ring_size, 0), GL_HEADER_BAD_FIELD},
		{SET(ring_size, GL_RING_SIZE_MIN), GL_HEADER_OK},
		{SET(ring_size, GL_RING_SIZE_MIN / 2), GL_HEADER_BAD_FIELD},
		{SET(ring_size, UINT64_C(64) << 20), GL_HEADER_OK},
		{SET(ring_size, UINT64_C(128) << 20), GL_HEADER_BAD_FIELD},
		{SET(ring_size, 3 << 20), GL_HEADER_BAD_FIELD},
		{SET(ring_size, UINT64_MAX), GL_HEADER_BAD_FIELD},
		{SET(number, 0), GL_HEADER_BAD_FIELD},
		{SET(number, UINT32_MAX), GL_HEADER_OK},
		{SET(first_lsn, 0), GL_HEADER_BAD_FIELD},
		{SET(first_lsn, (UINT64_C(64) << 20) + 32), GL_HEADER_OK},
		{SET(first_lsn, (UINT64_C(64) << 20) + 16), GL_HEADER_BAD_FIELD},
		{SET(first_lsn, GL_LSN_MAX), GL_HEADER_OK},
		{SET(first_lsn, GL_LSN_MAX + 32), GL_HEADER_BAD_FIELD},
		{SET(first_lsn, UINT64_MAX - 31), GL_HEADER_BAD_FIELD},
		{SET(end_before, 0), GL_HEADER_OK},
		{SET(end_before, UINT64_C(64) << 20), GL_HEADER_OK},
		{SET(end_before, (UINT64_C(64) << 20) + 32), GL_HEADER_BAD_FIELD},
		{SET(end_before, 33), GL_HEADER_BAD_FIELD}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		GlSegmentHeader header = golden();

		memcpy((uint8_t *) &header + cases[i].offset, &cases[i].value,
			   cases[i].size < sizeof(uint64_t) ? cases[i].size : sizeof(uint64_t));
		reseal(&header);
		if (gl_segment_header_check(&header) != cases[i].expect)
			fail_msg("case %zu: %s", i, gl_header_check_name(gl_segment_header_check(&header)));
	}
}

static void
test_all_zeros_and_all_ones(void **state)
{
	GlSegmentHeader header;

	(void) state;
	memset(&header, 0, sizeof(header));
	assert_int_equal(gl_segment_header_check(&header), GL_HEADER_BAD_MAGIC);
	memset(&header, 0xFF, sizeof(header));
	assert_int_equal(gl_segment_header_check(&header), GL_HEADER_BAD_MAGIC);
}

static void
test_name(void **state)
{
	char		name[GL_SEGMENT_NAME_SIZE];
	uint32_t	number;
	uint64_t	lsn;

	(void) state;
	gl_segment_name(name, 0x1A, UINT64_C(0x4000000));
	assert_string_equal(name, "0000001A-0000000004000000.seg");
	gl_segment_name(name, UINT32_MAX, UINT64_MAX);
	assert_string_equal(name, "FFFFFFFF-FFFFFFFFFFFFFFFF.seg");
	assert_true(gl_segment_name_parse(name, &number, &lsn));
	assert_int_equal(number, UINT32_MAX);
	assert_int_equal(lsn, UINT64_MAX);
	assert_true(gl_segment_name_parse("0000001A-0000000004000000.seg", &number, &lsn));
	assert_int_equal(number, 0x1A);
	assert_int_equal(lsn, 0x4000000);
}

static void
test_names_refused(void **state)
{
	static const char *const names[] = {
		"", "0", "0000001A", "0000001A-", "0000001A-0000000004000000",
		"0000001A-0000000004000000.se", "0000001A-0000000004000000.segx",
		"0000001A-0000000004000000.seg ", "0000001A-0000000004000000.SEG",
		"0000001a-0000000004000000.seg", "0000001A_0000000004000000.seg",
		"000001A-0000000004000000.seg", "00000001A-0000000004000000.seg",
		"0000001A-000000004000000.seg", "0000001A-00000000004000000.seg",
		"0000001A-000000000400000g.seg", "00000000-0000000004000000.seg",
		"+000001A-0000000004000000.seg", " 000001A-0000000004000000.seg",
		"0x00001A-0000000004000000.seg", "0000001A-0000000004000000.seg.tmp"
	};

	(void) state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		uint32_t	number = 42;
		uint64_t	lsn = 42;

		if (gl_segment_name_parse(names[i], &number, &lsn))
			fail_msg("\"%s\" was taken for a segment", names[i]);
		assert_int_equal(number, 42);
		assert_int_equal(lsn, 42);
	}
}

static void
test_positions(void **state)
{
	(void) state;
	assert_int_equal(gl_block_floor(4095), 0);
	assert_int_equal(gl_block_floor(4096), 4096);
	assert_int_equal(gl_block_ceil(4096), 4096);
	assert_int_equal(gl_block_ceil(4097), 8192);
	assert_int_equal(gl_segment_full_end(0x100000, 0x100000), 0x200000);
	assert_int_equal(gl_segment_full_end(0x1FFFE0, 0x100000), 0x200000);
	/* log bytes begin behind the header block ... */
	assert_int_equal(gl_segment_offset(0x100000, 0x100000), 4096);
	assert_int_equal(gl_segment_offset(0x100000, 0x1FFFE0), 4096 + 0xFFFE0);
	/* ... with the whole first block of a continuation */
	assert_int_equal(gl_segment_offset(0x101020, 0x101000), 4096);
	assert_int_equal(gl_segment_offset(0x101020, 0x101020), 4096 + 0x20);
}

static void
test_names_differ(void **state)
{
	(void) state;
	for (int i = GL_HEADER_OK; i <= GL_HEADER_BAD_FIELD; i++)
	{
		assert_string_not_equal(gl_header_check_name((GlHeaderCheck) i), "unknown");
		for (int j = GL_HEADER_OK; j < i; j++)
			assert_string_not_equal(gl_header_check_name((GlHeaderCheck) i),
									gl_header_check_name((GlHeaderCheck) j));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_bytes),
		cmocka_unit_test(test_every_header_byte),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_all_zeros_and_all_ones),
		cmocka_unit_test(test_name),
		cmocka_unit_test(test_names_refused),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_names_differ)
	};

	return cmocka_run_group_tests_name("segment format", tests, NULL, NULL);
}
