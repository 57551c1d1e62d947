/*-------------------------------------------------------------------------
 *
 * simsectors.h
 *		The bytes of a simulated file: those written, and those on the platter.
 *
 * A write changes the cache and makes its sectors dirty; a sync brings them to
 * the disk.  A power cut takes each dirty sector or leaves it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMSECTORS_H
#define SIMSECTORS_H

#include <stdlib.h>
#include <string.h>

#include "simchance.h"

#define SECTOR			512
#define SECTOR_PATTERNS	8

typedef struct SimSectors
{
	uint8_t    *disk;			/* what is on the platter */
	uint8_t    *cache;			/* what was written */
	uint8_t    *dirty;			/* a byte a sector */
	uint32_t	dirty_count;
	uint32_t	count;			/* of sectors */
} SimSectors;

static inline void
sectors_free(SimSectors *data)
{
	free(data->disk);
	free(data->cache);
	free(data->dirty);
	memset(data, 0, sizeof(*data));
}

/* All zeros; what was dirty before still is. */
static inline void
sectors_zero(SimSectors *data, uint32_t bytes)
{
	if (data->disk == NULL)
	{
		data->count = bytes / SECTOR;
		data->disk = malloc(bytes);
		data->cache = malloc(bytes);
		data->dirty = calloc(data->count, 1);
	}
	memset(data->disk, 0, bytes);
	memset(data->cache, 0, bytes);
}

/* Nothing is dirty: what was written stays in the cache alone. */
static inline void
sectors_forget(SimSectors *data)
{
	if (data->dirty != NULL)
		memset(data->dirty, 0, data->count);
	data->dirty_count = 0;
}

static inline void
sectors_write(SimSectors *data, uint64_t offset, const void *bytes, uint32_t size)
{
	memcpy(data->cache + offset, bytes, size);
	for (uint32_t s = (uint32_t) (offset / SECTOR); s < (offset + size + SECTOR - 1) / SECTOR; s++)
	{
		data->dirty_count += !data->dirty[s];
		data->dirty[s] = 1;
	}
}

static inline void
sector_lands(SimSectors *data, uint32_t s)
{
	memcpy(data->disk + s * SECTOR, data->cache + s * SECTOR, SECTOR);
	data->dirty_count -= data->dirty[s];
	data->dirty[s] = 0;
}

static inline void
sectors_sync(SimSectors *data)
{
	for (uint32_t s = 0; data->dirty_count > 0 && s < data->count; s++)
	{
		if (data->dirty[s])
			sector_lands(data, s);
	}
}

/*
 * Each dirty sector lands or does not, in one of SECTOR_PATTERNS: none, all, those
 * before a point, those after one, all but one, one alone, or each by the toss of
 * a coin; in units of so many sectors.  None is dirty afterwards.  Returns the end
 * of the last one that landed, 0 for none.
 */
static inline uint32_t
sectors_land(SimSectors *data, uint32_t unit, uint32_t pattern)
{
	uint32_t	end = 0;
	uint32_t	seen = 0;
	uint32_t	cut;
	bool		lands = false;

	if (data->dirty_count == 0)
		return 0;
	cut = sim_below(data->dirty_count);
	for (uint32_t s = 0; s < data->count; s++)
	{
		if (!data->dirty[s])
			continue;
		if (seen == 0 || s % unit == 0)
		{
			/* the unit as a whole shares its first sector's fate */
			switch (pattern)
			{
				case 0:
					lands = false;
					break;
				case 1:
					lands = true;
					break;
				case 2:
					lands = seen < cut;
					break;
				case 3:
					lands = seen >= cut;
					break;
				case 4:
					lands = !(seen <= cut && cut < seen + unit);
					break;
				case 5:
					lands = seen <= cut && cut < seen + unit;
					break;
				default:
					lands = sim_chance(2);
					break;
			}
		}
		if (lands)
		{
			sector_lands(data, s);
			end = (s + 1) * SECTOR;
		}
		data->dirty[s] = 0;
		seen++;
	}
	data->dirty_count = 0;
	return end;
}

#endif							/* SIMSECTORS_H */
