/*-------------------------------------------------------------------------
 *
 * simmemory.c
 *		Memory contexts, for sim_log: lists.
 *
 *-------------------------------------------------------------------------
 */
#include "simos.h"

#include "utils/memutils.h"

typedef struct Chunk
{
	struct Chunk *next;
	struct Chunk *before;
	Size		size;
	Size		filler;			/* what follows is aligned to 16 bytes */
} Chunk;

typedef struct Context
{
	MemoryContextData header;	/* nothing of it is used */
	Chunk		list;
	struct Context *next;		/* of the process */
	MemoryContextCallback *callback;
} Context;

static void
list_init(Chunk *list)
{
	list->next = list->before = list;
}

static void *
chunk_new(MemoryContext context, Size size)
{
	Chunk	   *list = &((Context *) context)->list;
	Chunk	   *chunk = malloc(sizeof(Chunk) + size);

	chunk->size = size;
	chunk->next = list->next;
	chunk->before = list;
	chunk->next->before = list->next = chunk;
	return chunk + 1;
}

static void
chunk_free(Chunk *chunk)
{
	chunk->next->before = chunk->before;
	chunk->before->next = chunk->next;
	free(chunk);
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return chunk_new(context, size);
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return chunk_new(context, size);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return memset(chunk_new(context, size), 0, size);
}

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	return chunk_new(context, size);
}

void *
palloc(Size size)
{
	return chunk_new(CurrentMemoryContext, size);
}

void *
palloc0(Size size)
{
	return memset(palloc(size), 0, size);
}

void *
palloc_extended(Size size, int flags)
{
	return palloc(size);
}

void
pfree(void *pointer)
{
	chunk_free((Chunk *) pointer - 1);
}

void *
repalloc_huge(void *pointer, Size size)
{
	Chunk	   *old = (Chunk *) pointer - 1;
	Chunk	   *chunk = malloc(sizeof(Chunk) + size);

	memcpy(chunk + 1, old + 1, Min(old->size, size));
	chunk->size = size;
	chunk->next = old->next;
	chunk->before = old;
	chunk->next->before = old->next = chunk;
	chunk_free(old);
	return chunk + 1;
}

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size minContextSize,
							  Size initBlockSize, Size maxBlockSize)
{
	Context    *context = calloc(1, sizeof(Context));

	list_init(&context->list);
	context->next = sim_self->memory;
	sim_self->memory = context;
	return &context->header;
}

void
MemoryContextReset(MemoryContext header)
{
	Context    *context = (Context *) header;

	while (context->callback != NULL)
	{
		MemoryContextCallback *callback = context->callback;

		context->callback = callback->next;
		callback->func(callback->arg);
	}
	while (context->list.next != &context->list)
		chunk_free(context->list.next);
}

void
MemoryContextDelete(MemoryContext header)
{
	void	  **at = &sim_self->memory;

	MemoryContextReset(header);
	while (*at != (void *) header)
		at = (void **) &((Context *) *at)->next;
	*at = ((Context *) header)->next;
	free(header);
}

void
MemoryContextRegisterResetCallback(MemoryContext header, MemoryContextCallback *callback)
{
	callback->next = ((Context *) header)->callback;
	((Context *) header)->callback = callback;
}

void
MemoryContextSetParent(MemoryContext context, MemoryContext parent)
{
}

void
sim_memory_free(SimProcess *process)
{
	for (Context *context = process->memory, *next; context != NULL; context = next)
	{
		next = context->next;
		while (context->list.next != &context->list)
			chunk_free(context->list.next);
		free(context);
	}
	process->memory = NULL;
}
