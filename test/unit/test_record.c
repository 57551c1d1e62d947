/*-------------------------------------------------------------------------
 *
 * test_record.c
 *		The record's bytes, and what its checks refuse.
 *
 * The golden bytes were computed by another program from the table in record.h,
 * so a change of layout, of the order in which things are hashed or of the CRC
 * itself fails here even if sealing and checking still agree.
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
#include "record.h"

static const GlSeed seed = {
	.log_id = UINT64_C(0x1122334455667788),
	.epoch = 7,
	.nonce = UINT64_C(0xA5A5F00D12345678)
};

#define GOLDEN_LSN	UINT64_C(0x0000000123456780)
#define MAX_LENGTH	4096

static const char golden_payload[] = "hello, grouplog";

static const uint8_t golden_header[GL_RECORD_HEADER_SIZE] = {
	0x2F, 0x00, 0x00, 0x00,		/* length 47 */
	0xF9, 0x49, 0x02, 0xA4,		/* crc */
	0xF6, 0xE5, 0xD4, 0xC3, 0xB2, 0xA1, 0x02, 0x00, /* time */
	0x78, 0x69, 0x5A, 0x4B, 0x3C, 0x2D, 0x1E, 0x0F, /* stream */
	0x04, 0x03, 0x02, 0x01,		/* undurable */
	0x01,						/* kind */
	0x01,						/* flags */
	0x83, 0x33					/* check */
};

static GlRecordHeader
unsealed(size_t payload_size)
{
	GlRecordHeader header;

	memset(&header, 0, sizeof(header));
	header.length = (uint32_t) (GL_RECORD_HEADER_SIZE + payload_size);
	header.time = INT64_C(0x0002A1B2C3D4E5F6);
	header.stream = UINT64_C(0x0F1E2D3C4B5A6978);
	header.undurable = 0x01020304;
	header.kind = GL_RECORD_DATA;
	header.flags = GL_RECORD_TEXT;
	return header;
}

static GlRecordHeader
sealed(const void *payload, size_t payload_size)
{
	GlRecordHeader header = unsealed(payload_size);

	gl_record_seal(&header, &seed, GOLDEN_LSN, gl_record_payload_crc(payload, payload_size));
	return header;
}

static void
test_crc_is_castagnoli(void **state)
{
	(void) state;
	assert_int_equal(GL_CRC32C_FINAL(gl_crc32c(GL_CRC32C_INIT, "123456789", 9)), 0xE3069283);
	/* extending is the same as doing it at once */
	assert_int_equal(gl_crc32c(gl_crc32c(GL_CRC32C_INIT, "1234", 4), "56789", 5),
					 gl_crc32c(GL_CRC32C_INIT, "123456789", 9));
	assert_int_equal(gl_record_payload_crc(NULL, 0), GL_CRC32C_INIT);
}

static void
test_golden_bytes(void **state)
{
	GlRecordHeader header = sealed(golden_payload, sizeof(golden_payload) - 1);

	(void) state;
	assert_memory_equal(&header, golden_header, sizeof(header));
}

static void
test_golden_bytes_are_accepted(void **state)
{
	GlRecordHeader header;

	(void) state;
	memcpy(&header, golden_header, sizeof(header));
	assert_int_equal(header.length, 47);
	assert_int_equal(header.time, INT64_C(0x0002A1B2C3D4E5F6));
	assert_int_equal(header.stream, UINT64_C(0x0F1E2D3C4B5A6978));
	assert_int_equal(header.undurable, 0x01020304);
	assert_int_equal(gl_record_check_header(&header, &seed, GOLDEN_LSN, MAX_LENGTH), GL_RECORD_OK);
	assert_true(gl_record_check_crc(&header, &seed, GOLDEN_LSN,
									gl_record_payload_crc(golden_payload, 15)));
}

static void
test_span(void **state)
{
	static const struct
	{
		uint64_t	payload;
		uint64_t	span;
	}			cases[] = {
		{0, 32}, {1, 64}, {32, 64}, {33, 96}, {4064, 4096},
		{UINT64_C(0xFFFFFFFF), UINT64_C(0x100000020)}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(gl_record_span(cases[i].payload), cases[i].span);
}

/*
 * Every bit of the header: the check field covers all but the crc field, and
 * the CRC covers the rest.  So each flipped bit is seen, and by whom is fixed.
 */
static void
test_every_header_bit(void **state)
{
	uint32_t	payload_crc = gl_record_payload_crc(golden_payload, 15);

	(void) state;
	for (int bit = 0; bit < GL_RECORD_HEADER_SIZE * 8; bit++)
	{
		uint8_t		raw[GL_RECORD_HEADER_SIZE];
		GlRecordHeader header;
		bool		in_crc = bit / 8 >= 4 && bit / 8 < 8;
		GlRecordCheck check;

		memcpy(raw, golden_header, sizeof(raw));
		raw[bit / 8] ^= (uint8_t) (1 << (bit % 8));
		memcpy(&header, raw, sizeof(header));

		check = gl_record_check_header(&header, &seed, GOLDEN_LSN, MAX_LENGTH);
		assert_int_equal(check, in_crc ? GL_RECORD_OK : GL_RECORD_BAD_HEADER);
		assert_false(gl_record_check_crc(&header, &seed, GOLDEN_LSN, payload_crc));
	}
}

static void
test_every_payload_bit(void **state)
{
	GlRecordHeader header;

	(void) state;
	memcpy(&header, golden_header, sizeof(header));
	for (int bit = 0; bit < 15 * 8; bit++)
	{
		char		payload[15];

		memcpy(payload, golden_payload, sizeof(payload));
		payload[bit / 8] ^= (char) (1 << (bit % 8));
		assert_false(gl_record_check_crc(&header, &seed, GOLDEN_LSN,
										 gl_record_payload_crc(payload, sizeof(payload))));
	}
}

/* Every bit of seed and LSN counts, in both checksums. */
static void
test_every_seed_bit(void **state)
{
	uint32_t	payload_crc = gl_record_payload_crc(golden_payload, 15);
	GlRecordHeader header;

	(void) state;
	memcpy(&header, golden_header, sizeof(header));
	for (int bit = 0; bit < 64; bit++)
	{
		uint64_t	mask = UINT64_C(1) << bit;
		GlSeed		other[4] = {seed, seed, seed, seed};
		uint64_t	lsn[4] = {GOLDEN_LSN, GOLDEN_LSN, GOLDEN_LSN, GOLDEN_LSN ^ mask};

		other[0].log_id ^= mask;
		other[1].epoch ^= mask;
		other[2].nonce ^= mask;
		for (int i = 0; i < 4; i++)
		{
			assert_int_equal(gl_record_check_header(&header, &other[i], lsn[i], MAX_LENGTH),
							 GL_RECORD_BAD_HEADER);
			assert_false(gl_record_check_crc(&header, &other[i], lsn[i], payload_crc));
		}
	}
}

/* Seal with wrong contents, so that only the rule in question refuses. */
static void
test_order_of_the_checks(void **state)
{
	static const struct
	{
		uint32_t	length;
		uint8_t		kind;
		uint64_t	max_length;
		GlRecordCheck expect;
	}			cases[] = {
		{32, GL_RECORD_DATA, 4096, GL_RECORD_OK},
		{4096, GL_RECORD_DATA, 4096, GL_RECORD_OK},
		{4097, GL_RECORD_DATA, 4096, GL_RECORD_BAD_LENGTH},
		{31, GL_RECORD_DATA, 4096, GL_RECORD_BAD_LENGTH},
		{0, GL_RECORD_DATA, 4096, GL_RECORD_BAD_LENGTH},
		{0x80000000, GL_RECORD_DATA, 4096, GL_RECORD_BAD_LENGTH},
		{0xFFFFFFFF, GL_RECORD_DATA, 4096, GL_RECORD_BAD_LENGTH},
		{0xFFFFFFFF, GL_RECORD_DATA, UINT64_MAX, GL_RECORD_OK},
		{32, GL_RECORD_DATA, 0, GL_RECORD_BAD_LENGTH},
		{64, GL_RECORD_PADDING, 4096, GL_RECORD_OK},
		{32, GL_RECORD_CLOSE, 4096, GL_RECORD_OK},
		{32, GL_RECORD_CONTROL, 4096, GL_RECORD_OK},
		{32, GL_RECORD_COMMIT, 4096, GL_RECORD_OK},
		{32, GL_RECORD_ABORT, 4096, GL_RECORD_OK},
		{32, 0, 4096, GL_RECORD_BAD_KIND},
		{32, GL_RECORD_KIND_LAST + 1, 4096, GL_RECORD_BAD_KIND},
		{32, 255, 4096, GL_RECORD_BAD_KIND},
		{31, 255, 4096, GL_RECORD_BAD_LENGTH}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		GlRecordHeader header = unsealed(0);

		header.length = cases[i].length;
		header.kind = cases[i].kind;
		gl_record_seal(&header, &seed, GOLDEN_LSN, GL_CRC32C_INIT);
		assert_int_equal(gl_record_check_header(&header, &seed, GOLDEN_LSN, cases[i].max_length),
						 cases[i].expect);

		/* and a wrong check field comes before all of that */
		header.check ^= 1;
		assert_int_equal(gl_record_check_header(&header, &seed, GOLDEN_LSN, cases[i].max_length),
						 GL_RECORD_BAD_HEADER);
	}
}

static void
test_zeros_are_empty(void **state)
{
	GlRecordHeader header;

	(void) state;
	memset(&header, 0, sizeof(header));
	assert_int_equal(gl_record_check_header(&header, &seed, GOLDEN_LSN, MAX_LENGTH),
					 GL_RECORD_EMPTY);
	for (int i = 0; i < GL_RECORD_HEADER_SIZE; i++)
	{
		uint8_t		raw[GL_RECORD_HEADER_SIZE] = {0};

		raw[i] = 1;
		memcpy(&header, raw, sizeof(header));
		assert_int_not_equal(gl_record_check_header(&header, &seed, GOLDEN_LSN, MAX_LENGTH),
							 GL_RECORD_EMPTY);
	}
}

static void
test_names_differ(void **state)
{
	(void) state;
	for (int i = GL_RECORD_OK; i <= GL_RECORD_BAD_CRC; i++)
	{
		assert_string_not_equal(gl_record_check_name((GlRecordCheck) i), "unknown");
		for (int j = GL_RECORD_OK; j < i; j++)
			assert_string_not_equal(gl_record_check_name((GlRecordCheck) i),
									gl_record_check_name((GlRecordCheck) j));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc_is_castagnoli),
		cmocka_unit_test(test_golden_bytes),
		cmocka_unit_test(test_golden_bytes_are_accepted),
		cmocka_unit_test(test_span),
		cmocka_unit_test(test_every_header_bit),
		cmocka_unit_test(test_every_payload_bit),
		cmocka_unit_test(test_every_seed_bit),
		cmocka_unit_test(test_order_of_the_checks),
		cmocka_unit_test(test_zeros_are_empty),
		cmocka_unit_test(test_names_differ)
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
