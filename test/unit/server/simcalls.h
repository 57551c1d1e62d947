/*-------------------------------------------------------------------------
 *
 * simcalls.h
 *		What the modules' system calls become in sim_log; see simcalls.syms.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMCALLS_H
#define SIMCALLS_H

#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>

#include "ring.h"

#define gl_directory_name "log"

struct itimerspec;
struct sigaction;

extern int	sim_open(const char *path, int flags);
extern int	sim_close(int fd);
extern int	sim_flock(int fd, int operation);
extern ssize_t sim_pread(int fd, void *buf, size_t size, off_t offset);
extern ssize_t sim_preadv(int fd, const struct iovec *iov, int iovcnt, off_t offset);
extern ssize_t sim_pwrite(int fd, const void *buf, size_t size, off_t offset);
extern ssize_t sim_pwritev(int fd, const struct iovec *iov, int iovcnt, off_t offset);
extern int	sim_fsync(int fd);
extern int	sim_fdatasync(int fd);
extern int	sim_rename(const char *from, const char *to);
extern int	sim_unlink(const char *path);
extern int	sim_truncate(const char *path, off_t size);
extern int	sim_ftruncate(int fd, off_t size);
extern int	sim_fstat(int fd, struct stat *st);
extern int	sim_stat(const char *path, struct stat *st);
extern int	sim_lstat(const char *path, struct stat *st);
extern int	sim_access(const char *path, int mode);
extern int	sim_statvfs(const char *path, struct statvfs *st);
extern struct dirent *sim_readdir(DIR *dir);
extern ssize_t sim_read(int fd, void *buf, size_t size);
extern int	sim_clock_gettime(clockid_t clock, struct timespec *now);
extern long sim_syscall(long number,...);
extern int	sim_timerfd_create(int clock, int flags);
extern int	sim_timerfd_settime(int fd, int flags, const struct itimerspec *when,
								struct itimerspec *before);
extern int	sim_sigaction(int signo, const struct sigaction *action, struct sigaction *before);
extern int	sim_prctl(int option,...);
extern void sim_ring_publish(GlRing *ring, uint64_t lsn, uint32_t hint);
extern uint64_t sim_insert_lsn(const GlRing *ring);
extern bool sim_token_take(void);

#endif							/* SIMCALLS_H */
