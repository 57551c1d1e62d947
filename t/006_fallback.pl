# What is used where io_uring or direct I/O cannot be had.

use strict;
use warnings FATAL => 'all';

use Errno qw(EINVAL EOPNOTSUPP);
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('fallback');
my $ledger = new_ledger();
my $position = log_position($node);

# A few records, a crash, a look.
sub works
{
	my ($name) = @_;

	append_some($node, $ledger, "$name: appends work", mode => $_, records => 10) foreach qw(batch periodic);
	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	check_ledger($node, $ledger, $name);
}

sub methods
{
	$node->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status));
	return status($node, q(concat_ws(' ', io_method, sync_method)));
}

sub set_methods
{
	my ($io, $sync) = @_;

	$node->append_conf('postgresql.conf', "grouplog.io_method = '$io'\ngrouplog.sync_method = '$sync'");
}

my @configured = (configured('io_method') // 'io_uring', configured('sync_method') // 'open_datasync');
my $usual = methods();
note "as it comes: $usual, " . status($node, q(concat_ws('; ', io_method_reason, sync_method_reason)));
works('as it comes');

# ---- chosen ----
my $best = '';
foreach my $case ([ 'io_uring', 'open_datasync' ], [ 'sync', 'open_datasync' ], [ 'sync', 'fdatasync' ], [ 'io_uring', 'fdatasync' ])
{
	my ($io, $sync) = @$case;

	kill_server($node);
	set_methods($io, $sync);
	$node->start;
	my $methods = methods();

	$best ||= $methods;
	SKIP:
	{
		skip "io_uring or direct I/O is not to be had here ($methods)", 1
		  unless $best eq 'io_uring open_datasync';
		is($methods, "$io $sync", "H15 $io, $sync: used");
	}
	works("H15 $io, $sync");
	cmp_ok($node->safe_psql('postgres', 'SELECT syncs FROM grouplog.stat'), '>', 0, "H15 $io, $sync: syncs are counted");
}
set_methods('io_uring', 'open_datasync');

# ---- io_uring refused by seccomp, as containers do it ----
SKIP:
{
	my $launcher = build_program('launcher', <<'C');
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | atoi(argv[1])),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),.filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return 77;
	execvp(argv[2], argv + 2);
	return 1;
}
C
	skip 'there is no C compiler', 1 unless $launcher;
	skip 'no seccomp here', 1 if system($launcher, 1, 'true') != 0;

	foreach my $case ([ EPERM => 1 ], [ ENOSYS => 38 ], [ ENOMEM => 12 ])
	{
		my ($name, $error) = @$case;

		$node->stop;
		$position = log_position($node);
		system_or_bail($launcher, $error, 'pg_ctl', '-s', '-w', '-D', $node->data_dir, '-l', $node->logfile, 'start');
		$node->_update_pid(1);
		like(methods(), qr/^sync /, "H15 io_uring refused ($name): sync is used");
		isnt(status($node, 'io_method_reason'), '', 'H15 ... status says why');
		works("H15 io_uring refused ($name)");
		my @lines = log_since($node, $position) =~ /^.*LOG:  grouplog uses I\/O method.*$/mg;
		is(scalar @lines, 1, 'H15 ... one line in the server log');
		like(log_since($node, $position), qr/grouplog uses I\/O method "sync".*\n.*HINT:.*io_method/, 'H15 ... with a hint');
	}
	$node->stop;
	$node->start;
	is(methods(), $best, 'H15 allowed again: used again');
	check_ledger($node, $ledger, 'H15 after all that');
}

# ---- a file system without direct I/O ----
SKIP:
{
	skip 'there is no C compiler', 1 unless use_faults();

	# each file system has its own way to say so
	foreach my $case ([ EINVAL => EINVAL ], [ EOPNOTSUPP => EOPNOTSUPP ])
	{
		my ($name, $error) = @$case;

		$node->stop;
		set_fault(0, calls => ['direct'], files => [ 'spare', 'segment' ], error => $error);
		$position = log_position($node);
		start_with_faults($node);
		like(methods(), qr/ fdatasync$/, "no direct I/O ($name): fdatasync is used");
		like(status($node, 'sync_method_reason'), qr/direct I\/O/, '... status says why');
		like(log_since($node, $position), qr/grouplog uses "fdatasync".*\n.*HINT/, '... so does the log, with a hint');
		works("no direct I/O ($name)");
		kill_server($node);
		start_with_faults($node);
		check_ledger($node, $ledger, "no direct I/O ($name), after a crash");
	}
	$node->stop;
	$node->start;
	is(methods(), $best, 'direct I/O again');
	check_ledger($node, $ledger, 'direct I/O again');
}
$node->stop;
set_methods(@configured);
$node->start;
is(methods(), $usual, 'as it came');

# ---- fsync = off, and on again ----
{
	is(status($node, 'fsync'), 't', 'fsync is shown as on');
	$node->append_conf('postgresql.conf', 'fsync = off');
	$node->reload;
	ok($node->poll_query_until('postgres', 'SELECT NOT fsync FROM grouplog.status'), 'fsync switched off by a reload: shown');
	my $syncs = $node->safe_psql('postgres', 'SELECT syncs FROM grouplog.stat');
	works('fsync off');
	is($node->safe_psql('postgres', 'SELECT syncs FROM grouplog.stat'), $syncs, 'fsync off: no syncs are done');
	my $load = start_load($node, $ledger, clients => 3, mode => 'batch', records => 3000);
	wait_for_acks($load, 300);
	$node->append_conf('postgresql.conf', 'fsync = on');
	$node->reload;
	ok($node->poll_query_until('postgres', 'SELECT fsync FROM grouplog.status'), 'fsync switched on by a reload under load: shown');
	wait_for_acks($load, 600);
	$node->append_conf('postgresql.conf', 'fsync = off');
	$node->reload;
	wait_for_acks($load, 900);
	$node->append_conf('postgresql.conf', 'fsync = on');
	$node->reload;
	finish_load($load);
	is($load->{errors}, '', 'fsync switched under load: no error');
	works('fsync on again');
	cmp_ok($node->safe_psql('postgres', 'SELECT syncs FROM grouplog.stat'), '>', $syncs, 'fsync on again: syncs are done');
	kill_server($node);
	$node->start;
	check_ledger($node, $ledger, 'fsync on again, after a crash');

	# a whole run with it off
	$node->stop;
	$node->append_conf('postgresql.conf', 'fsync = off');
	$node->start;
	wait_open($node);
	is(status($node, 'fsync'), 'f', 'started with fsync off: shown');
	works('started with fsync off');
	$node->stop;
	$node->append_conf('postgresql.conf', 'fsync = on');
	$node->start;
	check_ledger($node, $ledger, 'started with fsync on after that');
}

$node->stop;
done_testing();
