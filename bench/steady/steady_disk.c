/*-------------------------------------------------------------------------
 *
 * steady_disk.c
 *		A file whose syncs take a fixed time, to put a loop device on.
 *
 * A FUSE file system with one file, "disk", which is passed through to a backing
 * file.  While it is slow, syncs go one at a time and each takes the time given;
 * the kernel's own throttle keeps a rate only over slices of 100 ms.
 *
 *	steady_disk BACKING MICROSECONDS MOUNTPOINT
 *
 * Stays in the foreground until unmounted.  SIGUSR1 makes it slow, SIGUSR2 fast,
 * as it is at the start.
 *
 *-------------------------------------------------------------------------
 */
#define FUSE_USE_VERSION 31

#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THE_FILE "/disk"

static int	backing;
static long sync_us;
static volatile sig_atomic_t slow;
static pthread_mutex_t one_sync = PTHREAD_MUTEX_INITIALIZER;

static void
set_speed(int signal)
{
	slow = signal == SIGUSR1;
}

static void *
disk_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	config->kernel_cache = 1;
	return NULL;
}

static int
disk_getattr(const char *path, struct stat *st, struct fuse_file_info *file)
{
	if (strcmp(path, "/") == 0)
	{
		memset(st, 0, sizeof(*st));
		st->st_mode = S_IFDIR | 0700;
		st->st_nlink = 2;
		return 0;
	}
	if (strcmp(path, THE_FILE) != 0)
		return -ENOENT;
	return fstat(backing, st) == 0 ? 0 : -errno;
}

static int
disk_open(const char *path, struct fuse_file_info *file)
{
	return strcmp(path, THE_FILE) == 0 ? 0 : -ENOENT;
}

static int
disk_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
	ssize_t		done = pread(backing, buffer, size, offset);

	return done >= 0 ? (int) done : -errno;
}

static int
disk_write(const char *path, const char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
	ssize_t		done = pwrite(backing, buffer, size, offset);

	return done >= 0 ? (int) done : -errno;
}

static int
disk_fsync(const char *path, int datasync, struct fuse_file_info *file)
{
	struct timespec until;
	int			result;

	if (!slow)
		return fdatasync(backing) == 0 ? 0 : -errno;

	pthread_mutex_lock(&one_sync);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += sync_us * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	result = fdatasync(backing) == 0 ? 0 : -errno;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	pthread_mutex_unlock(&one_sync);
	return result;
}

static int
disk_fallocate(const char *path, int mode, off_t offset, off_t length, struct fuse_file_info *file)
{
	return fallocate(backing, mode, offset, length) == 0 ? 0 : -errno;
}

static const struct fuse_operations operations = {
	.init = disk_init,
	.getattr = disk_getattr,
	.open = disk_open,
	.read = disk_read,
	.write = disk_write,
	.fsync = disk_fsync,
	.fallocate = disk_fallocate
};

int
main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = set_speed, .sa_flags = SA_RESTART};
	char	   *fuse_argv[] = {argv[0], "-f", argc > 3 ? argv[3] : NULL, NULL};

	if (argc != 4 || (sync_us = atol(argv[2])) <= 0)
	{
		fprintf(stderr, "usage: steady_disk BACKING MICROSECONDS MOUNTPOINT\n");
		return 2;
	}
	backing = open(argv[1], O_RDWR);
	if (backing < 0)
	{
		perror(argv[1]);
		return 1;
	}
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	return fuse_main(3, fuse_argv, &operations, NULL);
}
