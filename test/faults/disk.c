/*-------------------------------------------------------------------------
 *
 * disk.c
 *		A disk that forgets.
 *
 * See disk.h.
 *
 *-------------------------------------------------------------------------
 */
#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Node	   *disk_nodes = NULL;
Change	   *disk_changes = NULL;

static int	root = -1;
static uint64_t writes = 0;
static uint64_t graves = 0;
static uint64_t random_state = 88172645463325252u;

void
disk_seed(uint64_t seed)
{
	random_state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
	for (int i = 0; i < 8; i++)
		disk_random(2);
}

uint64_t
disk_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return below > 0 ? random_state * UINT64_C(2685821657736338717) % below : 0;
}

int
disk_open_root(const char *backing)
{
	root = open(backing, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	if ((mkdirat(root, "data", 0755) != 0 || mkdirat(root, "grave", 0700) != 0) && errno != EEXIST)
		return -errno;
	return 0;
}

int
disk_root(void)
{
	return root;
}

static void *
grown(void *array, size_t before, size_t after, size_t each)
{
	char	   *larger = realloc(array, after * each);

	if (larger == NULL)
		abort();
	memset(larger + before * each, 0, (after - before) * each);
	return larger;
}

static void
node_reserve(Node *node, uint64_t end)
{
	uint32_t	need = (uint32_t) ((end + SECTOR - 1) / SECTOR);

	if (need <= node->sectors)
		return;
	need = (need | 2047) + 1;
	node->state = grown(node->state, node->sectors, need, sizeof(*node->state));
	node->old = grown(node->old, node->sectors, need, sizeof(*node->old));
	node->when = grown(node->when, node->sectors, need, sizeof(*node->when));
	node->sectors = need;
}

static void
set_clean(Node *node, uint32_t sector)
{
	free(node->old[sector]);
	node->old[sector] = NULL;
	node->state[sector] = CLEAN;
}

void
disk_free_node(Node *node)
{
	for (Node **at = &disk_nodes; *at != NULL; at = &(*at)->next)
	{
		if (*at == node)
		{
			*at = node->next;
			break;
		}
	}
	for (uint32_t i = 0; i < node->sectors; i++)
		free(node->old[i]);
	free(node->state);
	free(node->old);
	free(node->when);
	close(node->fd);
	free(node);
}

/* The node of a file; made from fd, or by opening the path, if there is none. */
Node *
disk_node(const char *path, int fd)
{
	struct stat st;
	Node	   *node;

	if (fd < 0)
		fd = openat(root, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
	{
		close(fd);
		errno = EINVAL;
		return NULL;
	}
	for (node = disk_nodes; node != NULL; node = node->next)
	{
		if (node->inode == st.st_ino)
		{
			close(fd);
			return node;
		}
	}
	node = calloc(1, sizeof(Node));
	if (node == NULL)
		abort();
	node->inode = st.st_ino;
	node->fd = fd;
	node->size = node->safe_size = st.st_size;
	snprintf(node->path, sizeof(node->path), "%s", path);
	node->next = disk_nodes;
	disk_nodes = node;
	return node;
}

static Node *
node_at(const char *path)
{
	for (Node *node = disk_nodes; node != NULL; node = node->next)
		if (!node->gone && strcmp(node->path, path) == 0)
			return node;
	return NULL;
}

void
disk_release(Node *node)
{
	if (--node->handles == 0 && node->gone)
		disk_free_node(node);
}

/* ---- contents ---- */

/* Before a sector changes: remember what the disk has. */
static void
remember(Node *node, uint32_t sector)
{
	uint64_t	at = (uint64_t) sector * SECTOR;

	if (node->state[sector] == CLEAN && at < node->size)
	{
		uint8_t    *bytes = calloc(1, SECTOR);

		if (bytes == NULL || pread(node->fd, bytes, SECTOR, at) < 0)
			abort();
		node->old[sector] = bytes;
	}
	node->state[sector] = DIRTY;
	node->when[sector] = writes;
}

ssize_t
disk_write(Node *node, const void *buffer, size_t size, uint64_t offset)
{
	ssize_t		done;

	if (size == 0)
		return 0;
	writes++;
	node_reserve(node, offset + size);
	for (uint32_t s = offset / SECTOR; s <= (offset + size - 1) / SECTOR; s++)
		remember(node, s);
	done = pwrite(node->fd, buffer, size, offset);
	if (done < 0)
		return -errno;
	if (offset + done > node->size)
		node->size = offset + done;
	return done;
}

/* A direct read sees the disk, a buffered one what the page cache pretends. */
ssize_t
disk_read(Node *node, void *buffer, size_t size, uint64_t offset, bool direct)
{
	ssize_t		done = pread(node->fd, buffer, size, offset);

	if (done < 0)
		return -errno;
	if (!direct)
		return done;
	for (uint64_t at = offset; at < offset + done; at = (at / SECTOR + 1) * SECTOR)
	{
		uint32_t	sector = at / SECTOR;
		uint64_t	end = ((uint64_t) sector + 1) * SECTOR;
		size_t		length = (end < offset + done ? end : offset + done) - at;

		if (sector >= node->sectors || node->state[sector] != DOOMED)
			continue;
		if (node->old[sector] != NULL)
			memcpy((char *) buffer + (at - offset), node->old[sector] + at % SECTOR, length);
		else
			memset((char *) buffer + (at - offset), 0, length);
	}
	return done;
}

int
disk_truncate(Node *node, uint64_t size)
{
	if (size < node->size)
	{
		writes++;
		node_reserve(node, node->size);
		for (uint32_t s = size / SECTOR; s < (node->size + SECTOR - 1) / SECTOR; s++)
			remember(node, s);
	}
	if (ftruncate(node->fd, size) != 0)
		return -errno;
	node->size = size;
	return 0;
}

static uint32_t
last_sector(const Node *node, uint64_t to)
{
	uint64_t	end = to / SECTOR + (to % SECTOR != 0);

	return end < node->sectors ? end : node->sectors;
}

void
disk_sync(Node *node, uint64_t from, uint64_t to)
{
	for (uint32_t s = from / SECTOR; s < last_sector(node, to); s++)
		if (node->state[s] == DIRTY)
			set_clean(node, s);
	/* a sync of a part needs the size no further than that */
	if (to >= node->size)
		node->safe_size = node->size;
	else if (to > node->safe_size)
		node->safe_size = to;
}

void
disk_sync_failed(Node *node, uint64_t from, uint64_t to)
{
	for (uint32_t s = from / SECTOR; s < last_sector(node, to); s++)
	{
		if (node->state[s] != DIRTY)
			continue;
		if (disk_random(2) == 0)
			set_clean(node, s);
		else
			node->state[s] = DOOMED;
	}
}

/* ---- names ---- */

static Change *
add_change(const char *from, const char *to)
{
	Change	   *change = calloc(1, sizeof(Change));
	Change	  **last = &disk_changes;

	if (change == NULL)
		abort();
	snprintf(change->from, NAME_SIZE, "%s", from);
	snprintf(change->to, NAME_SIZE, "%s", to);
	while (*last != NULL)
		last = &(*last)->next;
	*last = change;
	return change;
}

void
disk_made(const char *path)
{
	add_change("", path);
}

/* Out of sight, but not lost yet. */
static int
bury(const char *path, char *grave)
{
	Node	   *node = node_at(path);

	snprintf(grave, NAME_SIZE, "grave/%llu", (unsigned long long) ++graves);
	if (renameat(root, path, root, grave) != 0)
		return -errno;
	if (node != NULL)
		snprintf(node->path, NAME_SIZE, "%s", grave);
	return 0;
}

int
disk_unlink(const char *path)
{
	char		grave[NAME_SIZE];
	int			failed = bury(path, grave);

	if (failed == 0)
		strcpy(add_change(path, "")->grave, grave);
	return failed;
}

int
disk_rename(const char *from, const char *to)
{
	Node	   *node = node_at(from);
	char		grave[NAME_SIZE] = "";
	struct stat st;
	int			failed;

	if (fstatat(root, from, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	failed = bury(to, grave);
	if (failed == -ENOENT)
		grave[0] = '\0';
	else if (failed != 0)
		return failed;
	if (renameat(root, from, root, to) != 0)
		return -errno;
	if (node != NULL)
		snprintf(node->path, NAME_SIZE, "%s", to);
	strcpy(add_change(from, to)->grave, grave);
	return 0;
}

void
disk_forget_change(void)
{
	Change	   *change = disk_changes;

	disk_changes = change->next;
	free(change);
}

void
disk_sync_names(void)
{
	while (disk_changes != NULL)
	{
		if (disk_changes->grave[0] != '\0')
		{
			Node	   *node = node_at(disk_changes->grave);

			unlinkat(root, disk_changes->grave, 0);
			if (node != NULL)
			{
				node->gone = true;
				if (node->handles == 0)
					disk_free_node(node);
			}
		}
		disk_forget_change();
	}
}

/* ---- for tests ---- */

/* Silently: cache and disk both have it from now on. */
uint64_t
disk_flip(const char *path, uint64_t offset, int bit)
{
	uint8_t		byte;
	int			fd = openat(root, path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (pread(fd, &byte, 1, offset) != 1)
	{
		close(fd);
		return EINVAL;
	}
	byte ^= 1 << bit;
	if (pwrite(fd, &byte, 1, offset) != 1)
	{
		close(fd);
		return EIO;
	}
	close(fd);
	return 0;
}

void
disk_report(FILE *out)
{
	uint64_t	dirty = 0;
	uint64_t	doomed = 0;
	uint64_t	names = 0;

	for (Node *node = disk_nodes; node != NULL; node = node->next)
	{
		for (uint32_t s = 0; s < node->sectors; s++)
		{
			dirty += node->state[s] == DIRTY;
			doomed += node->state[s] == DOOMED;
		}
	}
	for (Change *change = disk_changes; change != NULL; change = change->next)
		names++;
	fprintf(out, "dirty=%llu doomed=%llu names=%llu writes=%llu", (unsigned long long) dirty,
			(unsigned long long) doomed, (unsigned long long) names, (unsigned long long) writes);
}
