/*-------------------------------------------------------------------------
 *
 * histogram.h
 *		Log-linear histogram with at most 2 % relative error, lock-free.
 *
 * Values are unsigned 64-bit integers of any unit.  Below 64 every value has a
 * bucket of its own; above, each power of two is cut into 32 equal buckets, so
 * a bucket is at most 1/32 of its value wide and its middle at most 1.6 % off.
 * Values of 2^GL_HISTOGRAM_BITS and more fall into the last bucket.
 *
 * Recording is two relaxed atomic additions and a rare maximum; reading while
 * others record gives a result that is a moment's blur, never torn.
 *
 * Pure: lives in shared memory as well as on a stack.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_HISTOGRAM_H
#define GROUPLOG_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define GL_HISTOGRAM_BITS		44	/* 2^44 ns are almost five hours */
#define GL_HISTOGRAM_BUCKETS	(64 + (GL_HISTOGRAM_BITS - 6) * 32)

typedef struct GlHistogram
{
	_Atomic uint64_t sum;
	_Atomic uint64_t max;
	_Atomic uint64_t buckets[GL_HISTOGRAM_BUCKETS];
} GlHistogram;

extern void gl_histogram_reset(GlHistogram *histogram);
extern void gl_histogram_record(GlHistogram *histogram, uint64_t value);

/* Add everything in from to to. */
extern void gl_histogram_merge(GlHistogram *to, const GlHistogram *from);

extern uint64_t gl_histogram_count(const GlHistogram *histogram);
extern uint64_t gl_histogram_max(const GlHistogram *histogram);
extern double gl_histogram_mean(const GlHistogram *histogram);

/*
 * The value below or at which a fraction (0 < fraction <= 1) of the recorded
 * values lie, by nearest rank; the middle of its bucket, never above the
 * maximum.  0 when nothing was recorded.
 */
extern uint64_t gl_histogram_percentile(const GlHistogram *histogram, double fraction);

/* Bucket i holds low <= value < high. */
extern uint32_t gl_histogram_bucket(uint64_t value);
extern uint64_t gl_histogram_bucket_low(uint32_t bucket);
extern uint64_t gl_histogram_bucket_high(uint32_t bucket);

#endif							/* GROUPLOG_HISTOGRAM_H */
