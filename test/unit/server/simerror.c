/*-------------------------------------------------------------------------
 *
 * simerror.c
 *		Errors and interrupts, for sim_log.
 *
 * Errors jump, interrupts are held and handled, exit callbacks run, as they do
 * in a server.
 *
 *-------------------------------------------------------------------------
 */
#include "simos.h"

#include <stdarg.h>

#include "miscadmin.h"
#include "simcalls.h"

static bool
error_start(int elevel)
{
	sim_self->elevel = elevel;
	sim_self->sqlstate = ERRCODE_INTERNAL_ERROR;
	sim_self->message[0] = '\0';
	return true;
}

bool
errstart(int elevel, const char *domain)
{
	return error_start(elevel);
}

bool
errstart_cold(int elevel, const char *domain)
{
	return error_start(elevel);
}

int
errcode(int sqlerrcode)
{
	sim_self->sqlstate = sqlerrcode;
	return 0;
}

int
errcode_for_file_access(void)
{
	return 0;
}

#define FORMAT_MESSAGE() \
	do { \
		va_list		args; \
		va_start(args, fmt); \
		vsnprintf(sim_self->message, sizeof(sim_self->message), fmt, args); \
		va_end(args); \
	} while (0)

int
errmsg(const char *fmt,...)
{
	if (sim_verbose || sim_self->elevel >= ERROR)
		FORMAT_MESSAGE();
	return 0;
}

int
errmsg_plural(const char *fmt_singular, const char *fmt_plural, unsigned long n,...)
{
	va_list		args;

	va_start(args, n);
	vsnprintf(sim_self->message, sizeof(sim_self->message), n == 1 ? fmt_singular : fmt_plural, args);
	va_end(args);
	return 0;
}

int
errdetail_plural(const char *fmt_singular, const char *fmt_plural, unsigned long n,...)
{
	return 0;
}

int
errmsg_internal(const char *fmt,...)
{
	if (sim_verbose || sim_self->elevel >= ERROR)
		FORMAT_MESSAGE();
	return 0;
}

int
errdetail(const char *fmt,...)
{
	return 0;
}

int
errdetail_internal(const char *fmt,...)
{
	return 0;
}

int
errhint(const char *fmt,...)
{
	return 0;
}

int
errcontext_msg(const char *fmt,...)
{
	return 0;
}

int
set_errcontext_domain(const char *domain)
{
	return 0;
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	int			elevel = sim_self->elevel;

	if (sim_verbose)
		printf("%10.3f ms  process %d  %s%s\n", (double) sim_time_ns / 1e6, sim_self->pid,
			   elevel >= FATAL ? "FATAL: " : elevel >= ERROR ? "ERROR: " : "", sim_self->message);
	if (elevel < ERROR)
		return;
	for (ErrorContextCallback *context = error_context_stack; context != NULL; context = context->previous)
		context->callback(context->arg);
	InterruptHoldoffCount = 0;
	if (elevel >= FATAL || PG_exception_stack == NULL)
		proc_exit(1);
	siglongjmp(*PG_exception_stack, 1);
}

void
pg_re_throw(void)
{
	if (PG_exception_stack == NULL)
		proc_exit(1);
	siglongjmp(*PG_exception_stack, 1);
}

void
ExceptionalCondition(SIM_ASSERTION_ARGS)
{
	violation("assertion failed: %s, %s:%d", condition, file, line);
	fflush(stdout);
	abort();
}

void
ProcessInterrupts(void)
{
	if (InterruptHoldoffCount != 0)
		return;
	InterruptPending = false;
	if (sim_self->terminate)
	{
		sim_self->terminate = false;
		ereport(FATAL, (errcode(ERRCODE_ADMIN_SHUTDOWN), errmsg("terminating connection")));
	}
	if (sim_self->cancel)
	{
		sim_self->cancel = false;
		ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg("canceling statement")));
	}
}

void
before_shmem_exit(pg_on_exit_callback function, Datum arg)
{
	int			i = sim_self->at_exit_count++;

	if (i >= lengthof(sim_self->at_exit))
		abort();
	sim_self->at_exit[i].function = function;
	sim_self->at_exit[i].arg = arg;
}

void
cancel_before_shmem_exit(pg_on_exit_callback function, Datum arg)
{
	int			last = sim_self->at_exit_count - 1;

	if (last >= 0 && sim_self->at_exit[last].function == function && sim_self->at_exit[last].arg == arg)
		sim_self->at_exit_count--;
}

void
proc_exit(int code)
{
	PG_exception_stack = NULL;
	error_context_stack = NULL;
	while (sim_self->at_exit_count > 0)
	{
		int			i = --sim_self->at_exit_count;

		sim_self->at_exit[i].function(code, sim_self->at_exit[i].arg);
	}
	sim_process_end(code);
}

SIM_PQSIGNAL_RESULT
pqsignal(int signo, pqsigfunc func)
{
	return SIM_PQSIGNAL_NOTHING;
}

int
sim_sigaction(int signo, const struct sigaction *action, struct sigaction *before)
{
	if (signo == SIGTERM)
		sim_self->sigterm = action->sa_sigaction;
	return 0;
}
