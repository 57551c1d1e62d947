/*-------------------------------------------------------------------------
 *
 * error.c
 *		An error as a value: found in one process, told in another.
 *
 *-------------------------------------------------------------------------
 */
#include "error.h"

#include <errno.h>

/* Sessions may have another encoding than the writer: nothing but ASCII. */
static void
clean(char *text)
{
	for (; *text != '\0'; text++)
	{
		if ((unsigned char) *text >= 0x80)
			*text = '?';
	}
}

void
gl_error_set(GlError *error, int sqlstate, int os_error, const char *hint,
			 const char *message, ...)
{
	va_list		args;

	error->sqlstate = sqlstate;
	error->os_error = os_error;
	error->detail[0] = '\0';
	strlcpy(error->hint, hint ? hint : "", sizeof(error->hint));
	va_start(args, message);
	errno = os_error;			/* for %m */
	vsnprintf(error->message, sizeof(error->message), message, args);
	va_end(args);
	clean(error->message);
}

void
gl_error_detail(GlError *error, const char *detail, ...)
{
	va_list		args;

	va_start(args, detail);
	errno = error->os_error;
	vsnprintf(error->detail, sizeof(error->detail), detail, args);
	va_end(args);
	clean(error->detail);
}

void
gl_error_clear(GlError *error)
{
	memset(error, 0, sizeof(*error));
}

int
gl_error_sqlstate(int os_error)
{
	switch (os_error)
	{
		case EPERM:
		case EACCES:
		case EROFS:
			return ERRCODE_INSUFFICIENT_PRIVILEGE;
		case ENOENT:
			return ERRCODE_UNDEFINED_FILE;
		case EEXIST:
			return ERRCODE_DUPLICATE_FILE;
		case ENOTDIR:
		case EISDIR:
		case ENOTEMPTY:
			return ERRCODE_WRONG_OBJECT_TYPE;
		case ENOSPC:
		case EDQUOT:
			return ERRCODE_DISK_FULL;
		case ENOMEM:
			return ERRCODE_OUT_OF_MEMORY;
		case ENFILE:
		case EMFILE:
			return ERRCODE_INSUFFICIENT_RESOURCES;
		case EIO:
			return ERRCODE_IO_ERROR;
		default:
			return ERRCODE_INTERNAL_ERROR;
	}
}

void
gl_error_report(int elevel, const GlError *error)
{
	ereport(elevel,
			(errcode(error->sqlstate),
			 errmsg_internal("%s", error->message),
			 error->detail[0] ? errdetail_internal("%s", error->detail) : 0,
			 error->hint[0] ? errhint("%s", error->hint) : 0));
}
