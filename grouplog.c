/*-------------------------------------------------------------------------
 *
 * grouplog.c
 *		A durable group-commit log inside PostgreSQL.
 *
 * Where the library meets the server: settings, shared memory, the worker.
 * Everything else is in src/; doc/design.md says what is where.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"

#include "src/compat.h"
#include "src/config.h"
#include "src/segment.h"
#include "src/shared.h"
#include "src/writer.h"

GL_MODULE_MAGIC("grouplog", "1.0.0");

void		_PG_init(void);

static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
grouplog_shmem_startup(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	gl_shared_startup();
}

void
_PG_init(void)
{
	/* Loaded by a session: the functions say what is missing. */
	if (!process_shared_preload_libraries_in_progress)
		return;

	gl_config_define();
	if (gl_buffers * INT64CONST(1024) > gl_segment_size * INT64CONST(1024) * 1024)
		ereport(LOG,
				(errmsg("\"grouplog.buffers\" is larger than \"grouplog.segment_size\", which is used instead")));

	gl_request_shared_memory(gl_shared_size);
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = grouplog_shmem_startup;

	/* pg_upgrade starts servers of its own: no log in those. */
	if (IsBinaryUpgrade)
		return;
	gl_restored_mark_if_backup();
	gl_writer_register();
}
