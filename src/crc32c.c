/*-------------------------------------------------------------------------
 *
 * crc32c.c
 *		CRC-32C (Castagnoli), as PostgreSQL computes it.
 *
 * PostgreSQL picks the fastest routine that the processor has.  This is the
 * only file of the pure modules that knows where that routine comes from: the
 * server when built as part of the extension, libpgport when built with
 * FRONTEND defined.
 *
 *-------------------------------------------------------------------------
 */
#ifdef FRONTEND
#include "postgres_fe.h"
#else
#include "postgres.h"
#endif

#include "port/pg_crc32c.h"

#include "crc32c.h"

uint32_t
gl_crc32c(uint32_t crc, const void *data, size_t len)
{
	pg_crc32c	running = crc;

	COMP_CRC32C(running, data, len);
	return running;
}
