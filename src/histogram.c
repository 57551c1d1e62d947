/*-------------------------------------------------------------------------
 *
 * histogram.c
 *		Log-linear histogram with at most 2 % relative error, lock-free.
 *
 * The bucket of a value is read off its bits: below 64 the value itself; above,
 * the position of the highest bit picks one of the powers of two, and the five
 * bits after it one of its 32 equal parts.  So recording costs a count of
 * leading zeros and a shift, no search, and all histograms have the same bounds
 * and can be added bucket by bucket.
 *
 * All accesses are relaxed: each counter is exact by itself, and a reader that
 * looks while others record sees some of the counters a moment earlier than
 * others.  The number of values is not kept but added up from the buckets, which
 * saves the recorders one contended cache line.
 *
 *-------------------------------------------------------------------------
 */
#include "histogram.h"

#include <assert.h>

/* A histogram lies in shared memory: its atomics must not hide a lock. */
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics are not lock-free");
static_assert(sizeof(_Atomic uint64_t) == sizeof(uint64_t), "64-bit atomics are padded");

#define LINEAR_BITS		6		/* values below 2^6 have a bucket each */
#define LINEAR_VALUES	(UINT32_C(1) << LINEAR_BITS)
#define PARTS_BITS		5		/* buckets a power of two: 2^5 */
#define PARTS			(UINT32_C(1) << PARTS_BITS)

static_assert(GL_HISTOGRAM_BUCKETS ==
			  LINEAR_VALUES + (GL_HISTOGRAM_BITS - LINEAR_BITS) * PARTS,
			  "bucket count does not match the layout");

#define LOAD(object)	atomic_load_explicit(&(object), memory_order_relaxed)
#define STORE(object, value) \
	atomic_store_explicit(&(object), (value), memory_order_relaxed)
#define ADD(object, value) \
	atomic_fetch_add_explicit(&(object), (value), memory_order_relaxed)

static void
raise_max(GlHistogram *histogram, uint64_t value)
{
	uint64_t	seen = LOAD(histogram->max);

	while (value > seen &&
		   !atomic_compare_exchange_weak_explicit(&histogram->max, &seen, value,
												  memory_order_relaxed,
												  memory_order_relaxed))
		;						/* seen was reloaded */
}

void
gl_histogram_reset(GlHistogram *histogram)
{
	for (uint32_t i = 0; i < GL_HISTOGRAM_BUCKETS; i++)
		STORE(histogram->buckets[i], 0);
	STORE(histogram->sum, 0);
	STORE(histogram->max, 0);
}

void
gl_histogram_record(GlHistogram *histogram, uint64_t value)
{
	/* First the maximum: percentiles are cut off at it. */
	raise_max(histogram, value);
	ADD(histogram->sum, value);
	ADD(histogram->buckets[gl_histogram_bucket(value)], 1);
}

void
gl_histogram_merge(GlHistogram *to, const GlHistogram *from)
{
	raise_max(to, LOAD(from->max));
	ADD(to->sum, LOAD(from->sum));
	for (uint32_t i = 0; i < GL_HISTOGRAM_BUCKETS; i++)
	{
		uint64_t	count = LOAD(from->buckets[i]);

		if (count > 0)
			ADD(to->buckets[i], count);
	}
}

uint64_t
gl_histogram_count(const GlHistogram *histogram)
{
	uint64_t	count = 0;

	for (uint32_t i = 0; i < GL_HISTOGRAM_BUCKETS; i++)
		count += LOAD(histogram->buckets[i]);
	return count;
}

uint64_t
gl_histogram_max(const GlHistogram *histogram)
{
	return LOAD(histogram->max);
}

double
gl_histogram_mean(const GlHistogram *histogram)
{
	uint64_t	count = gl_histogram_count(histogram);

	return count == 0 ? 0.0 : (double) LOAD(histogram->sum) / (double) count;
}

uint64_t
gl_histogram_percentile(const GlHistogram *histogram, double fraction)
{
	uint64_t	count = gl_histogram_count(histogram);
	uint64_t	max = LOAD(histogram->max);
	uint64_t	below = 0;
	uint64_t	rank;
	double		exact;

	if (count == 0)
		return 0;

	/*
	 * Nearest rank: the smallest rank that is at least fraction * count.  The
	 * product is eased by a little more than its rounding error, else the 7th
	 * percentile of 100 values would be the 8th value.
	 */
	exact = fraction * (double) count * (1.0 - 1e-14);
	rank = exact <= 1.0 ? 1 : (uint64_t) exact;
	if ((double) rank < exact)
		rank++;
	if (rank > count)
		rank = count;

	for (uint32_t i = 0; i < GL_HISTOGRAM_BUCKETS; i++)
	{
		below += LOAD(histogram->buckets[i]);
		if (below >= rank)
		{
			uint64_t	low = gl_histogram_bucket_low(i);
			uint64_t	high = gl_histogram_bucket_high(i);
			uint64_t	middle;

			/* The last bucket is open: if it overflowed, only the maximum is known. */
			if (i == GL_HISTOGRAM_BUCKETS - 1)
			{
				high = UINT64_C(1) << GL_HISTOGRAM_BITS;
				if (max >= high)
					return max;
			}
			middle = low + (high - low - 1) / 2;
			return middle < max ? middle : max;
		}
	}

	/* Somebody reset it meanwhile. */
	return max;
}

uint32_t
gl_histogram_bucket(uint64_t value)
{
	uint32_t	shift;

	if (value < LINEAR_VALUES)
		return (uint32_t) value;
	if (value >> GL_HISTOGRAM_BITS != 0)
		return GL_HISTOGRAM_BUCKETS - 1;

	/*
	 * Shift until the highest bit and the PARTS_BITS after it are left: PARTS
	 * <= value >> shift < 2 * PARTS.  The shift is 1 for the first power of
	 * two above the linear part.
	 */
	shift = 63 - (uint32_t) __builtin_clzll(value) - PARTS_BITS;
	return LINEAR_VALUES + (shift - 1) * PARTS + ((uint32_t) (value >> shift) - PARTS);
}

uint64_t
gl_histogram_bucket_low(uint32_t bucket)
{
	uint32_t	shift;

	assert(bucket < GL_HISTOGRAM_BUCKETS);
	if (bucket < LINEAR_VALUES)
		return bucket;
	shift = (bucket - LINEAR_VALUES) / PARTS + 1;
	return (uint64_t) ((bucket - LINEAR_VALUES) % PARTS + PARTS) << shift;
}

/* The last bucket takes all that is larger: its high is UINT64_MAX. */
uint64_t
gl_histogram_bucket_high(uint32_t bucket)
{
	return bucket >= GL_HISTOGRAM_BUCKETS - 1 ? UINT64_MAX :
		gl_histogram_bucket_low(bucket + 1);
}
