/*-------------------------------------------------------------------------
 *
 * sync_method.c
 *		Which sync method the writer uses: is there direct I/O?
 *
 *-------------------------------------------------------------------------
 */
#include "sync_method.h"

#include <fcntl.h>
#include <unistd.h>

#include "config.h"
#include "miscadmin.h"
#include "segment.h"
#include "shared.h"
#include "utils/memutils.h"

/* A full or read-only file system says nothing about it. */
bool
gl_no_direct_io(int os_error)
{
	return os_error == EINVAL || os_error == EOPNOTSUPP;
}

void
gl_sync_method_probe(void)
{
	char		path[MAXPGPATH];
	char		reason[160] = "";
	GlSyncMethod method = (GlSyncMethod) gl_sync_method;

	if (method == GL_SYNC_OPEN_DATASYNC)
	{
		char	   *block = MemoryContextAlloc(TopMemoryContext, 2 * GL_BLOCK);
		void	   *aligned = (void *) TYPEALIGN(GL_BLOCK, block);
		int			fd;

		gl_directory_path(path, "spare-00000000.tmp");
		memset(aligned, 0, GL_BLOCK);
		fd = gl_open_file(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
		errno = fd >= 0 ? 0 : errno;
		if (fd < 0 || pwrite(fd, aligned, GL_BLOCK, 0) != GL_BLOCK)
		{
			int			os_error = errno ? errno : ENOSPC;

			if (gl_no_direct_io(os_error))
			{
				method = GL_SYNC_FDATASYNC;
				snprintf(reason, sizeof(reason), "the file system of \"%.80s\" has no direct I/O: %s",
						 gl_directory, strerror(os_error));
				ereport(LOG,
						(errmsg("grouplog uses \"fdatasync\" in place of \"open_datasync\": %s", reason),
						 errhint("Put \"grouplog.directory\" on a file system with direct I/O, or set \"grouplog.sync_method\" to \"fdatasync\".")));
			}
		}
		if (fd >= 0)
			close(fd);
		(void) unlink(path);
		pfree(block);
	}
	atomic_store(&gl_shared->sync_method, (uint32) method);
	gl_shared_set_text(gl_shared->sync_reason, reason, sizeof(gl_shared->sync_reason));
}

int
gl_sync_method_open_flags(void)
{
	if (atomic_load(&gl_shared->sync_method) != GL_SYNC_OPEN_DATASYNC)
		return 0;
	return O_DIRECT | (enableFsync ? O_DSYNC : 0);
}
