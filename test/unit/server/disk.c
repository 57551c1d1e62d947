/*-------------------------------------------------------------------------
 *
 * disk.c
 *		The simulated disk.
 *
 * A file has two contents (simsectors.h).  Names are held twice in the same way,
 * with a list of the changes in between.  A power cut takes of these the first
 * few, of all files or of each.
 *
 * What a failed sync had to write is clean afterwards, landed or not: a buffered
 * read still shows it, a direct one shows the platter.
 *
 *-------------------------------------------------------------------------
 */
#include "disk.h"

#include <fcntl.h>

#include "segment.h"
#include "simcalls.h"

#define CHANGES		256

/* A change of names that is not durable: this file has this name now. */
typedef struct Change
{
	int			file;
	char		name[NAME_LENGTH];
} Change;

Descriptor	disk_descriptors[DESCRIPTORS];
SimFile		disk_files[FILES];
Flight		disk_flights[FLIGHTS];
uint32		disk_largest;
static Change changes[CHANGES];
static int	change_count;

SimFaults	sim_faults;
uint64		sim_capacity;
bool		sim_direct_io;
uint64		sim_silent_writes;

/* ----- files ----- */

void
sim_disk_format(uint32 largest_file)
{
	for (int i = 0; i < FILES; i++)
	{
		if (disk_largest != largest_file)
			sectors_free(&disk_files[i].data);
		disk_files[i].used = false;
	}
	disk_largest = largest_file;
	change_count = 0;
	sim_silent_writes = 0;
	for (int i = 0; i < FLIGHTS; i++)
	{
		free(disk_flights[i].copy);
		memset(&disk_flights[i], 0, sizeof(Flight));
	}
	memset(disk_descriptors, 0, sizeof(disk_descriptors));
}

uint64
sim_disk_used(void)
{
	uint64		used = 0;

	for (int i = 0; i < FILES; i++)
		used += disk_files[i].used ? disk_files[i].size : 0;
	return used;
}

bool
sim_disk_is_used_up(void)
{
	int			used = 0;

	for (int i = 0; i < FILES; i++)
		used += disk_files[i].used;
	return used > FILES - 30 || change_count > CHANGES - 60;
}

uint64
disk_free_bytes(void)
{
	uint64		used = sim_disk_used();

	return used < sim_capacity ? sim_capacity - used : 0;
}

int
disk_file_new(void)
{
	for (int i = 0; i < FILES; i++)
	{
		SimFile    *file = &disk_files[i];

		if (file->used)
			continue;
		sectors_zero(&file->data, disk_largest);
		sectors_forget(&file->data);
		file->used = true;
		file->size = file->size_disk = 0;
		file->paged = file->failed = false;
		file->locked_by = -1;
		file->name[0] = file->name_disk[0] = '\0';
		return i;
	}
	abort();
}

int
disk_file_find(const char *name)
{
	for (int i = 0; i < FILES; i++)
	{
		if (disk_files[i].used && name[0] != '\0' && strcmp(disk_files[i].name, name) == 0)
			return i;
	}
	return -1;
}

/* Is the file still named, open or being written? */
void
disk_file_release(int index)
{
	if (index < 0 || disk_files[index].name[0] != '\0' || disk_files[index].name_disk[0] != '\0')
		return;
	for (int i = 0; i < lengthof(disk_descriptors); i++)
	{
		if (disk_descriptors[i].used && disk_descriptors[i].file == index)
			return;
	}
	for (int i = 0; i < change_count; i++)
	{
		if (changes[i].file == index)
			return;
	}
	for (int i = 0; i < FLIGHTS; i++)
	{
		if (disk_flights[i].used && disk_flights[i].file == index)
			return;
	}
	disk_files[index].used = false;
}

bool
disk_is_segment(const SimFile *file)
{
	uint32		number;
	uint64		first_lsn;

	return gl_segment_name_parse(file->name, &number, &first_lsn);
}

void
disk_file_rename(int index, const char *name)
{
	strlcpy(disk_files[index].name, name, NAME_LENGTH);
	if (!disk_is_segment(&disk_files[index]))
		disk_files[index].failed = false;
	if (change_count == CHANGES)
		abort();
	changes[change_count].file = index;
	strlcpy(changes[change_count++].name, name, NAME_LENGTH);
}

void
disk_names_land(void)
{
	change_count = 0;
	for (int i = 0; i < FILES; i++)
	{
		if (!disk_files[i].used)
			continue;
		strlcpy(disk_files[i].name_disk, disk_files[i].name, NAME_LENGTH);
		disk_file_release(i);
	}
}

void
disk_put(SimFile *file, uint64 offset, const void *data, uint32 size, int flags)
{
	sectors_write(&file->data, offset, data, size);
	if (offset + size > file->size)
		file->size = (uint32) (offset + size);
	file->paged = file->paged || !(flags & O_DIRECT);
	if (!(flags & O_DSYNC))
		return;
	for (uint32 s = (uint32) (offset / SECTOR); s < (offset + size + SECTOR - 1) / SECTOR; s++)
	{
		sector_lands(&file->data, s);
		file->size_disk = Max(file->size_disk, Min(file->size, (s + 1) * SECTOR));
	}
}

void
disk_sync_file(SimFile *file)
{
	file->size_disk = file->size;
	sectors_sync(&file->data);
}

void
disk_sectors_land(SimFile *file)
{
	uint32		unit = sim_chance(2) ? 1 : BLOCK / SECTOR;
	uint32		pattern = sim_below(SECTOR_PATTERNS);
	uint32		end = sectors_land(&file->data, unit, pattern);

	file->size_disk = Max(file->size_disk, Min(file->size, end));
}

/* Some of a write's sectors arrive, dirty. */
void
disk_flight_lands(Flight *flight, bool whole)
{
	SimFile    *file = &disk_files[flight->file];
	uint64		at = flight->offset;
	uint32		pattern = whole ? 0 : sim_below(4);

	for (int i = 0; i < flight->iovcnt; i++)
	{
		const uint8 *data = flight->iov[i].iov_base;

		for (uint64 done = 0; done < flight->iov[i].iov_len;)
		{
			uint64		part = Min(SECTOR - at % SECTOR, flight->iov[i].iov_len - done);

			if (at + part <= disk_largest &&
				(pattern == 0 || (pattern > 1 && sim_chance(2))))
				disk_put(file, at, data + done, (uint32) part, flight->flags & ~O_DSYNC);
			at += part;
			done += part;
		}
	}
}

void
disk_flight_end(Flight *flight)
{
	int			file = flight->file;

	free(flight->copy);
	memset(flight, 0, sizeof(Flight));
	disk_file_release(file);
}

Flight *
disk_flight_begin(int file, int flags, uint64 offset, const struct iovec *iov, int iovcnt)
{
	for (int i = 0; i < FLIGHTS; i++)
	{
		Flight	   *flight = &disk_flights[i];

		if (flight->used)
			continue;
		flight->used = true;
		flight->pid = sim_self ? sim_self->pid : 0;
		flight->file = file;
		flight->flags = flags;
		flight->offset = offset;
		flight->iovcnt = iovcnt;
		memcpy(flight->iov, iov, iovcnt * sizeof(struct iovec));
		return flight;
	}
	abort();
}

void
sim_disk_late_writes(void)
{
	for (int i = 0; i < FLIGHTS; i++)
	{
		if (disk_flights[i].used && disk_flights[i].late && sim_chance(4))
		{
			disk_flight_lands(&disk_flights[i], !sim_chance(3));
			disk_flight_end(&disk_flights[i]);
		}
	}
}

/* It goes on by itself, with a copy of what it had to write. */
void
disk_flight_is_late(Flight *flight)
{
	uint64		size = 0;
	uint8	   *at;

	for (int j = 0; j < flight->iovcnt; j++)
		size += flight->iov[j].iov_len;
	at = flight->copy = malloc(size + 1);
	for (int j = 0; j < flight->iovcnt; j++)
	{
		memcpy(at, flight->iov[j].iov_base, flight->iov[j].iov_len);
		at += flight->iov[j].iov_len;
	}
	flight->iov[0].iov_base = flight->copy;
	flight->iov[0].iov_len = size;
	flight->iovcnt = 1;
	flight->op = NULL;
	flight->step = GL_IO_STEP_WRITE;
	flight->late = true;
}

void
sim_files_of_process_gone(int pid)
{
	for (int i = 0; i < FLIGHTS; i++)
	{
		Flight	   *flight = &disk_flights[i];

		if (!flight->used || flight->late || flight->pid != pid)
			continue;
		if (flight->step != GL_IO_STEP_WRITE || sim_chance(3))
		{
			if (flight->step == GL_IO_STEP_WRITE && sim_chance(2))
				disk_flight_lands(flight, !sim_chance(3));
			disk_flight_end(flight);
			continue;
		}
		disk_flight_is_late(flight);
	}
	for (int i = 0; i < lengthof(disk_descriptors); i++)
	{
		if (disk_descriptors[i].used && disk_descriptors[i].pid == pid)
			(void) sim_close(FD_BASE + i);
	}
}

void
sim_disk_crash(bool power)
{
	int			stop[FILES];

	/* of all processes: in flight, then perhaps landed */
	for (int i = 0; i < FLIGHTS; i++)
	{
		if (!disk_flights[i].used)
			continue;
		if (disk_flights[i].step == GL_IO_STEP_WRITE)
			disk_flight_lands(&disk_flights[i], false);
		disk_flight_end(&disk_flights[i]);
	}
	memset(disk_descriptors, 0, sizeof(disk_descriptors));
	for (int i = 0; i < FILES; i++)
	{
		disk_files[i].locked_by = -1;
		disk_files[i].failed = false;
	}

	if (!power)
		return;

	/* of the changes of names the first few, of all files or of each */
	for (int i = 0, same = sim_chance(2) ? (int) sim_below(change_count + 1) : -1; i < FILES; i++)
	{
		stop[i] = same >= 0 ? same : (int) sim_below(change_count + 1);
		if (disk_files[i].used)
			strlcpy(disk_files[i].name, disk_files[i].name_disk, NAME_LENGTH);
	}
	for (int i = 0; i < change_count; i++)
	{
		int			other;

		if (i >= stop[changes[i].file])
			continue;
		other = disk_file_find(changes[i].name);
		if (other >= 0)
			disk_files[other].name[0] = '\0';
		strlcpy(disk_files[changes[i].file].name, changes[i].name, NAME_LENGTH);
	}
	change_count = 0;

	for (int i = 0; i < FILES; i++)
	{
		SimFile    *file = &disk_files[i];

		if (!file->used)
			continue;
		disk_sectors_land(file);
		/* a truncation, or growth, that was not synced */
		if (sim_chance(2))
			file->size_disk = file->size;
		file->size = file->size_disk;
		memset(file->data.disk + file->size, 0, disk_largest - file->size);
		memcpy(file->data.cache, file->data.disk, disk_largest);
		file->paged = false;
		strlcpy(file->name_disk, file->name, NAME_LENGTH);
		disk_file_release(i);
	}
}

/* A file of the log is gone; not the oldest, whose loss nothing shows. */
static bool
lose_file(char *what, Size size)
{
	uint32		oldest = UINT32_MAX;
	uint32		newest = 0;
	uint32		known = UINT32_MAX;
	uint32		number;
	uint64		first_lsn;
	int			start = (int) sim_below(FILES);
	bool		is_newest = sim_chance(2);

	for (int i = 0; i < FILES; i++)
	{
		/*
		 * One beyond what the control file knows is not missed, and a power cut may
		 * bring back the control file before.
		 */
		if (disk_files[i].used && (strcmp(disk_files[i].name, GL_CONTROL_NAME) == 0 ||
								   strcmp(disk_files[i].name_disk, GL_CONTROL_NAME) == 0))
		{
			uint32		in_this;

			memcpy(&in_this, disk_files[i].data.disk + 48, sizeof(in_this));
			known = Min(known, in_this);
		}
		if (!disk_files[i].used || !gl_segment_name_parse(disk_files[i].name, &number, &first_lsn))
			continue;
		oldest = Min(oldest, number);
		newest = Max(newest, number);
	}
	for (int i = 0; i < FILES; i++)
	{
		int			index = (start + i) % FILES;
		SimFile    *file = &disk_files[index];

		if (!file->used || !gl_segment_name_parse(file->name, &number, &first_lsn) ||
			number == oldest || number > known || (is_newest && number != newest))
			continue;
		snprintf(what, size, "the loss of %s", file->name);
		file->name[0] = file->name_disk[0] = '\0';
		disk_file_release(index);
		return true;
	}
	return false;
}

bool
sim_disk_damage(char *what, Size size)
{
	int			index = -1;
	int			seen = 0;
	uint32		at;
	SimFile    *file;

	for (int i = 0; i < FILES; i++)
	{
		if (disk_files[i].used && strcmp(disk_files[i].name, GL_LOCK_NAME) != 0 && disk_files[i].name[0] != '\0' &&
			disk_files[i].size > 0 && (index < 0 || sim_below(++seen) == 0))
			index = i;
	}
	if (index < 0)
		return false;
	if (sim_chance(5))
		return lose_file(what, size);
	file = &disk_files[index];
	if (sim_chance(8))
		at = sim_below(BLOCK);
	else
	{
		/* where there is something */
		at = sim_below(file->size);
		for (int tries = 0; tries < 8 && file->data.disk[at] == 0; tries++)
			at = sim_below(file->size);
	}
	if (at >= file->size)
		return false;
	disk_sync_file(file);
	switch (sim_below(6))
	{
		case 0:
		case 1:
		case 2:
			file->data.disk[at] ^= (uint8) (1 << sim_below(8));
			snprintf(what, size, "a bit of byte %u of %s", at, file->name);
			break;
		case 3:
			memset(file->data.disk + at / SECTOR * SECTOR, 0, SECTOR);
			snprintf(what, size, "a sector of zeros at %u of %s", at / SECTOR * SECTOR, file->name);
			break;
		case 4:
			for (uint32 i = 0; i < SECTOR; i++)
				file->data.disk[at / SECTOR * SECTOR + i] = (uint8) sim_random();
			snprintf(what, size, "a sector of garbage at %u of %s", at / SECTOR * SECTOR, file->name);
			break;
		default:
			{
				/* one sector under another's address */
				uint32		from = sim_below(file->size / SECTOR + 1) * SECTOR;

				if (from + SECTOR <= disk_largest)
					memcpy(file->data.disk + at / SECTOR * SECTOR, file->data.disk + from, SECTOR);
				snprintf(what, size, "sector %u of %s has come to %u", from, file->name,
						 at / SECTOR * SECTOR);
			}
			break;
	}
	memcpy(file->data.cache, file->data.disk, disk_largest);
	return true;
}
