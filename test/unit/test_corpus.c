/*-------------------------------------------------------------------------
 *
 * test_corpus.c
 *		The fuzz targets over their corpus, without an engine.
 *
 * Each file of corpus/TARGET goes through fuzz_TARGET.c, whole and cut short.  What
 * a fuzzer has found once stays there.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST		(1 << 17)

typedef int (*Target) (const uint8_t *data, size_t size);

extern int	fuzz_segment_header(const uint8_t *data, size_t size);
extern int	fuzz_walk(const uint8_t *data, size_t size);
extern int	fuzz_recovery(const uint8_t *data, size_t size);

/* The input lies at the end of its memory, so that a look beyond it is seen. */
static void
feed(Target target, const uint8_t *data, size_t size)
{
	uint8_t    *copy = malloc(size + 1);

	memcpy(copy + 1, data, size);
	assert_int_equal(target(copy + 1, size), 0);
	free(copy);
}

static void
feed_folder(const char *name, Target target)
{
	static uint8_t data[LARGEST];
	char		path[4096];
	DIR		   *dir;
	struct dirent *entry;
	int			files = 0;

	snprintf(path, sizeof(path), "%s/%s", CORPUS, name);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL)
	{
		FILE	   *file;
		size_t		size;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", CORPUS, name, entry->d_name);
		file = fopen(path, "rb");
		assert_non_null(file);
		size = fread(data, 1, sizeof(data), file);
		fclose(file);
		feed(target, data, size);
		feed(target, data, size / 2);
		files++;
	}
	closedir(dir);
	assert_true(files > 0);
	feed(target, data, 0);
}

static void
corpus_segment_header(void **state)
{
	(void) state;
	feed_folder("segment_header", fuzz_segment_header);
}

static void
corpus_walk(void **state)
{
	(void) state;
	feed_folder("walk", fuzz_walk);
}

static void
corpus_recovery(void **state)
{
	(void) state;
	feed_folder("recovery", fuzz_recovery);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(corpus_segment_header),
		cmocka_unit_test(corpus_walk),
		cmocka_unit_test(corpus_recovery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
