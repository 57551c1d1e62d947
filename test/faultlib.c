/*-------------------------------------------------------------------------
 *
 * faultlib.c
 *		A device that fails, and a clock that jumps: preloaded under a server.
 *
 * Compiled by the tests (t/GrouplogTest.pm), put before libc with LD_PRELOAD.
 * It changes calls on files whose directory is called "grouplog", and the
 * wall clock.  What it does stands in the file named by GROUPLOG_FAULTS, which
 * every process of the server maps: the tests write to it while the server
 * runs, and read there how often each fault has struck.
 *
 *	int64		what is added to the wall clock, in microseconds
 *	8 faults, each of 8 int32:
 *		calls		which calls: a sum of the CALL_ constants; 0: none
 *		files		which files: a sum of the FILE_ constants
 *		error		errno of the failure; 0: the call is only delayed or short
 *		bytes		a write writes at most so many bytes; 0: all
 *		delay		milliseconds of sleep before the call; made less meanwhile (0, say),
 *					it ends the sleep of who is in it
 *		skip		so many calls pass first
 *		count		so many are struck after that; -1: all
 *		hits		how many were
 *	8 int32: for each fault, the process that it struck last
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CALL_WRITE		1
#define CALL_FDATASYNC	2
#define CALL_FSYNC		4
#define CALL_READ		8
#define CALL_DIRECT		16			/* open with O_DIRECT */
#define CALL_RENAME		32

#define FILE_SEGMENT	1
#define FILE_SPARE		2
#define FILE_DIRECTORY	4
#define FILE_CONTROL	8

#define FAULTS			8
#define SLICE_MS		10
#define MAX_IOV			16

typedef struct Fault
{
	int32_t		calls;
	int32_t		files;
	int32_t		error;
	int32_t		bytes;
	int32_t		delay;
	int32_t		skip;
	int32_t		count;
	int32_t		hits;
} Fault;

typedef struct Knobs
{
	int64_t		clock_offset;
	Fault		faults[FAULTS];
	int32_t		struck[FAULTS];
} Knobs;

static Knobs *knobs;

__attribute__((constructor))
static void
map_knobs(void)
{
	const char *name = getenv("GROUPLOG_FAULTS");
	int			fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void	   *memory;

	if (fd < 0)
		return;
	memory = mmap(NULL, sizeof(Knobs), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		knobs = memory;
	close(fd);
}

/* The next definition of a function: libc's. */
#define NEXT(function) \
	static __typeof__(function) *next; \
	if (next == NULL) \
		next = (__typeof__(function) *) dlsym(RTLD_NEXT, #function)

static int
kind_of_path(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t		length = strlen(path);

	/* the directory itself */
	if (length >= 9 && strcmp(path + length - 9, "/grouplog") == 0)
		return FILE_DIRECTORY;
	if (name == NULL || name - path < 8 || strncmp(name - 8, "grouplog", 8) != 0 ||
		(name - path > 8 && name[-9] != '/'))
		return 0;
	name++;
	length = strlen(name);
	if (length > 4 && strcmp(name + length - 4, ".seg") == 0)
		return FILE_SEGMENT;
	if (strncmp(name, "spare-", 6) == 0)
		return FILE_SPARE;
	return FILE_CONTROL;
}

static int
kind_of_fd(int fd)
{
	char		link[64];
	char		path[4096];
	ssize_t		length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0)
		return 0;
	path[length] = '\0';
	return kind_of_path(path);
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (int64_t) 1000 + now.tv_nsec / 1000000;
}

/* Nothing interrupts a device; but the test may have it go on. */
static void
stall(const Fault *fault)
{
	int64_t		start = now_ms();
	int64_t		rest;

	while ((rest = start + __atomic_load_n(&fault->delay, __ATOMIC_ACQUIRE) - now_ms()) > 0)
	{
		struct timespec slice = {.tv_nsec = (rest < SLICE_MS ? rest : SLICE_MS) * 1000000L};

		nanosleep(&slice, NULL);
	}
}

/* The fault that strikes this call, or NULL. */
static Fault *
strike(int call, int fd, const char *path)
{
	int			kind = -1;

	if (knobs == NULL)
		return NULL;
	for (int i = 0; i < FAULTS; i++)
	{
		Fault	   *fault = &knobs->faults[i];
		int32_t		left;

		if ((__atomic_load_n(&fault->calls, __ATOMIC_ACQUIRE) & call) == 0)
			continue;
		if (kind < 0)
			kind = path ? kind_of_path(path) : kind_of_fd(fd);
		if ((fault->files & kind) == 0)
			continue;
		if (fault->skip > 0 && __atomic_sub_fetch(&fault->skip, 1, __ATOMIC_ACQ_REL) >= 0)
			continue;
		left = __atomic_load_n(&fault->count, __ATOMIC_ACQUIRE);
		if (left == 0)
			continue;
		if (left > 0 && __atomic_fetch_sub(&fault->count, 1, __ATOMIC_ACQ_REL) <= 0)
		{
			__atomic_store_n(&fault->count, 0, __ATOMIC_RELEASE);
			continue;
		}
		__atomic_store_n(&knobs->struck[i], getpid(), __ATOMIC_RELEASE);
		__atomic_add_fetch(&fault->hits, 1, __ATOMIC_ACQ_REL);
		if (fault->delay > 0)
			stall(fault);
		return fault;
	}
	return NULL;
}

/* ---- writes ---- */

static int
shorten(const struct iovec *from, int count, size_t bytes, struct iovec *to)
{
	int			used = 0;

	for (; used < count && used < MAX_IOV && bytes > 0; used++)
	{
		to[used] = from[used];
		if (to[used].iov_len > bytes)
			to[used].iov_len = bytes;
		bytes -= to[used].iov_len;
	}
	return used;
}

#define WRITE_VECTOR(function, offset_type) \
ssize_t \
function(int fd, const struct iovec *iov, int count, offset_type offset) \
{ \
	struct iovec work[MAX_IOV]; \
	Fault	   *fault = strike(CALL_WRITE, fd, NULL); \
	NEXT(function); \
 \
	if (fault != NULL && fault->error != 0) \
	{ \
		errno = fault->error; \
		return -1; \
	} \
	if (fault != NULL && fault->bytes > 0) \
	{ \
		count = shorten(iov, count, fault->bytes, work); \
		iov = work; \
	} \
	return next(fd, iov, count, offset); \
}

#define WRITE_BUFFER(function, offset_type) \
ssize_t \
function(int fd, const void *data, size_t size, offset_type offset) \
{ \
	Fault	   *fault = strike(CALL_WRITE, fd, NULL); \
	NEXT(function); \
 \
	if (fault != NULL && fault->error != 0) \
	{ \
		errno = fault->error; \
		return -1; \
	} \
	if (fault != NULL && fault->bytes > 0 && size > (size_t) fault->bytes) \
		size = fault->bytes; \
	return next(fd, data, size, offset); \
}

#define READ_BUFFER(function, offset_type) \
ssize_t \
function(int fd, void *data, size_t size, offset_type offset) \
{ \
	Fault	   *fault = strike(CALL_READ, fd, NULL); \
	NEXT(function); \
 \
	if (fault != NULL && fault->error != 0) \
	{ \
		errno = fault->error; \
		return -1; \
	} \
	return next(fd, data, size, offset); \
}

WRITE_VECTOR(pwritev, off_t)
WRITE_VECTOR(pwritev64, off64_t)
WRITE_BUFFER(pwrite, off_t)
WRITE_BUFFER(pwrite64, off64_t)
READ_BUFFER(pread, off_t)
READ_BUFFER(pread64, off64_t)

/* ---- syncs ---- */

#define SYNC(function, call) \
int \
function(int fd) \
{ \
	Fault	   *fault = strike(call, fd, NULL); \
	NEXT(function); \
 \
	if (fault != NULL && fault->error != 0) \
	{ \
		errno = fault->error; \
		return -1; \
	} \
	return next(fd); \
}

SYNC(fsync, CALL_FSYNC)
SYNC(fdatasync, CALL_FDATASYNC)

/* ---- names ---- */

int
rename(const char *from, const char *to)
{
	Fault	   *fault = strike(CALL_RENAME, -1, to);
	NEXT(rename);

	if (fault != NULL && fault->error != 0)
	{
		errno = fault->error;
		return -1;
	}
	return next(from, to);
}

#define OPEN(function) \
int \
function(const char *path, int flags, ...) \
{ \
	mode_t		mode = 0; \
	NEXT(function); \
 \
	if (flags & (O_CREAT | O_TMPFILE)) \
	{ \
		va_list		args; \
 \
		va_start(args, flags); \
		mode = va_arg(args, mode_t); \
		va_end(args); \
	} \
	if (flags & O_DIRECT) \
	{ \
		Fault	   *fault = strike(CALL_DIRECT, -1, path); \
 \
		if (fault != NULL && fault->error != 0) \
		{ \
			errno = fault->error; \
			return -1; \
		} \
	} \
	return next(path, flags, mode); \
}

OPEN(open)
OPEN(open64)

/* ---- the wall clock ---- */

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	int			result;
	int64_t		offset = knobs ? __atomic_load_n(&knobs->clock_offset, __ATOMIC_RELAXED) : 0;
	NEXT(gettimeofday);

	result = next(tv, zone);
	if (result == 0 && offset != 0)
	{
		int64_t		now = (int64_t) tv->tv_sec * 1000000 + tv->tv_usec + offset;

		tv->tv_sec = now / 1000000;
		tv->tv_usec = now % 1000000;
	}
	return result;
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int			result;
	int64_t		offset = knobs ? __atomic_load_n(&knobs->clock_offset, __ATOMIC_RELAXED) : 0;
	NEXT(clock_gettime);

	result = next(clock, ts);
	if (result == 0 && offset != 0 && clock == CLOCK_REALTIME)
	{
		int64_t		now = (int64_t) ts->tv_sec * 1000000 + ts->tv_nsec / 1000 + offset;

		ts->tv_sec = now / 1000000;
		ts->tv_nsec = now % 1000000 * 1000;
	}
	return result;
}

time_t
time(time_t *result)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (result != NULL)
		*result = now.tv_sec;
	return now.tv_sec;
}
