/*-------------------------------------------------------------------------
 *
 * sync_method.h
 *		Which sync method the writer uses.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SYNC_METHOD_H
#define GROUPLOG_SYNC_METHOD_H

#include "postgres.h"

/* Does an errno of a direct open, read or write say that there is no direct I/O? */
extern bool gl_no_direct_io(int os_error);

/* Find out whether the file system has direct I/O, and which sync method to use. */
extern void gl_sync_method_probe(void);

/* The flags beside O_RDWR for the file being written. */
extern int	gl_sync_method_open_flags(void);

#endif							/* GROUPLOG_SYNC_METHOD_H */
