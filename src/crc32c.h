/*-------------------------------------------------------------------------
 *
 * crc32c.h
 *		CRC-32C (Castagnoli), as PostgreSQL computes it.
 *
 * A thin door to PostgreSQL's own implementation, so that the pure modules
 * need no server header: crc32c.c is the only file that knows where the
 * routine comes from (the server, or libpgport for programs outside it).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_CRC32C_H
#define GROUPLOG_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define GL_CRC32C_INIT		UINT32_C(0xFFFFFFFF)
#define GL_CRC32C_FINAL(crc)	((crc) ^ UINT32_C(0xFFFFFFFF))

/* Extend a running (not finalised) CRC by len bytes. */
extern uint32_t gl_crc32c(uint32_t crc, const void *data, size_t len);

#endif							/* GROUPLOG_CRC32C_H */
