/*-------------------------------------------------------------------------
 *
 * knobs.c
 *		What faultfs is told to do wrong.
 *
 * See knobs.h.
 *
 *-------------------------------------------------------------------------
 */
#include "knobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

typedef struct Name
{
	const char *name;
	int			value;
} Name;

static const Name call_names[] = {
	{"write", ON_WRITE}, {"sync", ON_SYNC}, {"read", ON_READ}, {"open", ON_OPEN},
	{"create", ON_CREATE}, {"rename", ON_RENAME}, {"unlink", ON_UNLINK},
	{"truncate", ON_TRUNCATE}, {"names", ON_NAMES}, {NULL, 0}
};
static const Name file_names[] = {
	{"segment", SEGMENT}, {"spare", SPARE}, {"control", CONTROL}, {"other", OTHER}, {NULL, 0}
};
static const Name error_names[] = {
	{"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS}, {NULL, 0}
};
static const Name keep_names[] = {
	{"nothing", KEEP_NOTHING}, {"all", KEEP_ALL}, {"first", KEEP_FIRST}, {"last", KEEP_LAST},
	{"hole", KEEP_HOLE}, {"one", KEEP_ONE}, {"any", KEEP_ANY}, {NULL, 0}
};

typedef struct Fault
{
	int			on;
	int			file;
	int			error;
	long		bytes;
	long		delay;
	long		skip;
	long		count;
	long		chance;
	bool		flip;
	bool		lose;
	bool		cut;
	long		hits;
} Fault;

#define FAULTS 8
#define SLICE_US 20000

static pthread_mutex_t disk_lock = PTHREAD_MUTEX_INITIALIZER;
static Fault faults[FAULTS];
long		space = -1;
int			space_error = ENOSPC;
bool		read_only = false;
bool		shows_short = false;
bool		power_is_off = false;
static long clears = 0;
static Plan cut_plan = {KEEP_NOTHING, SECTOR, -1};

void
lock(void)
{
	pthread_mutex_lock(&disk_lock);
}

int
unlock(int result)
{
	pthread_mutex_unlock(&disk_lock);
	return result;
}

/* Without the lock for so long, or until the faults are cleared. */
static void
pause_us(long us)
{
	long		seen = clears;

	while (us > 0 && clears == seen)
	{
		long		part = us < SLICE_US ? us : SLICE_US;
		struct timespec rest = {0, part * 1000};

		pthread_mutex_unlock(&disk_lock);
		nanosleep(&rest, NULL);
		pthread_mutex_lock(&disk_lock);
		us -= part;
	}
}

Strike
strike(int on, int class)
{
	Strike		sum = {.bytes = -1};
	long		delay = 0;

	for (int i = 0; i < FAULTS; i++)
	{
		Fault	   *fault = &faults[i];

		if (!(fault->on & on) || !(fault->file & class))
			continue;
		if (fault->chance > 0 && disk_random(1000000) >= (uint64_t) fault->chance)
			continue;
		if (fault->skip > 0)
		{
			fault->skip--;
			continue;
		}
		if (fault->count == 0)
			continue;
		if (fault->count > 0)
			fault->count--;
		fault->hits++;
		if (fault->error != 0)
			sum.error = fault->error;
		if (fault->bytes >= 0)
			sum.bytes = fault->bytes;
		delay += fault->delay;
		sum.flip |= fault->flip;
		sum.lose |= fault->lose;
		sum.cut |= fault->cut;
	}
	pause_us(delay);
	return sum;
}

void
cut_power(void)
{
	power_is_off = true;
	/* a disk that does not do what it should is no basis for any test */
	if (disk_cut(disk_root(), &cut_plan, true) != 0)
		abort();
}

static bool
value_of(const Name *names, const char *text, int *value)
{
	for (; names->name != NULL; names++)
	{
		if (strcmp(names->name, text) == 0)
		{
			*value = names->value;
			return true;
		}
	}
	return false;
}

static bool
values_of(const Name *names, char *list, int *sum)
{
	char	   *rest;
	int			value;

	*sum = 0;
	for (char *word = strtok_r(list, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
	{
		if (!value_of(names, word, &value))
			return false;
		*sum |= value;
	}
	return *sum != 0;
}

static bool
set_fault(int slot, char *settings)
{
	Fault		fault = {.file = SEGMENT, .bytes = -1, .count = -1};
	char	   *rest;

	if (slot < 0 || slot >= FAULTS)
		return false;
	for (char *word = strtok_r(settings, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
	{
		char	   *value = strchr(word, '=');

		if (value == NULL)
			return false;
		*value++ = '\0';
		if (strcmp(word, "on") == 0)
		{
			if (!values_of(call_names, value, &fault.on))
				return false;
		}
		else if (strcmp(word, "file") == 0)
		{
			if (!values_of(file_names, value, &fault.file))
				return false;
		}
		else if (strcmp(word, "errno") == 0)
		{
			if (!value_of(error_names, value, &fault.error))
				return false;
		}
		else if (strcmp(word, "bytes") == 0)
			fault.bytes = atol(value);
		else if (strcmp(word, "delay") == 0)
			fault.delay = atol(value);
		else if (strcmp(word, "skip") == 0)
			fault.skip = atol(value);
		else if (strcmp(word, "count") == 0)
			fault.count = atol(value);
		else if (strcmp(word, "chance") == 0)
			fault.chance = atol(value);
		else if (strcmp(word, "flip") == 0)
			fault.flip = atol(value) != 0;
		else if (strcmp(word, "lose") == 0)
			fault.lose = atol(value) != 0;
		else if (strcmp(word, "cut") == 0)
			fault.cut = atol(value) != 0;
		else
			return false;
	}
	if (fault.on == 0)
		return false;
	faults[slot] = fault;
	return true;
}

static bool
read_plan(const char *keep, long unit, Plan *plan)
{
	int			value;

	if (!value_of(keep_names, keep, &value) || (unit != 512 && unit != 4096))
		return false;
	plan->keep = (Keep) value;
	plan->unit = (uint32_t) unit;
	plan->point = -1;
	return true;
}

static void
obey(char *line, FILE *answer)
{
	char		name[512];
	char		word[32];
	long		number = 0;
	long		second = 0;
	int			used = 0;
	int			failed = 0;
	Plan		plan;

	if (sscanf(line, "fault %ld %n", &number, &used) == 1)
		failed = set_fault((int) number, line + used) ? 0 : -EINVAL;
	else if (sscanf(line, "clear %ld", &number) == 1 && number >= 0 && number < FAULTS)
	{
		memset(&faults[number], 0, sizeof(Fault));
		clears++;
	}
	else if (strcmp(line, "clear") == 0)
	{
		memset(faults, 0, sizeof(faults));
		clears++;
	}
	else if (sscanf(line, "hits %ld", &number) == 1 && number >= 0 && number < FAULTS)
	{
		fprintf(answer, "ok %ld\n", faults[number].hits);
		return;
	}
	else if (sscanf(line, "space %ld %31s", &number, word) == 2 &&
			 value_of(error_names, word, &space_error))
		space = number;
	else if (sscanf(line, "readonly %ld", &number) == 1)
		read_only = number != 0;
	else if (sscanf(line, "short %ld", &number) == 1)
		shows_short = number != 0;
	else if (sscanf(line, "flip %500s %ld %ld", name, &number, &second) == 3)
	{
		char		full[NAME_SIZE + 512];

		snprintf(full, sizeof(full), "data/%s", name);
		failed = -(int) disk_flip(full, number, (int) second);
	}
	else if (sscanf(line, "seed %ld", &number) == 1)
		disk_seed((uint64_t) number);
	else if (sscanf(line, "plan %31s %ld", word, &second) == 2 && read_plan(word, second, &plan))
		cut_plan = plan;
	else if (sscanf(line, "cut %31s %ld", word, &second) == 2 && read_plan(word, second, &plan))
	{
		cut_plan = plan;
		cut_power();
	}
	else if (strcmp(line, "power") == 0)
		power_is_off = false;
	else if (sscanf(line, "image %500s %31s %ld %n", name, word, &second, &used) == 3 &&
			 read_plan(word, second, &plan))
	{
		if (line[used] != '\0')
			plan.point = atol(line + used);
		failed = disk_image(name, &plan);
	}
	else if (strcmp(line, "state") == 0)
	{
		fprintf(answer, "ok off=%d ", power_is_off);
		disk_report(answer);
		fprintf(answer, "\n");
		return;
	}
	else
		failed = -EINVAL;

	if (failed != 0)
		fprintf(answer, "error %s\n", strerror(-failed));
	else
		fprintf(answer, "ok\n");
}

static void *
listen_for_commands(void *arg)
{
	int			listener = *(int *) arg;

	for (;;)
	{
		int			fd = accept(listener, NULL, NULL);
		FILE	   *stream = fd >= 0 ? fdopen(fd, "r+") : NULL;
		char		line[1024];

		if (stream == NULL)
			continue;
		if (fgets(line, sizeof(line), stream) != NULL)
		{
			line[strcspn(line, "\n")] = '\0';
			fseek(stream, 0, SEEK_CUR);
			lock();
			obey(line, stream);
			unlock(0);
		}
		fclose(stream);
	}
	return NULL;
}

int
knobs_listen(const char *socket_path)
{
	static int	listener;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	pthread_t	thread;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *) &address, sizeof(address)) != 0 ||
		chmod(socket_path, 0666) != 0 || listen(listener, 8) != 0)
		return -errno;
	return -pthread_create(&thread, NULL, listen_for_commands, &listener);
}
