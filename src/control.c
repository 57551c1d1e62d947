/*-------------------------------------------------------------------------
 *
 * control.c
 *		The control file of the log.
 *
 * The control file is one block, replaced by rename:
 *
 *	offset size field
 *	   0     8   magic "glcontrl"
 *	   8     4   version, 1
 *	  12     4   zero
 *	  16     8   system identifier
 *	  24     8   log id
 *	  32     8   holes_end
 *	  40     8   last_lsn
 *	  48     4   last_number
 *	  52  4040   zero
 *	4092     4   CRC-32C over bytes 0..4091
 *
 *-------------------------------------------------------------------------
 */
#include "segment.h"

#include <fcntl.h>
#include <unistd.h>

#include "crc32c.h"
#include "storage/fd.h"

#define CONTROL_MAGIC	"glcontrl"
#define CONTROL_VERSION 1

typedef struct ControlBlock
{
	char		magic[8];
	uint32		version;
	uint32		zero;
	uint64		system_identifier;
	uint64		log_id;
	uint64		holes_end;
	uint64		last_lsn;
	uint32		last_number;
	char		rest[GL_BLOCK - 56];
	uint32		crc;
} ControlBlock;

StaticAssertDecl(sizeof(ControlBlock) == GL_BLOCK, "the control file is one block");
StaticAssertDecl(offsetof(ControlBlock, crc) == 4092, "crc at 4092");

GlControl	gl_control;

bool
gl_control_read(GlControl *control, bool *exists, GlError *error)
{
	char		path[MAXPGPATH];
	ControlBlock block;
	int			fd;
	ssize_t		got;

	*exists = false;
	gl_directory_path(path, GL_CONTROL_NAME);
	fd = gl_open_file(path, O_RDONLY);
	if (fd < 0)
	{
		if (errno == ENOENT)
			return true;
		return gl_file_error(error, errno, "open file", path);
	}
	got = pread(fd, &block, sizeof(block), 0);
	if (got < 0)
	{
		int			os_error = errno;

		close(fd);
		return gl_file_error(error, os_error, "read file", path);
	}
	close(fd);
	if (got != sizeof(block) || memcmp(block.magic, CONTROL_MAGIC, 8) != 0 ||
		block.crc != GL_CRC32C_FINAL(gl_crc32c(GL_CRC32C_INIT, &block, offsetof(ControlBlock, crc))))
	{
		gl_error_set(error, ERRCODE_DATA_CORRUPTED, 0,
					 "Restore the file from a backup, or move the whole directory away to begin a new log.",
					 "control file \"%s\" is damaged", path);
		return false;
	}
	if (block.version != CONTROL_VERSION)
	{
		gl_error_set(error, ERRCODE_FEATURE_NOT_SUPPORTED, 0,
					 "Install the version of grouplog that wrote it.",
					 "control file \"%s\" has version %u, not %d", path, block.version, CONTROL_VERSION);
		return false;
	}
	control->system_identifier = block.system_identifier;
	control->log_id = block.log_id;
	control->holes_end = block.holes_end;
	control->last_lsn = block.last_lsn;
	control->last_number = block.last_number;
	*exists = true;
	return true;
}

bool
gl_control_write(const GlControl *control, GlError *error)
{
	char		path[MAXPGPATH];
	char		tmp[MAXPGPATH];
	ControlBlock block;
	int			fd;
	int			failed = 0;

	memset(&block, 0, sizeof(block));
	memcpy(block.magic, CONTROL_MAGIC, 8);
	block.version = CONTROL_VERSION;
	block.system_identifier = control->system_identifier;
	block.log_id = control->log_id;
	block.holes_end = control->holes_end;
	block.last_lsn = control->last_lsn;
	block.last_number = control->last_number;
	block.crc = GL_CRC32C_FINAL(gl_crc32c(GL_CRC32C_INIT, &block, offsetof(ControlBlock, crc)));

	gl_directory_path(path, GL_CONTROL_NAME);
	gl_directory_path(tmp, GL_CONTROL_NAME GL_TMP_SUFFIX);

	/* A new file: a write of the last one that failed may still land there. */
	if (unlink(tmp) != 0 && errno != ENOENT)
		return gl_file_error(error, errno, "remove file", tmp);
	fd = gl_open_file(tmp, O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return gl_file_error(error, errno, "create file", tmp);
	errno = 0;
	if (pwrite(fd, &block, sizeof(block), 0) != sizeof(block))
		failed = errno ? errno : ENOSPC;
	if (failed == 0)
		failed = gl_sync_fd(fd);
	close(fd);
	if (failed != 0)
		return gl_file_error(error, failed, "write file", tmp);
	if (rename(tmp, path) != 0)
		return gl_file_error(error, errno, "rename file", tmp);
	return gl_directory_sync(error);
}
