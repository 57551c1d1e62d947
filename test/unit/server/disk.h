/*-------------------------------------------------------------------------
 *
 * disk.h
 *		The simulated disk, for those who carry out system calls on it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SERVER_DISK_H
#define SERVER_DISK_H

#include "simos.h"

#include "io_engine.h"
#include "segment_format.h"
#include "simsectors.h"

#define BLOCK		4096
#define FILES		160
#define FLIGHTS		64
#define FD_BASE		1000
#define FD_DIRECTORY (-2)
#define NAME_LENGTH	40

typedef struct SimFile
{
	bool		used;
	SimSectors	data;
	uint32		size;
	uint32		size_disk;
	bool		paged;			/* written through the page cache */
	bool		failed;			/* a write or sync, as a segment of a log that is open */
	int			locked_by;		/* descriptor */
	char		name[NAME_LENGTH];	/* "": none */
	char		name_disk[NAME_LENGTH];
} SimFile;

/* A write under way, of a process that may end before it is done. */
typedef struct Flight
{
	bool		used;
	bool		late;			/* its process is gone */
	int			pid;
	GlIoOp	   *op;				/* NULL: a plain system call's */
	GlIoStep	step;
	int			file;
	int			flags;
	uint64		offset;
	int			iovcnt;
	struct iovec iov[GL_IO_MAX_IOV];
	void	   *copy;
} Flight;

/* An open file; descriptor FD_BASE + its index. */
typedef struct Descriptor
{
	bool		used;
	int			pid;
	int			file;
	int			flags;
} Descriptor;

#define DESCRIPTORS	256

extern Descriptor disk_descriptors[DESCRIPTORS];
extern SimFile disk_files[FILES];
extern Flight disk_flights[FLIGHTS];
extern uint32 disk_largest;

extern int	disk_file_new(void);
extern int	disk_file_find(const char *name);
extern void disk_file_rename(int index, const char *name);
extern bool disk_is_segment(const SimFile *file);

/* Forget it, if it is not named, open or being written any more. */
extern void disk_file_release(int index);

extern uint64 disk_free_bytes(void);
extern void disk_put(SimFile *file, uint64 offset, const void *data, uint32 size, int flags);
extern void disk_sync_file(SimFile *file);
extern void disk_names_land(void);

/* Each dirty sector lands or does not; none is dirty afterwards. */
extern void disk_sectors_land(SimFile *file);

extern Flight *disk_flight_begin(int file, int flags, uint64 offset,
								 const struct iovec *iov, int iovcnt);
extern void disk_flight_end(Flight *flight);

/* Some of a write's sectors arrive, dirty. */
extern void disk_flight_lands(Flight *flight, bool whole);

/* It goes on by itself, with a copy of what it had to write. */
extern void disk_flight_is_late(Flight *flight);

#endif							/* SERVER_DISK_H */
