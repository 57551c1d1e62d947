/*-------------------------------------------------------------------------
 *
 * test_io.c
 *		Unit tests of io.h: both engines, their failures, the fall-back.
 *
 * The steps of an operation are tested against a model first, with short
 * writes of every kind.  Then each engine does real I/O: what it wrote is read
 * back with plain calls.  Refusals of io_uring are made with a system call
 * filter in a child process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* O_DIRECT, unshare */
#endif

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "io_engine.h"

#define BLOCK	GL_IO_BLOCK

static const GlIoMethod plain = GL_IO_SYNC;
static const GlIoMethod uring = GL_IO_URING;

static char scratch_dir[256];

/* ---- helpers ---- */

static int
scratch_file(int flags)
{
	char		path[300];
	int			fd;

	snprintf(path, sizeof(path), "%s/file", scratch_dir);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | flags, 0600);
	return fd;
}

/* The engine that the test was given, or the test is skipped. */
static GlIo *
open_engine(void **state)
{
	GlIoMethod	wanted = *(const GlIoMethod *) *state;
	GlIoMethod	got;
	char		reason[200];
	GlIo	   *io = gl_io_open(wanted, &got, reason, sizeof(reason));

	assert_non_null(io);
	if (got != wanted)
	{
		gl_io_close(io);
		print_message("no io_uring here: %s\n", reason);
		skip();
	}
	assert_string_equal(reason, "");
	return io;
}

static void
wait_all(GlIo *io)
{
	for (int rounds = 0; gl_io_in_flight(io) > 0; rounds++)
	{
		struct pollfd pollfd = {.fd = gl_io_fd(io),.events = POLLIN};
		int			rc = poll(&pollfd, 1, 10000);

		if (rc < 0 && errno == EINTR)
			continue;
		assert_int_equal(rc, 1);
		assert_true(rounds < 10000);
		gl_io_reap(io);
	}
}

static int
run(GlIo *io, GlIoOp *op)
{
	gl_io_submit(io, op);
	wait_all(io);
	assert_int_equal(op->state, GL_IO_DONE);
	gl_io_reap(io);
	return op->error;
}

static GlIoOp
write_op(int fd, uint64_t offset, void *data, size_t size, bool sync_after)
{
	GlIoOp		op;

	/* garbage in the private fields must not matter */
	memset(&op, 0x5a, sizeof(op));
	op.kind = GL_IO_WRITE;
	op.fd = fd;
	op.sync_after = sync_after;
	op.direct = false;
	op.offset = offset;
	op.iovcnt = 1;
	op.iov[0].iov_base = data;
	op.iov[0].iov_len = size;
	return op;
}

static void
fill(char *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (char) ((i * 31 + (i >> 8) * 7 + seed) & 0xff);
}

static void
check_file(int fd, uint64_t offset, const char *expected, size_t size)
{
	char	   *found;

	/* a file opened for direct I/O can't be read at any offset */
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_DIRECT), 0);
	found = malloc(size);
	assert_non_null(found);
	assert_int_equal(pread(fd, found, size, (off_t) offset), (ssize_t) size);
	assert_memory_equal(found, expected, size);
	free(found);
}

/* Run body in a child; its exit status is 0, 77 for "can't be tested here". */
static void
in_child(int (*body) (void))
{
	pid_t		pid;
	int			status;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
	{
		int			result = body();

		fflush(NULL);
		_exit(result);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* In a child, cmocka's assertions would jump into the parent's runner. */
#define CHILD_CHECK(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
			return 1; \
		} \
	} while (0)

/* ---- the steps, without I/O ---- */

/*
 * Every write is cut at a random length; the model file must end up right, no
 * write may begin outside a block boundary of a direct file, and the sync comes
 * once, at the end.
 */
static void
steps_with_short_writes(bool direct)
{
	static char data[16 * BLOCK];
	static char file[20 * BLOCK];
	unsigned	seed = direct ? 4711 : 4712;

	fill(data, sizeof(data), 1);
	for (int round = 0; round < 2000; round++)
	{
		GlIoOp		op;
		GlIoStep	step;
		size_t		unit = direct ? BLOCK : 1;
		size_t		used = 0;
		int			writes = 0;
		int			syncs = 0;

		memset(&op, 0x5a, sizeof(op));
		memset(file, 0, sizeof(file));
		op.kind = GL_IO_WRITE;
		op.fd = -1;
		op.sync_after = rand_r(&seed) % 2 == 0;
		op.direct = direct;
		op.offset = (rand_r(&seed) % (2 * BLOCK)) / unit * unit;
		op.iovcnt = 1 + rand_r(&seed) % GL_IO_MAX_IOV;
		for (int i = 0; i < op.iovcnt; i++)
		{
			op.iov[i].iov_base = data + used;
			op.iov[i].iov_len = rand_r(&seed) % (4 * BLOCK) / unit * unit;
			used += op.iov[i].iov_len;
		}

		step = gl_io_begin(&op);
		while (step != GL_IO_STEP_END)
		{
			uint64_t	at = gl_io_write_offset(&op);
			size_t		offered = 0;
			size_t		take;

			assert_int_equal(op.state, GL_IO_IN_FLIGHT);
			assert_true(writes + syncs < 5000);
			if (rand_r(&seed) % 8 == 0)
			{
				step = gl_io_next(&op, rand_r(&seed) % 2 ? -EINTR : -EAGAIN);
				continue;
			}
			if (step == GL_IO_STEP_SYNC)
			{
				syncs++;
				assert_memory_equal(file + op.offset, data, used);
				step = gl_io_next(&op, 0);
				continue;
			}

			writes++;
			for (int i = 0; i < op.work_iovcnt; i++)
				offered += op.work_iov[i].iov_len;
			assert_true(offered > 0);
			assert_int_equal(at % unit, 0);
			assert_true(at + offered == op.offset + used);

			/* mostly short; each write gets further than the one before */
			take = offered;
			if (rand_r(&seed) % 4 != 0)
				take = op.offset + op.done_bytes - at + 1 +
					rand_r(&seed) % (op.total_bytes - op.done_bytes);
			for (size_t i = 0, left = take; left > 0; i++)
			{
				size_t		part = op.work_iov[i].iov_len < left ? op.work_iov[i].iov_len : left;

				memcpy(file + at, op.work_iov[i].iov_base, part);
				at += part;
				left -= part;
			}
			step = gl_io_next(&op, (int64_t) take);
		}
		assert_int_equal(op.state, GL_IO_DONE);
		assert_int_equal(op.error, 0);
		assert_int_equal(syncs, op.sync_after ? 1 : 0);
		assert_memory_equal(file + op.offset, data, used);
	}
}

static void
test_steps_buffered(void **state)
{
	(void) state;
	steps_with_short_writes(false);
}

static void
test_steps_direct(void **state)
{
	(void) state;
	steps_with_short_writes(true);
}

static void
test_steps_no_progress(void **state)
{
	static char data[3 * BLOCK];
	GlIoOp		op = write_op(-1, BLOCK, data, sizeof(data), true);

	(void) state;

	/* nothing written at all */
	assert_int_equal(gl_io_begin(&op), GL_IO_STEP_WRITE);
	assert_int_equal(gl_io_next(&op, 0), GL_IO_STEP_END);
	assert_int_equal(op.error, ENOSPC);

	/* a direct file that is full in the middle of a block */
	op.direct = true;
	assert_int_equal(gl_io_begin(&op), GL_IO_STEP_WRITE);
	assert_int_equal(gl_io_next(&op, BLOCK + 512), GL_IO_STEP_WRITE);
	assert_int_equal(gl_io_write_offset(&op), 2 * BLOCK);
	assert_int_equal(gl_io_next(&op, 512), GL_IO_STEP_END);
	assert_int_equal(op.error, ENOSPC);

	/* less than a block at first, then all */
	assert_int_equal(gl_io_begin(&op), GL_IO_STEP_WRITE);
	assert_int_equal(gl_io_next(&op, 256), GL_IO_STEP_WRITE);
	assert_int_equal(gl_io_write_offset(&op), BLOCK);
	assert_int_equal(op.work_iov[0].iov_len, 3 * BLOCK);
	assert_int_equal(gl_io_next(&op, 3 * BLOCK), GL_IO_STEP_SYNC);
	assert_int_equal(gl_io_next(&op, -EIO), GL_IO_STEP_END);
	assert_int_equal(op.error, EIO);
}

/* ---- both engines ---- */

static void
test_write_sync_read(void **state)
{
	static char data[5 * BLOCK + 123];
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	GlIoOp		op;

	assert_true(fd >= 0);
	fill(data, sizeof(data), 2);

	op = write_op(fd, 0, data, sizeof(data), true);
	assert_int_equal(run(io, &op), 0);
	check_file(fd, 0, data, sizeof(data));

	/* at an odd offset, over what is there, without a sync */
	op = write_op(fd, 777, data, 1000, false);
	assert_int_equal(run(io, &op), 0);
	check_file(fd, 777, data, 1000);

	op.kind = GL_IO_FDATASYNC;
	assert_int_equal(run(io, &op), 0);
	op.kind = GL_IO_FSYNC;
	assert_int_equal(run(io, &op), 0);

	close(fd);
	gl_io_close(io);
}

static void
test_read(void **state)
{
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	char		data[10000];
	char		got[2][10000];
	GlIoOp		op;

	fill(data, sizeof(data), 2);
	assert_int_equal(pwrite(fd, data, sizeof(data), 0), sizeof(data));

	/* into two buffers */
	op = write_op(fd, 1000, got[0], 3000, true);
	op.kind = GL_IO_READ;
	op.iovcnt = 2;
	op.iov[1].iov_base = got[1];
	op.iov[1].iov_len = 2000;
	assert_int_equal(run(io, &op), 0);
	assert_int_equal(op.done_bytes, 5000);
	assert_memory_equal(got[0], data + 1000, 3000);
	assert_memory_equal(got[1], data + 4000, 2000);

	/* the end of the file, and beyond it */
	op = write_op(fd, 9000, got[0], sizeof(got[0]), false);
	op.kind = GL_IO_READ;
	assert_int_equal(run(io, &op), 0);
	assert_int_equal(op.done_bytes, 1000);
	assert_memory_equal(got[0], data + 9000, 1000);
	op.offset = sizeof(data);
	assert_int_equal(run(io, &op), 0);
	assert_int_equal(op.done_bytes, 0);
	op.iovcnt = 0;
	assert_int_equal(run(io, &op), 0);
	assert_int_equal(op.done_bytes, 0);

	close(fd);
	op = write_op(fd, 0, got[0], 1000, false);
	op.kind = GL_IO_READ;
	assert_int_equal(run(io, &op), EBADF);
	gl_io_close(io);
}

static void
test_sync_directory(void **state)
{
	GlIo	   *io = open_engine(state);
	int			fd = open(scratch_dir, O_RDONLY | O_DIRECTORY);
	GlIoOp		op;

	assert_true(fd >= 0);
	memset(&op, 0x5a, sizeof(op));
	op.kind = GL_IO_FSYNC;
	op.fd = fd;
	assert_int_equal(run(io, &op), 0);
	close(fd);
	gl_io_close(io);
}

static void
test_several_iovecs(void **state)
{
	static char data[4 * BLOCK];
	static char expected[4 * BLOCK];
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	GlIoOp		op;

	assert_true(fd >= 0);
	fill(data, sizeof(data), 3);
	memcpy(expected, data + 3 * BLOCK, BLOCK);
	memcpy(expected + BLOCK, data, 100);
	memcpy(expected + BLOCK + 100, data + BLOCK, 2 * BLOCK);

	op = write_op(fd, 4096, data + 3 * BLOCK, BLOCK, true);
	op.iovcnt = 4;
	op.iov[1].iov_base = data;
	op.iov[1].iov_len = 100;
	op.iov[2].iov_base = NULL;
	op.iov[2].iov_len = 0;
	op.iov[3].iov_base = data + BLOCK;
	op.iov[3].iov_len = 2 * BLOCK;
	assert_int_equal(run(io, &op), 0);
	check_file(fd, 4096, expected, 3 * BLOCK + 100);

	close(fd);
	gl_io_close(io);
}

static void
test_nothing_to_write(void **state)
{
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	GlIoOp		op = write_op(fd, 0, NULL, 0, false);

	assert_true(fd >= 0);
	op.iovcnt = 0;
	gl_io_submit(io, &op);
	assert_int_equal(op.state, GL_IO_DONE);
	assert_int_equal(op.error, 0);
	assert_int_equal(gl_io_reap(io), 1);
	op.sync_after = true;
	assert_int_equal(run(io, &op), 0);
	close(fd);
	gl_io_close(io);
}

/* All slots used again and again, and every operation accounted for once. */
static void
test_many_in_flight(void **state)
{
	enum
	{
		TOTAL = 2000
	};
	static char data[GL_IO_MAX_IN_FLIGHT][2000];
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	GlIoOp		ops[GL_IO_MAX_IN_FLIGHT];
	int			slot_of[TOTAL];
	int			submitted = 0;
	int			reaped = 0;

	assert_true(fd >= 0);
	for (int i = 0; i < GL_IO_MAX_IN_FLIGHT; i++)
	{
		fill(data[i], sizeof(data[i]), (unsigned) i);
		ops[i].state = GL_IO_IDLE;
	}

	while (reaped < TOTAL)
	{
		for (int i = 0; i < GL_IO_MAX_IN_FLIGHT && submitted < TOTAL; i++)
		{
			if (ops[i].state == GL_IO_IN_FLIGHT)
				continue;
			if (ops[i].state == GL_IO_DONE)
				assert_int_equal(ops[i].error, 0);
			ops[i] = write_op(fd, (uint64_t) submitted * 2000, data[i], 2000,
							  submitted % 50 == 0);
			slot_of[submitted++] = i;
			gl_io_submit(io, &ops[i]);
			assert_true(gl_io_in_flight(io) <= GL_IO_MAX_IN_FLIGHT);
		}
		if (gl_io_in_flight(io) > 0)
		{
			struct pollfd pollfd = {.fd = gl_io_fd(io),.events = POLLIN};

			(void) poll(&pollfd, 1, 10000);
		}
		reaped += gl_io_reap(io);
	}
	assert_int_equal(reaped, TOTAL);
	assert_int_equal(gl_io_in_flight(io), 0);
	assert_int_equal(gl_io_reap(io), 0);
	for (int i = 0; i < TOTAL; i++)
		check_file(fd, (uint64_t) i * 2000, data[slot_of[i]], 2000);

	close(fd);
	gl_io_close(io);
}

static void
count_signal(int signal_number)
{
	(void) signal_number;
}

/* A timer that interrupts every call it can, a thousand times a second. */
static void
test_interrupted(void **state)
{
	static char data[64 * BLOCK];
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	struct sigaction action = {.sa_handler = count_signal};
	struct sigaction action_before;
	struct itimerval often = {{0, 1000}, {0, 1000}};
	struct itimerval never = {{0, 0}, {0, 0}};

	assert_true(fd >= 0);
	fill(data, sizeof(data), 5);
	sigaction(SIGALRM, &action, &action_before);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 200; i++)
	{
		GlIoOp		op = write_op(fd, 0, data, sizeof(data), true);

		assert_int_equal(run(io, &op), 0);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &action_before, NULL);
	check_file(fd, 0, data, sizeof(data));
	close(fd);
	gl_io_close(io);
}

static void
test_direct(void **state)
{
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(O_DIRECT | O_DSYNC);
	char	   *data;
	GlIoOp		op;

	if (fd < 0)
	{
		gl_io_close(io);
		print_message("no direct I/O in %s\n", scratch_dir);
		skip();
	}
	data = aligned_alloc(BLOCK, 8 * BLOCK);
	assert_non_null(data);
	fill(data, 8 * BLOCK, 6);
	op = write_op(fd, 4096, data, 4 * BLOCK, false);
	op.direct = true;
	op.iovcnt = 2;
	op.iov[1].iov_base = data + 4 * BLOCK;
	op.iov[1].iov_len = 4 * BLOCK;
	assert_int_equal(run(io, &op), 0);
	check_file(fd, 4096, data, 8 * BLOCK);
	free(data);
	close(fd);
	gl_io_close(io);
}

static void
test_errors(void **state)
{
	static char data[BLOCK];
	GlIo	   *io = open_engine(state);
	char		path[300];
	int			fd;
	GlIoOp		op;

	op = write_op(-1, 0, data, sizeof(data), true);
	assert_int_equal(run(io, &op), EBADF);
	op.kind = GL_IO_FDATASYNC;
	assert_int_equal(run(io, &op), EBADF);
	op.kind = GL_IO_FSYNC;
	assert_int_equal(run(io, &op), EBADF);

	/* a file opened to be read only */
	fd = scratch_file(0);
	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/file", scratch_dir);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	op = write_op(fd, 0, data, sizeof(data), true);
	assert_int_equal(run(io, &op), EBADF);
	close(fd);

	/* a device without space; one that can be written but not synced */
	fd = open("/dev/full", O_RDWR);
	assert_true(fd >= 0);
	op = write_op(fd, 0, data, sizeof(data), true);
	assert_int_equal(run(io, &op), ENOSPC);
	close(fd);
	fd = open("/dev/null", O_RDWR);
	assert_true(fd >= 0);
	op = write_op(fd, 0, data, sizeof(data), true);
	assert_int_equal(run(io, &op), EINVAL);

	/* the engine is as good as before */
	op.sync_after = false;
	assert_int_equal(run(io, &op), 0);
	close(fd);
	gl_io_close(io);
}

/* The kernel writes at most 2 GiB less a page at once: a real short write. */
static void
test_short_write_goes_on(void **state)
{
	const size_t size = (size_t) 5 << 30;
	GlIo	   *io = open_engine(state);
	int			fd = open("/dev/null", O_RDWR);
	char	   *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	GlIoOp		op;

	assert_true(fd >= 0);
	assert_true(data != MAP_FAILED);
	op = write_op(fd, 0, data, size, false);
	assert_int_equal(run(io, &op), 0);
	assert_true(op.done_bytes == size);
	op.direct = true;
	assert_int_equal(run(io, &op), 0);
	assert_true(op.done_bytes == size);
	munmap(data, size);
	close(fd);
	gl_io_close(io);
}

/* A short write, then the limit: the first part is there, the error is told. */
static void
test_file_size_limit(void **state)
{
	static char data[4 * BLOCK];
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	struct rlimit before;
	struct rlimit limit;
	struct stat st;
	GlIoOp		op;
	int			error;

	assert_true(fd >= 0);
	fill(data, sizeof(data), 7);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 10000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	op = write_op(fd, 0, data, sizeof(data), true);
	error = run(io, &op);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

	assert_int_equal(error, EFBIG);
	assert_false(op.syncing);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 10000);
	check_file(fd, 0, data, 10000);
	close(fd);
	gl_io_close(io);
}

static bool
put_text(const char *path, const char *text)
{
	int			fd = open(path, O_WRONLY);
	bool		done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* A tiny file system of this process alone; false where that isn't allowed. */
static bool
mount_tiny_disk(void)
{
	char		uid_map[50];
	char		gid_map[50];

	snprintf(uid_map, sizeof(uid_map), "0 %u 1", (unsigned) geteuid());
	snprintf(gid_map, sizeof(gid_map), "0 %u 1", (unsigned) getegid());
	if (geteuid() == 0)
	{
		if (unshare(CLONE_NEWNS) != 0)
			return false;
	}
	else if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
			 !put_text("/proc/self/setgroups", "deny") ||
			 !put_text("/proc/self/uid_map", uid_map) ||
			 !put_text("/proc/self/gid_map", gid_map))
		return false;

	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		mount("none", scratch_dir, "tmpfs", 0, "size=65536") == 0;
}

static GlIoMethod full_disk_method;

static int
full_disk(void)
{
	static char data[64 * BLOCK];
	GlIoMethod	got;
	char		reason[200];
	char		path[300];
	struct stat st;
	GlIo	   *io;
	GlIoOp		op;
	int			fd;

	/* before the engine: its kernel threads would forbid it */
	if (!mount_tiny_disk())
		return 77;
	io = gl_io_open(full_disk_method, &got, reason, sizeof(reason));
	CHILD_CHECK(io != NULL);
	if (got != full_disk_method)
		return 77;

	snprintf(path, sizeof(path), "%s/full", scratch_dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	CHILD_CHECK(fd >= 0);
	op = write_op(fd, 0, data, sizeof(data), true);
	gl_io_submit(io, &op);
	while (gl_io_in_flight(io) > 0)
		gl_io_reap(io);
	CHILD_CHECK(op.error == ENOSPC);
	CHILD_CHECK(!op.syncing);
	CHILD_CHECK(fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= 65536);

	/* space comes back: so does the engine */
	CHILD_CHECK(ftruncate(fd, 0) == 0);
	op = write_op(fd, 0, data, BLOCK, true);
	gl_io_submit(io, &op);
	while (gl_io_in_flight(io) > 0)
		gl_io_reap(io);
	CHILD_CHECK(op.error == 0);
	gl_io_close(io);
	return 0;
}

static void
test_full_disk(void **state)
{
	full_disk_method = *(const GlIoMethod *) *state;
	in_child(full_disk);
}

static void
test_close_waits(void **state)
{
	static char data[64 * BLOCK];
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	GlIoOp		ops[GL_IO_MAX_IN_FLIGHT];

	assert_true(fd >= 0);
	for (int i = 0; i < GL_IO_MAX_IN_FLIGHT; i++)
	{
		ops[i] = write_op(fd, (uint64_t) i * sizeof(data), data, sizeof(data), true);
		gl_io_submit(io, &ops[i]);
	}
	gl_io_close(io);
	for (int i = 0; i < GL_IO_MAX_IN_FLIGHT; i++)
	{
		assert_int_equal(ops[i].state, GL_IO_DONE);
		assert_int_equal(ops[i].error, 0);
	}
	close(fd);
}

/* ---- the plain engine alone ---- */

static void
test_plain_is_done_at_once(void **state)
{
	static char data[BLOCK];
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	GlIoOp		op = write_op(fd, 0, data, sizeof(data), true);

	assert_true(fd >= 0);
	assert_int_equal(gl_io_fd(io), -1);
	gl_io_submit(io, &op);
	assert_int_equal(op.state, GL_IO_DONE);
	assert_int_equal(gl_io_in_flight(io), 0);
	assert_int_equal(gl_io_reap(io), 1);
	assert_int_equal(gl_io_reap(io), 0);
	close(fd);
	gl_io_close(io);
}

/* ---- io_uring alone ---- */

/* The descriptor is readable exactly as long as there is something to reap. */
static void
test_wait(void **state)
{
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	static char data[8192];
	GlIoOp		op = write_op(fd, 0, data, sizeof(data), true);

	fill(data, sizeof(data), 3);
	assert_false(gl_io_wait(io, 1000));
	gl_io_submit(io, &op);
	for (int rounds = 0; op.state != GL_IO_DONE; rounds++)
	{
		assert_true(rounds < 1000);
		if (!gl_io_wait(io, 10000))
			wait_all(io);
	}
	assert_int_equal(op.error, 0);
	assert_int_equal(gl_io_reap(io), 1);
	check_file(fd, 0, data, sizeof(data));
	close(fd);
	gl_io_close(io);
}

static void
test_uring_fd(void **state)
{
	static char data[BLOCK];
	GlIo	   *io = open_engine(state);
	int			fd = scratch_file(0);
	struct pollfd pollfd = {.fd = gl_io_fd(io),.events = POLLIN};
	GlIoOp		op = write_op(fd, 0, data, sizeof(data), false);
	int			rc;

	assert_true(fd >= 0);
	assert_true(pollfd.fd >= 0);
	assert_true(fcntl(pollfd.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	gl_io_submit(io, &op);
	do
	{
		rc = poll(&pollfd, 1, 10000);
	} while (rc < 0 && errno == EINTR);
	assert_int_equal(rc, 1);
	assert_int_equal(op.state, GL_IO_IN_FLIGHT);
	assert_int_equal(gl_io_in_flight(io), 1);
	assert_int_equal(gl_io_reap(io), 1);
	assert_int_equal(op.state, GL_IO_DONE);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	close(fd);
	gl_io_close(io);
}

/* From now on, in this process, a system call fails with this error. */
static bool
refuse(long number, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned) error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = filter,
	};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int
write_and_check(GlIo *io)
{
	static char data[3 * BLOCK];
	static char found[3 * BLOCK];
	int			fd = scratch_file(0);
	GlIoOp		op = write_op(fd, 0, data, sizeof(data), true);

	CHILD_CHECK(fd >= 0);
	fill(data, sizeof(data), 8);
	for (int i = 0; i < 100; i++)
	{
		int			reaped;

		gl_io_submit(io, &op);
		CHILD_CHECK(op.state == GL_IO_DONE);
		CHILD_CHECK(op.error == 0);
		CHILD_CHECK(gl_io_in_flight(io) == 0);
		reaped = gl_io_reap(io);
		CHILD_CHECK(reaped == 1);
	}
	CHILD_CHECK(pread(fd, found, sizeof(found), 0) == (ssize_t) sizeof(found));
	CHILD_CHECK(memcmp(found, data, sizeof(data)) == 0);
	close(fd);
	return 0;
}

static long refused_call;
static int	refused_error;

static int
refused_at_open(void)
{
	GlIoMethod	got = GL_IO_URING;
	char		reason[200] = "?";
	char		tiny[8];
	GlIo	   *io;

	if (!refuse(refused_call, refused_error))
		return 77;
	io = gl_io_open(GL_IO_URING, &got, reason, sizeof(reason));
	CHILD_CHECK(io != NULL);
	CHILD_CHECK(got == GL_IO_SYNC);
	CHILD_CHECK(strlen(reason) > 10);
	printf("reason: %s\n", reason);
	CHILD_CHECK(gl_io_fd(io) == -1);
	if (write_and_check(io) != 0)
		return 1;
	gl_io_close(io);

	/* a reason is cut to the room there is */
	io = gl_io_open(GL_IO_URING, &got, tiny, sizeof(tiny));
	CHILD_CHECK(io != NULL);
	CHILD_CHECK(strlen(tiny) < sizeof(tiny));
	gl_io_close(io);
	return 0;
}

static void
test_refused_setup(void **state)
{
	const int	errors[] = {ENOSYS, EPERM, ENOMEM, EINVAL, EMFILE};

	(void) state;
	refused_call = SYS_io_uring_setup;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
	{
		refused_error = errors[i];
		in_child(refused_at_open);
	}
}

static void
test_refused_enter(void **state)
{
	(void) state;
	refused_call = SYS_io_uring_enter;
	refused_error = EPERM;
	in_child(refused_at_open);
}

/* Taken away while in use: every operation is still carried out. */
static int
refused_later(void)
{
	GlIoMethod	got;
	char		reason[200];
	GlIo	   *io = gl_io_open(GL_IO_URING, &got, reason, sizeof(reason));

	CHILD_CHECK(io != NULL);
	if (got != GL_IO_URING || !refuse(SYS_io_uring_enter, EAGAIN))
		return 77;
	if (write_and_check(io) != 0)
		return 1;
	gl_io_close(io);
	return 0;
}

static void
test_refused_later(void **state)
{
	(void) state;
	in_child(refused_later);
}

static void
test_plain_needs_no_uring(void **state)
{
	GlIoMethod	got = GL_IO_URING;
	char		reason[200] = "?";
	GlIo	   *io;

	(void) state;
	io = gl_io_open(GL_IO_SYNC, &got, reason, sizeof(reason));
	assert_non_null(io);
	assert_int_equal(got, GL_IO_SYNC);
	assert_string_equal(reason, "");
	gl_io_close(io);
	io = gl_io_open(GL_IO_SYNC, &got, NULL, 0);
	assert_non_null(io);
	gl_io_close(io);
}

static int
make_scratch(void **state)
{
	const char *base = getenv("TMPDIR");

	(void) state;
	snprintf(scratch_dir, sizeof(scratch_dir), "%s/grouplog-io-XXXXXX", base ? base : "/tmp");
	return mkdtemp(scratch_dir) == NULL ? -1 : 0;
}

static int
remove_scratch(void **state)
{
	char		path[300];

	(void) state;
	snprintf(path, sizeof(path), "%s/file", scratch_dir);
	unlink(path);
	return rmdir(scratch_dir);
}

#define WITH(engine, test) \
	{#test " (" #engine ")", test, NULL, NULL, (void *) &engine}
#define BOTH(test)	WITH(plain, test), WITH(uring, test)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_buffered),
		cmocka_unit_test(test_steps_direct),
		cmocka_unit_test(test_steps_no_progress),
		BOTH(test_write_sync_read),
		BOTH(test_read),
		BOTH(test_sync_directory),
		BOTH(test_several_iovecs),
		BOTH(test_nothing_to_write),
		BOTH(test_interrupted),
		BOTH(test_direct),
		BOTH(test_errors),
		BOTH(test_short_write_goes_on),
		BOTH(test_file_size_limit),
		BOTH(test_full_disk),
		BOTH(test_close_waits),
		BOTH(test_wait),
		WITH(uring, test_many_in_flight),
		WITH(plain, test_many_in_flight),
		WITH(plain, test_plain_is_done_at_once),
		WITH(uring, test_uring_fd),
		cmocka_unit_test(test_refused_setup),
		cmocka_unit_test(test_refused_enter),
		cmocka_unit_test(test_refused_later),
		cmocka_unit_test(test_plain_needs_no_uring),
	};

	return cmocka_run_group_tests_name("io", tests, make_scratch, remove_scratch);
}
