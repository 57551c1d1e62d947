# grouplog: a durable group-commit log for PostgreSQL
#
#	make                  build the extension
#	make install          install it (as root, as a rule)
#	make test             build and run every test, in a private installation;
#	                      SUITES="unit tap" for some of them (see test/run)
#	make test-faults      every fault that can be staged, as root (under 30 minutes);
#	                      PARTS="sim model" for some of it (see test/faults/run)
#	make demo             see it at work; make demo-stop ends it
#	make unit, make sim   the tests that need no server
#	make sim-deep         the simulation of the log, SIM_STEPS=10000000
#	make fuzz             libFuzzer (clang), FUZZ_SECONDS=600
#	make sanitize         unit tests and simulations with sanitizers
#	make model            the models in test/model, with spin
#	make bench            measure it beside its peers (under 10 minutes);
#	                      make bench-full: everything (an hour). See bench/README.md
#	make soak             everything at once for an hour, in a private installation;
#	                      GROUPLOG_SOAK_SECONDS=600 for ten minutes
#	make installcheck     SQL tests against a running server (preloaded)
#	make clean            remove what was built here
#
# Variables: PG_CONFIG=... the PostgreSQL to build for; USE_LIBURING=no builds
# without liburing, =yes insists on it; WERROR=1 makes warnings errors;
# CC=clang; FILE=... the text that make demo appends, DEMO_DIR=... its folder.

MODULE_big = grouplog
EXTENSION = grouplog
DATA = grouplog--1.0.sql
PGFILEDESC = "grouplog - durable group-commit log"

# where the sources are, also in a VPATH build (make -f .../Makefile)
here := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
sources := $(patsubst $(here)/%,%,$(sort $(wildcard $(here)/src/*.c)))
headers := $(sort $(wildcard $(here)/src/*.h))
OBJS = grouplog.o $(sources:.c=.o)

REGRESS = $(patsubst $(here)/sql/%.sql,%,$(sort $(wildcard $(here)/sql/*.sql)))
ISOLATION = $(patsubst $(here)/specs/%.spec,%,$(sort $(wildcard $(here)/specs/*.spec)))
ifneq ($(wildcard $(here)/t/*.pl),)
TAP_TESTS = 1
endif

EXTRA_CLEAN = build log results regression.diffs regression.out \
	output_iso tmp_check tmp_check_iso

.PHONY: all test demo demo-stop bench bench-full soak unit unit-build \
	sim no-postgresql sim-deep fuzz sanitize sanitize-address \
	sanitize-thread model test-faults faults-build

# what is said when nothing else is
all:

# ---- liburing: by pkg-config, or else by trying ----

USE_LIBURING ?= auto
ifneq ($(USE_LIBURING),no)
liburing_libs := $(shell pkg-config --libs liburing 2>/dev/null)
ifneq ($(liburing_libs),)
liburing_cflags := $(shell pkg-config --cflags liburing)
else
liburing_libs := $(shell echo 'int main(void) { struct io_uring r; return io_uring_queue_init(1, &r, 0); }' | \
	$(CC) -include liburing.h -x c - -o /dev/null -luring 2>/dev/null && echo -luring)
endif
ifneq ($(liburing_libs),)
liburing_cflags += -DUSE_LIBURING
else ifeq ($(USE_LIBURING),yes)
$(error liburing was not found (Debian: liburing-dev))
endif
endif

# ---- warnings ----

# what PostgreSQL's own headers need under -Wextra
warnings = -Wall -Wextra -Wmissing-prototypes \
	-Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers
ifneq ($(findstring clang,$(CC)),)
# a PostgreSQL built with gcc passes on flags and attributes that clang doesn't know,
# and -Wcast-function-type, which clang takes more strictly
of_gcc = -Wno-unknown-warning-option -Wno-ignored-optimization-argument \
	-Wno-ignored-attributes -Wno-cast-function-type-strict
warnings += $(of_gcc)
endif
ifdef WERROR
warnings += -Werror
endif

PG_CPPFLAGS = -DNDEBUG -I$(here)/src $(liburing_cflags)
PG_CFLAGS = $(warnings) -fno-semantic-interposition
# our functions call each other directly, not through the table of symbols
SHLIB_LINK = -Wl,-Bsymbolic-functions $(liburing_libs)

# ---- PostgreSQL's build system, if it is there ----

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)

ifneq ($(wildcard $(PGXS)),)

# Bitcode for JIT needs the clang that PostgreSQL was built with.  Without it
# the extension is as good: its functions are nothing to inline.
clang_of_pg := $(shell sed -n 's/^CLANG *= *//p' $(dir $(PGXS))../Makefile.global)
ifeq ($(shell command -v "$(clang_of_pg)" 2>/dev/null),)
override with_llvm = no
endif

include $(PGXS)

# Every object depends on every header: there are few of both.
$(OBJS) $(OBJS:.o=.bc): $(headers)

# A rule for this folder would find the one of the sources in a VPATH build.
$(shell mkdir -p src)

# ---- tests that need no server ----

# The pure modules build with the system's headers and libpgport's CRC alone.
pure = crc32c histogram io io_uring logmap record recovery ring \
	segment_format sync_meter sync_policy walk
unit = build/unit
unit_dir = $(here)/test/unit
unit_cflags = -std=gnu11 -O2 -g -Wall -Wextra -Wmissing-prototypes $(of_gcc) \
	$(if $(WERROR),-Werror) -DFRONTEND $(UNIT_CFLAGS)
unit_cppflags = -I$(here)/src -I$(unit_dir) $(liburing_cflags) \
	-I$(shell $(PG_CONFIG) --includedir-server) -D_GNU_SOURCE
unit_libs = $(shell $(PG_CONFIG) --pkglibdir)/libpgport.a \
	-lcmocka $(liburing_libs) -lpthread -lm

unit_sources = $(sort $(wildcard $(unit_dir)/*.c))
unit_tests = $(patsubst $(unit_dir)/%.c,$(unit)/%,$(filter $(unit_dir)/test_%,$(unit_sources)))
unit_sims = $(patsubst $(unit_dir)/%.c,$(unit)/%,$(filter $(unit_dir)/sim_%,$(unit_sources)))
fuzz_targets = $(patsubst $(unit_dir)/%.c,%,$(filter $(unit_dir)/fuzz_%,$(unit_sources)))
# anything else there helps several of them
unit_helpers = $(filter-out $(unit_dir)/test_% $(unit_dir)/sim_% $(unit_dir)/fuzz_%,$(unit_sources))
unit_lib_objs = $(patsubst $(here)/src/%.c,$(unit)/%.o,$(wildcard $(pure:%=$(here)/src/%.c))) \
	$(patsubst $(unit_dir)/%.c,$(unit)/%.o,$(unit_helpers))
unit_headers = $(headers) $(wildcard $(unit_dir)/*.h)

unit-build: $(unit_tests) $(unit_sims)

unit: $(unit_tests)
	@failed=0; for t in $^; do $$t || failed=1; done; exit $$failed

sim: $(unit_sims)
	@failed=0; for t in $^; do $$t || failed=1; done; exit $$failed

$(unit)/%.o: $(here)/src/%.c $(unit_headers) | $(unit)
	$(CC) $(unit_cflags) $(unit_cppflags) -c -o $@ $<
$(unit)/fuzz_%.o: $(unit_dir)/fuzz_%.c $(unit_headers) | $(unit)
	$(CC) $(unit_cflags) $(unit_cppflags) -DLLVMFuzzerTestOneInput=fuzz_$* -c -o $@ $<
$(unit)/test_corpus.o: unit_cppflags += -DCORPUS='"$(abspath $(unit_dir))/corpus"'
$(unit)/%.o: $(unit_dir)/%.c $(unit_headers) | $(unit)
	$(CC) $(unit_cflags) $(unit_cppflags) -c -o $@ $<
$(unit)/libpure.a: $(unit_lib_objs)
	rm -f $@
	$(AR) rcs $@ $^
$(unit)/test_corpus: $(fuzz_targets:%=$(unit)/%.o)
$(unit_tests) $(filter-out $(unit)/sim_log,$(unit_sims)): $(unit)/%: $(unit)/%.o $(unit)/libpure.a
	$(CC) $(unit_cflags) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(unit_libs)

# sim_log runs the server's modules, all but those that are SQL, on a simulated
# kernel and PostgreSQL.  Their system calls get other names, and their static
# variables lie in one section, which each simulated process has a copy of.  Their
# stacks are such as AddressSanitizer does not follow.
server_modules = $(filter-out compat config io_uring sql stats_sql stream,$(sources:src/%.c=%))
server_cflags = -std=gnu11 -O2 -g $(warnings) $(if $(findstring clang,$(CC)),,-Wno-clobbered) -fno-pie -fno-strict-aliasing -fwrapv \
	-fexcess-precision=standard $(UNIT_CFLAGS) \
	$(if $(findstring address,$(UNIT_CFLAGS)),--param asan-stack=0)
server_cppflags = -I$(here)/src -I$(unit_dir)/server -I$(unit_dir) -I$(shell $(PG_CONFIG) --includedir-server) \
	-D_GNU_SOURCE -DUSE_LIBURING -DUSE_ASSERT_CHECKING=1 -DGL_SEGMENT_SIZE_MIN=16384 \
	-DGL_SEGMENT_SIZE_MAX=1048576 -DGL_RING_SIZE_MIN=8192 -DGL_LONE_GROUPS=1
$(unit)/server/append.o: server_cppflags += -Dgl_ring_publish=sim_ring_publish
$(unit)/server/lone.o: server_cppflags += -Dgl_token_take=sim_token_take
server_headers = $(unit_headers) $(wildcard $(unit_dir)/server/*.h)

$(unit)/server/%.o: $(here)/src/%.c $(server_headers) | $(unit)/server
	$(CC) $(server_cflags) $(server_cppflags) -include simlooks.h -c -o $@ $<
$(unit)/server/%.o: $(unit_dir)/server/%.c $(server_headers) | $(unit)/server
	$(CC) $(server_cflags) $(server_cppflags) -c -o $@ $<
$(unit)/sim_log.o: $(unit_dir)/sim_log.c $(server_headers) | $(unit)
	$(CC) $(server_cflags) $(server_cppflags) -c -o $@ $<
$(unit)/server/modules.o: $(server_modules:%=$(unit)/server/%.o) $(unit_dir)/server/simcalls.syms
	$(LD) -r -o $@.all $(filter %.o,$^)
	objcopy --redefine-syms=$(unit_dir)/server/simcalls.syms \
		--set-section-flags .bss=alloc,load,contents,data --rename-section .bss=glstate \
		--rename-section .data=glstate $@.all $@
	rm -f $@.all
$(unit)/sim_log: $(unit)/sim_log.o $(unit)/server/modules.o \
	$(patsubst $(unit_dir)/%.c,$(unit)/%.o,$(sort $(wildcard $(unit_dir)/server/*.c)))
	$(CC) $(server_cflags) -no-pie -o $@ $^ $(shell $(PG_CONFIG) --pkglibdir)/libpgport.a -lpthread -lm
$(unit) $(unit)/server:
	mkdir -p $@

.SECONDARY: $(unit_tests:=.o) $(unit_sims:=.o)

# ---- the same, for longer, or under the eyes of others ----

SIM_STEPS ?= 10000000
sim-deep: $(unit)/sim_log $(unit)/sim_recovery
	@failed=0; SIM_STEPS=$(SIM_STEPS) $(unit)/sim_log || failed=1; \
	$(unit)/sim_recovery || failed=1; exit $$failed

# with libFuzzer, FUZZ_SECONDS in all
FUZZ_SECONDS ?= 600
fuzz: $(unit)
	@CLANG=$(FUZZ_CC) SECONDS_IN_ALL=$(FUZZ_SECONDS) BUILD=$(unit) \
		FLAGS="$(filter-out $(liburing_cflags),$(unit_cppflags)) -DFRONTEND" \
		LIBS="$(shell $(PG_CONFIG) --pkglibdir)/libpgport.a" \
		$(unit_dir)/run-fuzz $(fuzz_targets)
FUZZ_CC ?= clang

# unit tests and simulations with sanitizers, in folders of their own
sanitizers = -g -O1 -fno-omit-frame-pointer
sanitize:
	@$(MAKE) -s -f $(here)/Makefile unit=build/address sanitize-address \
		UNIT_CFLAGS="$(sanitizers) -fsanitize=address,undefined -fno-sanitize-recover=all"
	@$(MAKE) -s -f $(here)/Makefile unit=build/thread sanitize-thread \
		UNIT_CFLAGS="$(sanitizers) -fsanitize=thread"
sanitize-address: unit-build
	@ASAN_OPTIONS=detect_stack_use_after_return=0 $(unit_dir)/run-sanitized $(unit) \
		$(notdir $(unit_tests) $(unit_sims))
sanitize-thread: $(unit)/test_ring $(unit)/test_ring_threads
	@$(unit_dir)/run-sanitized $(unit) test_ring test_ring_threads

# with spin
model:
	@$(here)/test/model/run

# ---- programs of the fault bench (test/faults) ----

faults = build/faults
faults_dir = $(here)/test/faults

faults-build: $(faults)/faultfs $(faults)/logcheck

$(faults)/faultfs: $(wildcard $(faults_dir)/*.c $(faults_dir)/*.h)
	mkdir -p $(faults)
	$(CC) $(unit_cflags) -D_GNU_SOURCE -Wno-unused-parameter $(shell pkg-config --cflags fuse3) -o $@ \
		$(filter-out %/logcheck.c,$(filter %.c,$^)) $(shell pkg-config --libs fuse3) -lpthread
$(faults)/logcheck: $(faults_dir)/logcheck.c $(unit)/libpure.a $(headers)
	mkdir -p $(faults)
	$(CC) $(unit_cflags) $(unit_cppflags) -o $@ $< $(unit)/libpure.a $(unit_libs)

else							# no PGXS

all install installcheck clean unit unit-build sim sim-deep fuzz sanitize \
	faults-build: no-postgresql
no-postgresql:
	@echo "$(PG_CONFIG) or its build system was not found: install postgresql-server-dev-NN," >&2
	@echo "or name another: make PG_CONFIG=/path/to/pg_config" >&2
	@exit 1

endif

# ---- these install what they need first, so they need no PGXS here ----

test:
	@PG_CONFIG="$(PG_CONFIG)" $(here)/test/run $(SUITES)

soak:
	@PG_CONFIG="$(PG_CONFIG)" PROVE_TESTS=test/faults/t/s001_soak.pl \
		PROVE_SECONDS=$$(($${GROUPLOG_SOAK_SECONDS:-3600} + 1200)) $(here)/test/run tap

test-faults:
	@PG_CONFIG="$(PG_CONFIG)" $(here)/test/faults/run $(PARTS)

demo:
	@PG_CONFIG="$(PG_CONFIG)" FILE="$(FILE)" DEMO_DIR="$(DEMO_DIR)" $(here)/test/demo start

demo-stop:
	@PG_CONFIG="$(PG_CONFIG)" DEMO_DIR="$(DEMO_DIR)" $(here)/test/demo stop

bench:
	@PG_CONFIG="$(PG_CONFIG)" $(here)/bench/run short

bench-full:
	@PG_CONFIG="$(PG_CONFIG)" $(here)/bench/run full
