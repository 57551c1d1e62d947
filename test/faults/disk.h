/*-------------------------------------------------------------------------
 *
 * disk.h
 *		A disk that forgets: what faultfs.c keeps of every file.
 *
 * The backing folder holds two folders.  "data" is what is seen: the contents of
 * the page cache, so to speak.  "grave" holds what was removed or replaced while
 * the directory was not synced.  In memory lie, for each sector written since it
 * was last made durable, the bytes that the disk really has, and the list of the
 * changes of names.  A power cut puts back, of those, what its plan says, either
 * in the backing folder itself or in a copy of it (a crash image).
 *
 * A sector is
 *	CLEAN	durable
 *	DIRTY	written, not synced; the next sync makes it durable
 *	DOOMED	a sync of it failed: the page cache has it, the disk does not and
 *			never will, unless it is written again
 *
 * One lock (disk_lock) guards all of it; faultfs.c takes it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAULTS_DISK_H
#define FAULTS_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SECTOR		512
#define NAME_SIZE	256

typedef struct Node
{
	struct Node *next;
	ino_t		inode;
	int			fd;				/* keeps the inode number from being used again */
	int			handles;		/* opened so often */
	bool		gone;			/* its removal is durable */
	bool		dead;			/* from before a power cut */
	char		path[NAME_SIZE];	/* data/... or grave/... */
	uint64_t	size;
	uint64_t	safe_size;		/* on the disk */
	uint32_t	sectors;		/* room in the arrays */
	uint8_t    *state;			/* of each sector */
	uint8_t   **old;			/* what the disk has, NULL: zeros */
	uint64_t   *when;			/* order of the writes */
} Node;

enum
{
	CLEAN, DIRTY, DOOMED
};

/* A change of names that is not durable yet; the oldest first. */
typedef struct Change
{
	struct Change *next;
	char		from[NAME_SIZE];	/* empty: the file was made */
	char		to[NAME_SIZE];	/* empty: it was removed */
	char		grave[NAME_SIZE];	/* where what was at `to`, or `from`, went */
} Change;

typedef enum Keep
{
	KEEP_NOTHING,				/* none of what was not synced */
	KEEP_ALL,
	KEEP_FIRST,					/* what was written first, up to a random point */
	KEEP_LAST,					/* what was written last */
	KEEP_HOLE,					/* all but one unit */
	KEEP_ONE,					/* one unit only */
	KEEP_ANY					/* a random half, in any order */
} Keep;

typedef struct Plan
{
	Keep		keep;
	uint32_t	unit;			/* bytes that land together: 512 or 4096 */
	int64_t		point;			/* which unit FIRST, LAST, HOLE and ONE are about; -1: any */
} Plan;

extern int	disk_open_root(const char *backing);
extern int	disk_root(void);
extern void disk_seed(uint64_t seed);
extern uint64_t disk_random(uint64_t below);

extern Node *disk_node(const char *path, int error_fd);
extern void disk_release(Node *node);

extern ssize_t disk_write(Node *node, const void *buffer, size_t size, uint64_t offset);
extern ssize_t disk_read(Node *node, void *buffer, size_t size, uint64_t offset, bool direct);
extern int	disk_truncate(Node *node, uint64_t size);

/* Make [from, to) durable, or, failing, lose some of it for good. */
extern void disk_sync(Node *node, uint64_t from, uint64_t to);
extern void disk_sync_failed(Node *node, uint64_t from, uint64_t to);

extern void disk_made(const char *path);
extern int	disk_rename(const char *from, const char *to);
extern int	disk_unlink(const char *path);
extern void disk_sync_names(void);

/* The power goes.  base: the backing folder, or a copy of it. */
extern int	disk_cut(int base, const Plan *plan, bool forget);

/* Copy the backing folder to a new folder, and cut the power there. */
extern int	disk_image(const char *directory, const Plan *plan);

/* Between disk.c and cut.c. */
extern Node *disk_nodes;
extern Change *disk_changes;
extern void disk_forget_change(void);
extern void disk_free_node(Node *node);

extern uint64_t disk_flip(const char *path, uint64_t offset, int bit);
extern void disk_report(FILE *out);

#endif							/* FAULTS_DISK_H */
