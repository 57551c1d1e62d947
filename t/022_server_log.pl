# The server's log says once what happened and once when it is over, never a
# line a record.  Lines of sessions that fail are PostgreSQL's own, one for each
# failed statement; what is counted here is what the writer says.

use strict;
use warnings FATAL => 'all';

use Errno qw(EIO ENOSPC);
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

use_faults() or plan skip_all => 'there is no C compiler';

my $node = new_node('server_log',
	start => 0,
	conf  => {
		'grouplog.io_method'             => 'sync',
		'grouplog.log_sync_min_duration' => '200ms',
		'grouplog.sync_period'           => '100ms',
		'grouplog.sync_lag_limit'        => '200ms',
		log_line_prefix                  => '%b: '
	});
my $ledger = new_ledger();
my $reloads = 0;

start_with_faults($node);
$node->safe_psql('postgres', 'CREATE EXTENSION grouplog');

# What the writer has said, without details and hints: "LEVEL text", shortened.  That
# it did what turns_of_writer asks for is not meant.
sub writer_lines
{
	my ($position) = @_;
	my @lines = grep { !/ removed 0 bytes / }
	  log_since($node, $position) =~ /^grouplog writer: ((?:LOG|WARNING|ERROR|FATAL): .*)$/gm;

	foreach (@lines)
	{
		s/ +/ /g;
		s/"[^"]*"/FILE/g;
		s{[0-9A-F]+/[0-9A-F]+}{LSN}g;
		s/\b\d+\b/N/g;
	}
	return @lines;
}

sub said
{
	my ($position, $expected, $name) = @_;

	is_deeply([ writer_lines($position) ], $expected, $name)
	  or diag log_since($node, $position) =~ s/^client backend.*\n//gmr;
}

# The writer fails, and tries again twice: it has had its say then.
sub tries_again
{
	my ($name) = @_;
	my $hits = fault_hits(0);

	ok(wait_until(sub { fault_hits(0) >= $hits + 2 }), "$name: the writer tries again, and fails");
}

# What was asked of the writer before, a reload too, has been seen to: each of these
# requests is answered in a turn of its own.
sub turns_of_writer
{
	$node->safe_psql('postgres', q(SELECT grouplog.truncate('0/1'))) foreach 1 .. 3;
}

# Lines on slow syncs and nothing else, never two within ten seconds.  Returns how
# many slow syncs they tell of.
sub slow_syncs_said
{
	my ($position, $begin, $name) = @_;
	my @lines = writer_lines($position);
	my $most = 1 + int((time - $begin) / 10);

	is(scalar(grep { !/^WARNING: a sync of the log took N ms$|^LOG: N more syncs of the log were slow, the slowest took N ms$/ } @lines),
		0, "$name: nothing else is said") or diag join "\n", @lines;
	cmp_ok(scalar @lines, '>', 0, "$name: it is said");
	cmp_ok(scalar @lines, '<=', $most, "$name: not once for each");
	my $told = grep { /^WARNING/ } @lines;
	$told += $_ foreach log_since($node, $position) =~ /(\d+) more (?:syncs|were)/g;
	return $told;
}

# The writer, too, knows of it when this returns.
sub set_conf
{
	my ($name, $value) = @_;

	$node->append_conf('postgresql.conf', "$name = '$value'");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'");
	turns_of_writer();
}

# The settings as they are, read anew.
sub reload
{
	set_conf('grouplog.group_window', ($reloads++ % 2 + 1) . 'ms');
}

sub another_writer
{
	my $position = log_position($node);

	$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . writer_pid($node) . ')');
	ok(wait_until(sub { log_since($node, $position) =~ /writer carries on/ }), 'another writer');
}

sub append_one
{
	my ($mode) = @_;

	return $node->safe_psql('postgres', "SELECT grouplog.append('9200-1:', '$mode')");
}

$ledger->{size}{9200} = sub { 0 };
$ledger->{sent}{9200} = 1;
append_one('batch');

# 16 clients that go on after errors, so that there are thousands of them; endless:
# only the errors end them.
sub crowd
{
	my (%options) = @_;

	return map { start_load($node, $ledger, clients => 4, mode => $_, keep_going => 1, records => 1500, %options) }
	  qw(batch group adaptive periodic);
}

sub errors_of
{
	my (@loads) = @_;

	wait_until(sub { my $count = 0; $count += errors_in($_) foreach @loads; $count > 2000 }) if $loads[0]{endless};
	finish_load($_, stop => $_->{endless}) foreach @loads;
	return scalar(() = join('', map { $_->{errors} } @loads) =~ /ERROR: /g);
}

# ---- slow syncs: in group mode, which is the writer's ----
my $slow_since = log_position($node);
{
	my $begin = time;

	set_fault(0, calls => ['write'], delay => 400, count => 4);
	append_one('group') foreach 1 .. 4;
	is(fault_hits(0), 4, 'slow syncs: there were four');
	like(log_since($node, $slow_since), qr/^grouplog writer: WARNING:  a sync of the log took (39\d|[4-9]\d\d|\d{4,}) ms$/m,
		'slow syncs: a warning, with the time');
	like(log_since($node, $slow_since), qr/HINT:  Look at the device of "grouplog\.directory"/, '... and a hint');
	slow_syncs_said($slow_since, $begin, 'slow syncs');
	set_conf('grouplog.log_sync_min_duration', '-1');
}

# ---- H12: EIO for good ----
{
	my $position = log_position($node);
	my @loads = crowd(endless => 1);

	wait_for_acks($loads[0], 100);
	# of segments alone: where a spare is written just now, that would be said first
	set_fault(0, calls => ['write'], error => EIO);
	ok(wait_until(sub { status($node, 'refusal') eq 'device' }), 'H12 EIO for good: appends are refused');
	cmp_ok(errors_of(@loads), '>', 1000, 'H12 ... thousands of times');
	tries_again('H12');
	said($position,
		[
			'LOG: could not write to file FILE: Input/output error',
			'LOG: grouplog leaves the file and writes the unacknowledged records, from LSN LSN on, to another',
			'LOG: could not write to file FILE: Input/output error'
		],
		'H12 what happened is said once');
	$position = log_position($node);
	clear_faults();
	ok(wait_until(sub { status($node, 'refusal') eq '' }), 'H12 it is over');
	append_one('batch');
	said($position, ['LOG: grouplog can write again'], 'H12 ... which is said once');
}

# ---- H13: ENOSPC ----
{
	my $position = log_position($node);

	set_fault(0, calls => ['write'], files => ['spare'], error => ENOSPC);
	my @loads = crowd(size => sub { 8000 });
	cmp_ok(errors_of(@loads), '>', 1000, 'H13 ENOSPC: appends are refused');
	tries_again('H13');
	said($position, ['LOG: could not write to file FILE: No space left on device'], 'H13 what happened is said once');

	# a reload tries at once, and finds nothing new
	$position = log_position($node);
	reload();
	tries_again('H13, a reload');
	said($position, [], 'H13 ... and not again at a reload');

	clear_faults();
	ok(wait_until(sub { status($node, 'refusal') eq '' }), 'H13 it is over');
	append_one('batch');
	is(scalar(writer_lines($position)), 1, 'H13 ... which is said once');
	like(join("\n", writer_lines($position)), qr/^LOG: grouplog can (make new files|write) again$/, '... in these words');
}

# ---- the budget ----
{
	my $position = log_position($node);

	set_conf('grouplog.max_size', '6MB');
	my @loads = crowd(size => sub { 8000 });
	cmp_ok(errors_of(@loads), '>', 1000, 'max_size: appends are refused');
	turns_of_writer();
	said($position, ['LOG: the log has reached FILE'], 'max_size: what happened is said once');

	# a reload that changes nothing
	$position = log_position($node);
	reload();
	turns_of_writer();
	said($position, [], 'max_size: ... and not again at a reload');

	set_conf('grouplog.max_size', '-1');
	ok(wait_until(sub { status($node, 'refusal') eq '' }), 'max_size: it is over');
	append_one('batch');
	said($position, ['LOG: grouplog can make new files again'], 'max_size: ... which is said once');
}

# ---- free space ----
{
	my $position = log_position($node);

	set_conf('grouplog.min_free_space', '2147483647MB');
	ok(wait_until(sub { status($node, 'refusal') eq 'min_free_space' }), 'min_free_space: appends are refused');
	my @loads = crowd(records => 300);
	cmp_ok(errors_of(@loads), '>', 1000, '... thousands of times');
	turns_of_writer();
	said($position, ['LOG: the file system of log directory FILE is nearly full'], '... which is said once');
	$position = log_position($node);
	set_conf('grouplog.min_free_space', '0');
	ok(wait_until(sub { status($node, 'refusal') eq '' }), 'min_free_space: it is over');
	append_one('batch');
	said($position, ['LOG: grouplog accepts appends again: there is free space'], '... which is said once');
}

# ---- H17: the writer is gone, under load ----
{
	my $position = log_position($node);
	my @loads = crowd(records => 300);
	my $pid = writer_pid($node);

	wait_for_acks($loads[0], 50);
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	ok(wait_for_writer($node, $pid), 'H17 another writer');
	is(errors_of(@loads), 0, 'H17 no append failed');
	said($position,
		[
			'LOG: grouplog writer ends by request; another one carries on',
			'LOG: grouplog writer carries on at LSN LSN'
		],
		'H17 writer gone: said once, and once when it is over');
}

# ---- fsync switched on again, which the device does not take ----
{
	set_conf('fsync', 'off');
	$node->poll_query_until('postgres', 'SELECT NOT fsync FROM grouplog.status');
	append_one('batch');
	my $position = log_position($node);

	set_fault(0, calls => [ 'fsync', 'fdatasync' ], error => EIO);
	set_conf('fsync', 'on');
	ok(wait_until(sub { writer_lines($position) > 0 }), 'fsync on again, EIO: it fails');
	my $hits = fault_hits(0);
	# it is tried again after ten seconds
	ok(wait_until(sub { fault_hits(0) > $hits }), '... again and again');
	said($position, ['LOG: could not fsync file FILE: Input/output error'], '... which is said once');
	$position = log_position($node);
	clear_faults();
	ok($node->poll_query_until('postgres', 'SELECT fsync FROM grouplog.status'), '... it is over');
	said($position, ['LOG: grouplog could sync its files at last'], '... which is said once');
}

# ---- slow syncs: those that were not said are counted ----
{
	# a new writer knows nothing of what its predecessor has said
	another_writer();
	my ($position, $begin) = (log_position($node), time);
	set_conf('grouplog.log_sync_min_duration', '200ms');
	set_fault(0, calls => ['write'], delay => 300, count => 3);
	append_one('group') foreach 1 .. 3;
	is((writer_lines($position))[0], 'WARNING: a sync of the log took N ms', 'slow syncs: the first is said');
	ok(wait_until(sub { append_one('group'); log_since($node, $position) =~ /LOG:  \d+ more syncs of the log were slow, the slowest took \d+ ms/ }),
		'slow syncs: after ten seconds, a line for the others');
	cmp_ok(slow_syncs_said($position, $begin, '... and'), '>=', 3, '... none of them is forgotten');

	another_writer();
	$position = log_position($node);
	set_conf('grouplog.log_sync_min_duration', '-1');
	set_fault(0, calls => ['write'], delay => 300, count => 2);
	append_one('group') foreach 1 .. 2;
	is(fault_hits(0), 2, 'slow syncs, -1: they were slow');
	said($position, [], '... and nothing is said');
	$begin = time;
	set_conf('grouplog.log_sync_min_duration', '0');
	append_one('group') foreach 1 .. 20;
	slow_syncs_said($position, $begin, 'slow syncs, 0: each is slow');
}

$node->safe_psql('postgres', 'SELECT grouplog.flush()');
$node->stop;
done_testing();
