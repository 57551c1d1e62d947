/*-------------------------------------------------------------------------
 *
 * cut.c
 *		The power goes: what the disk has of what was not synced.
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

/* One sector that the disk may or may not have got. */
typedef struct Lost
{
	Node	   *node;
	uint32_t	sector;
	uint64_t	when;
} Lost;

static int
compare_lost(const void *a, const void *b)
{
	const Lost *x = a;
	const Lost *y = b;

	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->sector < y->sector ? -1 : x->sector > y->sector;
}

static bool
same_unit(const Lost *a, const Lost *b, const Plan *plan)
{
	uint32_t	each = plan->unit / SECTOR;

	return a->node == b->node && a->when == b->when && a->sector / each == b->sector / each;
}

static Lost *
collect(const Plan *plan, uint32_t *count, uint32_t *units)
{
	Lost	   *lost;

	*count = *units = 0;
	for (Node *node = disk_nodes; node != NULL; node = node->next)
		for (uint32_t s = 0; s < node->sectors && !node->gone; s++)
			*count += node->state[s] != CLEAN;
	lost = calloc(*count + 1, sizeof(Lost));
	if (lost == NULL)
		abort();
	*count = 0;
	for (Node *node = disk_nodes; node != NULL; node = node->next)
		for (uint32_t s = 0; s < node->sectors && !node->gone; s++)
			if (node->state[s] != CLEAN)
				lost[(*count)++] = (Lost) {node, s, node->when[s]};
	qsort(lost, *count, sizeof(Lost), compare_lost);
	for (uint32_t i = 0; i < *count; i++)
		*units += i == 0 || !same_unit(&lost[i], &lost[i - 1], plan);
	return lost;
}

static bool
unit_lands(Keep keep, uint32_t unit, uint32_t point)
{
	switch (keep)
	{
		case KEEP_NOTHING:
			return false;
		case KEEP_ALL:
			return true;
		case KEEP_FIRST:
			return unit < point;
		case KEEP_LAST:
			return unit >= point;
		case KEEP_HOLE:
			return unit != point;
		case KEEP_ONE:
			return unit == point;
		case KEEP_ANY:
			break;
	}
	return disk_random(2) == 0;
}

/* Put back what the disk had; sizes as far as something landed. */
static int
cut_contents(int base, const Plan *plan)
{
	uint32_t	count;
	uint32_t	units;
	Lost	   *lost = collect(plan, &count, &units);
	uint32_t	point = plan->point >= 0 ? (uint32_t) plan->point :
		disk_random(units + (plan->keep == KEEP_FIRST || plan->keep == KEEP_LAST));
	uint32_t	unit = 0;
	bool		lands = false;
	static const uint8_t zeros[SECTOR];
	int			failed = 0;

	for (Node *node = disk_nodes; node != NULL; node = node->next)
	{
		uint64_t	end = node->safe_size;
		bool		shorter = node->size < node->safe_size;
		bool		stays = plan->keep != KEEP_NOTHING &&
			(plan->keep == KEEP_ALL || disk_random(2) == 0);
		int			fd;

		if (node->gone)
			continue;
		if (shorter && stays)
			end = node->size;
		else if (!shorter && plan->keep == KEEP_ALL)
			end = node->size;
		fd = openat(base, node->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
		{
			failed = -errno;
			break;
		}
		unit = 0;
		for (uint32_t i = 0; i < count; i++)
		{
			uint64_t	at = (uint64_t) lost[i].sector * SECTOR;
			uint64_t	new_end = at + SECTOR < node->size ? at + SECTOR : node->size;

			if (i > 0 && !same_unit(&lost[i], &lost[i - 1], plan))
				unit++;
			if (lost[i].node != node)
				continue;
			if (i == 0 || !same_unit(&lost[i], &lost[i - 1], plan))
				lands = unit_lands(plan->keep, unit, point);
			if (node->state[lost[i].sector] == DOOMED)
			{
				if (pwrite(fd, node->old[lost[i].sector] ? node->old[lost[i].sector] : zeros,
						   SECTOR, at) < 0)
					failed = -errno;
			}
			else if (lands && !(shorter && at >= node->size))
			{
				if (!shorter && new_end > end)
					end = new_end;
			}
			else if (pwrite(fd, node->old[lost[i].sector] ? node->old[lost[i].sector] : zeros,
							SECTOR, at) < 0)
				failed = -errno;
		}
		if (ftruncate(fd, end) != 0)
			failed = -errno;
		close(fd);
		if (failed != 0)
			break;
	}
	free(lost);
	return failed;
}

/* Names change in order, so the oldest changes may have landed, and no others. */
static int
cut_names(int base, const Plan *plan)
{
	Change	   *order[4096];
	int			count = 0;
	int			landed;

	for (Change *change = disk_changes; change != NULL && count < 4096; change = change->next)
		order[count++] = change;
	landed = plan->keep == KEEP_ALL ? count : plan->keep == KEEP_NOTHING ? 0 :
		(int) disk_random(count + 1);
	for (int i = count - 1; i >= landed; i--)
	{
		Change	   *change = order[i];

		if (change->to[0] == '\0')
		{
			if (renameat(base, change->grave, base, change->from) != 0)
				return -errno;
			continue;
		}
		if (change->from[0] == '\0')
		{
			if (unlinkat(base, change->to, 0) != 0)
				return -errno;
			continue;
		}
		if (renameat(base, change->to, base, change->from) != 0)
			return -errno;
		if (change->grave[0] != '\0' && renameat(base, change->grave, base, change->to) != 0)
			return -errno;
	}
	return 0;
}

/* forget: this is the disk itself, and what is there now is what it has. */
int
disk_cut(int base, const Plan *plan, bool forget)
{
	int			failed = cut_contents(base, plan);

	if (failed == 0)
		failed = cut_names(base, plan);
	if (!forget)
		return failed;

	while (disk_changes != NULL)
	{
		if (disk_changes->grave[0] != '\0')
			unlinkat(disk_root(), disk_changes->grave, 0);
		disk_forget_change();
	}
	for (Node *node = disk_nodes, *next; node != NULL; node = next)
	{
		next = node->next;
		/* whoever still has it open gets errors from now on */
		node->gone = node->dead = true;
		node->inode = 0;
		if (node->handles == 0)
			disk_free_node(node);
	}
	return failed;
}

static int
copy_file(int from, int to)
{
	static char buffer[1 << 20];
	ssize_t		got;

	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, got) != got)
			return -EIO;
	return got < 0 ? -errno : 0;
}

static int
copy_tree(int from, int to, const char *name)
{
	int			source = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int			target;
	DIR		   *dir;
	struct dirent *entry;
	int			failed = 0;

	if (mkdirat(to, name, 0755) != 0)
		return -errno;
	target = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fdopendir(source);
	while (failed == 0 && (entry = readdir(dir)) != NULL)
	{
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (fstatat(source, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			failed = -errno;
		else if (S_ISDIR(st.st_mode))
			failed = copy_tree(source, target, entry->d_name);
		else if (S_ISREG(st.st_mode))
		{
			int			in = openat(source, entry->d_name, O_RDONLY | O_CLOEXEC);
			int			out = openat(target, entry->d_name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

			failed = copy_file(in, out);
			close(in);
			close(out);
		}
	}
	closedir(dir);
	close(target);
	return failed;
}

int
disk_image(const char *directory, const Plan *plan)
{
	int			base;
	int			failed;

	if (mkdir(directory, 0755) != 0 ||
		(base = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -errno;
	failed = copy_tree(disk_root(), base, "data");
	if (failed == 0)
		failed = copy_tree(disk_root(), base, "grave");
	if (failed == 0)
		failed = disk_cut(base, plan, false);
	close(base);
	return failed;
}
