/*-------------------------------------------------------------------------
 *
 * simdisk.h
 *		A simulated disk, for sim_recovery.
 *
 * A file has two contents (simsectors.h).  Names and sizes are held twice in the
 * same way.  A file whose write or sync has failed may land its dirty sectors, or
 * not, whenever a crash asks; a sync does not change that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMDISK_H
#define SIMDISK_H

#include "segment_format.h"
#include "simsectors.h"

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
	SimSectors	data;
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

		if (disk->capacity != capacity)
			sectors_free(&file->data);
		sectors_forget(&file->data);
		file->used = false;
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
		sectors_zero(&file->data, disk->capacity);
		file->used = true;
		file->failed = file->truncated = false;
		memset(&file->name_disk, 0, sizeof(SimName));
		memset(&file->name_cache, 0, sizeof(SimName));
		file->size_disk = file->size_cache = disk->capacity;
		return file;
	}
	abort();
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
	memset(file->data.disk + file->size_cache, 0, file->size_disk - file->size_cache);
	file->size_disk = file->size_cache;
	file->truncated = false;
}

static inline void
disk_sync(SimFile *file)
{
	if (file->truncated)
		truncation_lands(file);
	sectors_sync(&file->data);
}

/* Make a truncated file as long as a spare again. */
static inline void
disk_extend(SimDisk *disk, SimFile *file)
{
	disk_sync(file);
	memset(file->data.disk + file->size_disk, 0, disk->capacity - file->size_disk);
	memset(file->data.cache + file->size_disk, 0, disk->capacity - file->size_disk);
	file->size_disk = file->size_cache = disk->capacity;
}

static inline void
disk_sync_directory(SimDisk *disk)
{
	for (int i = 0; i < SIM_FILES; i++)
		disk->file[i].name_disk = disk->file[i].name_cache;
}

static inline void
dirty_sectors_land(SimFile *file)
{
	uint32_t	unit = sim_chance(3) ? 1 : GL_BLOCK / SECTOR;
	uint32_t	pattern = sim_below(SECTOR_PATTERNS);

	if (file->data.dirty_count > 0 && sim_chance(2))
		unit = 1;
	sectors_land(&file->data, unit, pattern);
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
			dirty_sectors_land(file);
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
		disk_sync(file);
		memcpy(file->data.cache, file->data.disk, disk->capacity);
		file->failed = false;
		if (power && sim_chance(2))
			file->name_cache = file->name_disk;
		file->name_disk = file->name_cache;
	}
}

#endif							/* SIMDISK_H */
