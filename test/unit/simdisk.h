/*-------------------------------------------------------------------------
 *
 * simdisk.h
 *		A simulated disk, for sim_recovery.
 *
 * A file has two contents: what the system would read (cache), and what is on
 * the platter (disk).  A write changes the cache and makes its sectors dirty; a
 * sync brings them to the disk.  A power cut takes each dirty sector or leaves
 * it, in the pattern of the day: none, all, those before a point, those after
 * one, all but one, one alone, or each by the toss of a coin; in units of 512 or
 * of 4,096 bytes.  Names and sizes are held twice in the same way.  A file whose
 * write or sync has failed may land its dirty sectors, or not, whenever a crash
 * asks; a sync does not change that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMDISK_H
#define SIMDISK_H

#include <stdlib.h>
#include <string.h>

#include "segment_format.h"
#include "simchance.h"

#define SECTOR		512
#define SIM_FILES	64

typedef struct SimName
{
	uint32_t	number;			/* 0: a spare */
	uint64_t	first_lsn;
} SimName;

typedef struct SimFile
{
	bool		used;
	bool		failed;
	bool		truncated;		/* not yet durably */
	uint8_t    *disk;
	uint8_t    *cache;
	uint8_t    *dirty;			/* a byte a sector */
	uint32_t	dirty_count;
	uint32_t	size_disk;
	uint32_t	size_cache;
	SimName		name_disk;
	SimName		name_cache;
} SimFile;

typedef struct SimDisk
{
	SimFile		file[SIM_FILES];
	uint32_t	capacity;		/* of each file, bytes */
} SimDisk;

static inline void
disk_init(SimDisk *disk, uint32_t capacity)
{
	for (int i = 0; i < SIM_FILES; i++)
	{
		SimFile    *file = &disk->file[i];

		if (file->disk != NULL && disk->capacity != capacity)
		{
			free(file->disk);
			free(file->cache);
			free(file->dirty);
			file->disk = file->cache = file->dirty = NULL;
		}
		if (file->dirty != NULL)
			memset(file->dirty, 0, capacity / SECTOR);
		file->used = false;
		file->dirty_count = 0;
	}
	disk->capacity = capacity;
}

/* A new file, zeros, as a spare is made: written and synced. */
static inline SimFile *
disk_create(SimDisk *disk)
{
	for (int i = 0; i < SIM_FILES; i++)
	{
		SimFile    *file = &disk->file[i];

		if (file->used)
			continue;
		if (file->disk == NULL)
		{
			file->disk = malloc(disk->capacity);
			file->cache = malloc(disk->capacity);
			file->dirty = calloc(disk->capacity / SECTOR, 1);
		}
		file->used = true;
		file->failed = file->truncated = false;
		memset(&file->name_disk, 0, sizeof(SimName));
		memset(&file->name_cache, 0, sizeof(SimName));
		file->size_disk = file->size_cache = disk->capacity;
		memset(file->disk, 0, disk->capacity);
		memset(file->cache, 0, disk->capacity);
		return file;
	}
	abort();
}

static inline void
disk_write(SimFile *file, uint64_t offset, const void *data, uint32_t size)
{
	memcpy(file->cache + offset, data, size);
	for (uint32_t s = (uint32_t) (offset / SECTOR); s < (offset + size + SECTOR - 1) / SECTOR; s++)
	{
		file->dirty_count += !file->dirty[s];
		file->dirty[s] = 1;
	}
}

static inline void
disk_truncate(SimFile *file, uint32_t size)
{
	if (size >= file->size_cache)
		return;
	file->size_cache = size;
	file->truncated = true;
}

static inline void
truncation_lands(SimFile *file)
{
	memset(file->disk + file->size_cache, 0, file->size_disk - file->size_cache);
	file->size_disk = file->size_cache;
	file->truncated = false;
}

static inline void
disk_sync(SimDisk *disk, SimFile *file)
{
	if (file->truncated)
		truncation_lands(file);
	for (uint32_t s = 0; file->dirty_count > 0 && s < disk->capacity / SECTOR; s++)
	{
		if (!file->dirty[s])
			continue;
		memcpy(file->disk + s * SECTOR, file->cache + s * SECTOR, SECTOR);
		file->dirty[s] = 0;
		file->dirty_count--;
	}
}

/* Make a truncated file as long as a spare again. */
static inline void
disk_extend(SimDisk *disk, SimFile *file)
{
	disk_sync(disk, file);
	memset(file->disk + file->size_disk, 0, disk->capacity - file->size_disk);
	memset(file->cache + file->size_disk, 0, disk->capacity - file->size_disk);
	file->size_disk = file->size_cache = disk->capacity;
}

static inline void
disk_sync_directory(SimDisk *disk)
{
	for (int i = 0; i < SIM_FILES; i++)
		disk->file[i].name_disk = disk->file[i].name_cache;
}

/* Each dirty sector lands or does not. */
static inline void
sectors_land(SimDisk *disk, SimFile *file)
{
	uint32_t	unit = sim_chance(3) ? 1 : GL_BLOCK / SECTOR;
	uint32_t	pattern = sim_below(8);
	uint32_t	sectors = disk->capacity / SECTOR;
	uint32_t	cut;
	uint32_t	seen = 0;
	bool		lands = false;

	if (file->dirty_count == 0)
		return;
	if (sim_chance(2))
		unit = 1;
	cut = sim_below(file->dirty_count);
	for (uint32_t s = 0; s < sectors; s++)
	{
		if (!file->dirty[s])
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
			memcpy(file->disk + s * SECTOR, file->cache + s * SECTOR, SECTOR);
		file->dirty[s] = 0;
		seen++;
	}
	file->dirty_count = 0;
}

/*
 * What a crash leaves; afterwards cache and disk agree.  power: the machine
 * died.  Otherwise only the server did: the cache stays, the next start syncs.
 */
static inline void
disk_crash(SimDisk *disk, bool power)
{
	for (int i = 0; i < SIM_FILES; i++)
	{
		SimFile    *file = &disk->file[i];

		if (!file->used)
			continue;
		if (power || file->failed)
			sectors_land(disk, file);
		if (file->truncated)
		{
			if (!power || sim_chance(2))
				truncation_lands(file);
			else
			{
				file->size_cache = file->size_disk;
				file->truncated = false;
			}
		}
		disk_sync(disk, file);
		memcpy(file->cache, file->disk, disk->capacity);
		file->failed = false;
		if (power && sim_chance(2))
			file->name_cache = file->name_disk;
		file->name_disk = file->name_cache;
	}
}

#endif							/* SIMDISK_H */
