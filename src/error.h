/*-------------------------------------------------------------------------
 *
 * error.h
 *		An error as a value: found in one process, told in another.
 *
 * The writer meets the disk, the sessions meet the users.  A GlError carries
 * what a session must say, in fixed memory, so it fits into shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_ERROR_H
#define GROUPLOG_ERROR_H

#include "postgres.h"

typedef struct GlError
{
	int			sqlstate;		/* 0: no error */
	int			os_error;		/* errno, or 0 */
	char		message[384];
	char		detail[384];	/* may be "" */
	char		hint[256];		/* may be "" */
} GlError;

/* detail and hint may be NULL; message and detail are formats over the rest */
extern void gl_error_set(GlError *error, int sqlstate, int os_error, const char *hint,
						 const char *message, ...) pg_attribute_printf(5, 6);
extern void gl_error_detail(GlError *error, const char *detail, ...) pg_attribute_printf(2, 3);
extern void gl_error_clear(GlError *error);

/* SQLSTATE for an errno, as errcode_for_file_access would choose it. */
extern int	gl_error_sqlstate(int os_error);

extern void gl_error_report(int elevel, const GlError *error);

#endif							/* GROUPLOG_ERROR_H */
