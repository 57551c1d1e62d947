/*-------------------------------------------------------------------------
 *
 * test_histogram.c
 *		Unit tests of src/histogram.c.
 *
 * Percentiles are held against exact ones, from the sorted values by nearest
 * rank; the bounds of the buckets against the definition in the header.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "histogram.h"

#define MAX_ERROR	0.02

static GlHistogram histogram;
static GlHistogram other;

static uint64_t random_state;

static double
random_unit(void)				/* 0 < x < 1 */
{
	uint64_t	x = (random_state += UINT64_C(0x9E3779B97F4A7C15));

	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	x ^= x >> 31;
	return ((double) (x >> 11) + 0.5) / 9007199254740992.0;
}

static int
compare_values(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* Record the values and hold count, mean, maximum and percentiles against them. */
static void
check_values(uint64_t *values, size_t count)
{
	static const double fractions[] = {0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0};
	double		sum = 0;

	gl_histogram_reset(&histogram);
	for (size_t i = 0; i < count; i++)
	{
		gl_histogram_record(&histogram, values[i]);
		sum += (double) values[i];
	}
	qsort(values, count, sizeof(uint64_t), compare_values);

	assert_int_equal(gl_histogram_count(&histogram), count);
	assert_int_equal(gl_histogram_max(&histogram), values[count - 1]);
	assert_true(fabs(gl_histogram_mean(&histogram) - sum / (double) count) <=
				sum / (double) count * 1e-9);

	for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++)
	{
		size_t		rank = (size_t) ceil(fractions[i] * (double) count - 1e-9);
		uint64_t	exact = values[rank == 0 ? 0 : rank - 1];
		uint64_t	found = gl_histogram_percentile(&histogram, fractions[i]);
		double		error = fabs((double) found - (double) exact);

		assert_true(found <= values[count - 1]);
		if (error > MAX_ERROR * (double) exact)
			fail_msg("percentile %g of %zu values: exact %llu, found %llu", fractions[i], count,
					 (unsigned long long) exact, (unsigned long long) found);
	}
}

#define VALUES	100000

static uint64_t values[VALUES];

static void
test_empty(void **state)
{
	(void) state;
	gl_histogram_reset(&histogram);
	assert_int_equal(gl_histogram_count(&histogram), 0);
	assert_int_equal(gl_histogram_max(&histogram), 0);
	assert_int_equal(gl_histogram_percentile(&histogram, 0.5), 0);
	assert_true(gl_histogram_mean(&histogram) == 0.0);
}

static void
test_constant(void **state)
{
	static const uint64_t constants[] = {0, 1, 63, 64, 65, 127, 1000, 123456789, (UINT64_C(1) << 44) - 1};

	(void) state;
	for (size_t c = 0; c < sizeof(constants) / sizeof(constants[0]); c++)
	{
		for (size_t i = 0; i < 1000; i++)
			values[i] = constants[c];
		check_values(values, 1000);
	}
}

static void
test_uniform(void **state)
{
	static const double tops[] = {50, 100, 5000, 1e6, 1e12};

	(void) state;
	for (size_t t = 0; t < sizeof(tops) / sizeof(tops[0]); t++)
	{
		for (size_t i = 0; i < VALUES; i++)
			values[i] = (uint64_t) (random_unit() * tops[t]);
		check_values(values, VALUES);
	}
}

static void
test_exponential(void **state)
{
	(void) state;
	for (double mean = 1; mean < 1e9; mean *= 30)
	{
		for (size_t i = 0; i < VALUES; i++)
			values[i] = (uint64_t) (-log(random_unit()) * mean);
		check_values(values, VALUES);
	}
}

static void
test_lognormal(void **state)
{
	(void) state;
	for (double sigma = 0.1; sigma < 3; sigma *= 2)
	{
		for (size_t i = 0; i < VALUES; i++)
		{
			double		normal = sqrt(-2 * log(random_unit())) * cos(2 * M_PI * random_unit());

			values[i] = (uint64_t) (2e5 * exp(sigma * normal));
		}
		check_values(values, VALUES);
	}
}

/* Pareto with exponent 1.1: a mean made of a few values, up to the top. */
static void
test_heavy_tail(void **state)
{
	(void) state;
	for (size_t i = 0; i < VALUES; i++)
	{
		double		value = 100 / pow(random_unit(), 1 / 1.1);

		values[i] = (uint64_t) fmin(value, 1e13);
	}
	check_values(values, VALUES);
}

static void
test_tiny_counts(void **state)
{
	(void) state;
	for (size_t count = 1; count <= 20; count++)
		for (int repeat = 0; repeat < 50; repeat++)
		{
			for (size_t i = 0; i < count; i++)
				values[i] = (uint64_t) (-log(random_unit()) * 3000);
			check_values(values, count);
		}
}

/* Small values are exact, whatever the fraction. */
static void
test_nearest_rank(void **state)
{
	(void) state;
	gl_histogram_reset(&histogram);
	for (uint64_t value = 1; value <= 50; value++)
	{
		gl_histogram_record(&histogram, value);
		gl_histogram_record(&histogram, value);
	}
	for (int percent = 1; percent <= 100; percent++)
		assert_int_equal(gl_histogram_percentile(&histogram, percent / 100.0), (percent + 1) / 2);
	assert_int_equal(gl_histogram_percentile(&histogram, 1e-12), 1);
	assert_int_equal(gl_histogram_percentile(&histogram, 2.0), 50);
}

static void
test_buckets_are_a_partition(void **state)
{
	(void) state;
	assert_int_equal(gl_histogram_bucket_low(0), 0);
	assert_true(gl_histogram_bucket_high(GL_HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
	for (uint32_t i = 0; i < GL_HISTOGRAM_BUCKETS; i++)
	{
		uint64_t	low = gl_histogram_bucket_low(i);
		uint64_t	high = gl_histogram_bucket_high(i);

		assert_true(low < high);
		if (i > 0)
			assert_true(low == gl_histogram_bucket_high(i - 1));
		assert_int_equal(gl_histogram_bucket(low), i);
		assert_int_equal(gl_histogram_bucket(low + (high - low) / 2), i);
		assert_int_equal(gl_histogram_bucket(high - 1), i);
		if (i < 64)
			assert_true(high == low + 1);
		else if (i < GL_HISTOGRAM_BUCKETS - 1)
			assert_true((high - low) * 32 <= low);
	}
	assert_true(gl_histogram_bucket_low(GL_HISTOGRAM_BUCKETS - 1) < UINT64_C(1) << GL_HISTOGRAM_BITS);
}

static void
test_too_large(void **state)
{
	uint64_t	top = UINT64_C(1) << GL_HISTOGRAM_BITS;

	(void) state;
	assert_int_equal(gl_histogram_bucket(top - 1), GL_HISTOGRAM_BUCKETS - 1);
	assert_int_equal(gl_histogram_bucket(top), GL_HISTOGRAM_BUCKETS - 1);
	assert_int_equal(gl_histogram_bucket(UINT64_MAX), GL_HISTOGRAM_BUCKETS - 1);

	gl_histogram_reset(&histogram);
	gl_histogram_record(&histogram, 5);
	gl_histogram_record(&histogram, top * 16);
	assert_int_equal(gl_histogram_percentile(&histogram, 0.5), 5);
	assert_true(gl_histogram_percentile(&histogram, 1.0) == top * 16);
	assert_true(gl_histogram_max(&histogram) == top * 16);
}

static void
test_merge(void **state)
{
	static GlHistogram both;

	(void) state;
	gl_histogram_reset(&histogram);
	gl_histogram_reset(&other);
	gl_histogram_reset(&both);
	for (int i = 0; i < 10000; i++)
	{
		uint64_t	value = (uint64_t) (-log(random_unit()) * (i % 3 == 0 ? 100 : 100000));

		gl_histogram_record(i % 3 == 0 ? &histogram : &other, value);
		gl_histogram_record(&both, value);
	}
	gl_histogram_merge(&histogram, &other);

	assert_int_equal(gl_histogram_count(&histogram), 10000);
	assert_int_equal(gl_histogram_max(&histogram), gl_histogram_max(&both));
	assert_true(gl_histogram_mean(&histogram) == gl_histogram_mean(&both));
	for (uint32_t i = 0; i < GL_HISTOGRAM_BUCKETS; i++)
		assert_int_equal(histogram.buckets[i], both.buckets[i]);

	/* Adding nothing changes nothing. */
	gl_histogram_reset(&other);
	gl_histogram_merge(&histogram, &other);
	assert_int_equal(gl_histogram_count(&histogram), 10000);
	assert_int_equal(gl_histogram_max(&histogram), gl_histogram_max(&both));
}

#define THREADS		4
#define A_THREAD	200000

static _Atomic bool stop_reading;

static void *
record_values(void *arg)
{
	uint64_t	first = *(uint64_t *) arg;

	for (uint64_t i = 0; i < A_THREAD; i++)
		gl_histogram_record(&histogram, first + i * THREADS);
	return NULL;
}

/* While others record: never more than there is, never beyond the maximum. */
static void *
read_percentiles(void *arg)
{
	uint64_t	before = 0;

	(void) arg;
	while (!stop_reading)
	{
		uint64_t	count = gl_histogram_count(&histogram);

		if (count < before || count > (uint64_t) THREADS * A_THREAD ||
			gl_histogram_percentile(&histogram, 0.99) > gl_histogram_max(&histogram))
			return &histogram;
		before = count;
	}
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t	threads[THREADS];
	pthread_t	reader;
	uint64_t	firsts[THREADS];
	uint64_t	total = (uint64_t) THREADS * A_THREAD;
	void	   *bad;

	(void) state;
	gl_histogram_reset(&histogram);
	stop_reading = false;
	assert_int_equal(pthread_create(&reader, NULL, read_percentiles, NULL), 0);
	for (uint64_t i = 0; i < THREADS; i++)
	{
		firsts[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, record_values, &firsts[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	stop_reading = true;
	assert_int_equal(pthread_join(reader, &bad), 0);
	assert_null(bad);

	/* Together they recorded every number below the total once. */
	assert_int_equal(gl_histogram_count(&histogram), total);
	assert_int_equal(gl_histogram_max(&histogram), total - 1);
	assert_true(gl_histogram_mean(&histogram) == (double) (total - 1) / 2);
	for (uint32_t i = 0; gl_histogram_bucket_high(i) <= total; i++)
		assert_int_equal(histogram.buckets[i],
						 gl_histogram_bucket_high(i) - gl_histogram_bucket_low(i));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_constant),
		cmocka_unit_test(test_uniform),
		cmocka_unit_test(test_exponential),
		cmocka_unit_test(test_lognormal),
		cmocka_unit_test(test_heavy_tail),
		cmocka_unit_test(test_tiny_counts),
		cmocka_unit_test(test_nearest_rank),
		cmocka_unit_test(test_buckets_are_a_partition),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_threads)
	};

	return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
