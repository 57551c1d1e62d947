# A lone session flushes its records by itself; whatever else comes, the writer takes over.

use strict;
use warnings FATAL => 'all';

use Errno qw(EIO);
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use_faults() or plan skip_all => 'there is no C compiler';

my $node = new_node('lone',
	start => 0,
	conf  => {
		'grouplog.io_method'    => 'sync',
		'grouplog.segment_size' => '4MB',
		'grouplog.buffers'      => '1MB'
	});
my $ledger = new_ledger();

start_with_faults($node);
$node->safe_psql('postgres', 'CREATE EXTENSION grouplog');

sub lone_flushes
{
	return $node->safe_psql('postgres', 'SELECT flushes_lone FROM grouplog.stat');
}

# A hundred syncs in a row must be fast before a session flushes by itself.  On a
# device or a machine that stalls all the time it never does, which is as it should
# be; but then nothing of this can be tested.
sub never_alone
{
	my ($name) = @_;

	if ($node->safe_psql('postgres', q(SELECT p99 > 10 FROM grouplog.stat_latency WHERE operation = 'sync')) ne 't')
	{
		fail($name);
		return;
	}
	note "$name: one sync in a hundred takes more than 10 ms here, so no session flushes by itself";
	$node->stop('immediate');
	done_testing();
	exit;
}

sub wait_for_lone
{
	my ($name, $condition) = @_;

	wait_until($condition) ? pass($name) : never_alone($name);
}

# A busy machine's syncs may be too slow for it: then again, if it is to happen.
sub alone
{
	my ($name, %options) = @_;
	my $mode = $options{mode} // 'adaptive';
	my $before = lone_flushes();
	my $errors = '';
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;

	do
	{
		my $load = start_load($node, $ledger, clients => 1, records => 300, mode => 'adaptive', %options);

		finish_load($load);
		$errors .= $load->{errors};
	} while ($mode =~ /adaptive|batch/ && lone_flushes() == $before && time < $end);
	unlike($errors, qr/ERROR/, "$name: no append failed");
	my $flushes = lone_flushes() - $before;
	never_alone($name) if $mode =~ /adaptive|batch/ && $flushes == 0;
	return $flushes;
}

# A session alone, which is held in a flush of its own until the fault is lifted.  Where
# the writer had taken the offer back meanwhile, it is the one: it is let go, and all
# begins again.  start begins the session and returns what ends it.
sub held_lone_flush
{
	my ($name, $start) = @_;
	my $finish;

	wait_for_lone("$name: it has begun",
		sub {
			alone("$name: before it");
			set_fault(0, calls => ['write'], delay => 600_000, count => 1);
			$finish = $start->();
			wait_until(sub { fault_hits(0) == 1 }) or return 0;
			return 1 if struck_pid(0) != writer_pid($node);
			clear_faults();
			$finish->();
			return 0;
		});
	return $finish;
}

sub crash_and_check
{
	my ($name) = @_;

	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	check_ledger($node, $ledger, "$name, before a crash");
	kill_server($node);
	clear_faults();
	start_with_faults($node);
	check_ledger($node, $ledger, "$name, after a crash");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.verify() WHERE NOT ok'),
		0, "$name: verify finds nothing wrong");
}

# ---- by mode ----
foreach my $mode (qw(adaptive batch))
{
	cmp_ok(alone("a lone session, $mode", mode => $mode), '>', 0, "a lone session, $mode, flushes by itself");
}
is(alone('a lone session, group', mode => 'group', records => 20, options => '-c grouplog.group_window=1ms'),
	0, 'in group mode there is a window to wait for');
alone('a lone session, periodic', mode => 'periodic');
crash_and_check('lone sessions of each mode');

# ---- the end of a file: 12 MB through files of 4 MB ----
{
	my $files = segment_files($node);

	alone('files filled by a lone session', records => 1500, size => sub { 8000 });
	cmp_ok(scalar segment_files($node), '>=', $files + 2, 'a lone session goes from file to file');
	crash_and_check('files filled by a lone session');
}

# ---- two sessions that come and go ----
{
	my @loads = (start_load($node, $ledger, clients => 1, records => 800, mode => 'adaptive'));

	push @loads, start_load($node, $ledger, clients => 2, records => 20, mode => $_)
	  foreach qw(batch adaptive batch adaptive batch adaptive);
	finish_load($_) foreach @loads;
	is(join('', map { $_->{errors} =~ /ERROR/ ? $_->{errors} : '' } @loads), '', 'sessions that come and go: no append failed');
	crash_and_check('sessions that come and go');
}

# ---- its write fails: the writer takes the record to another file ----
foreach my $case ([ 'write', 'EIO once', error => EIO, count => 1 ],
	[ 'write', 'short writes', bytes => 4096, count => 50 ],
	[ 'write', 'EIO twice', error => EIO, count => 2 ],
	# from here on the write and the sync are two calls
	[ 'fdatasync', 'EIO once in its sync', error => EIO, count => 1 ],
	[ 'write', 'EIO once in its write, fdatasync', error => EIO, count => 1 ])
{
	my ($call, $what, %fault) = @$case;

	if ($call eq 'fdatasync')
	{
		$node->append_conf('postgresql.conf', 'grouplog.sync_method = fdatasync');
		crash_and_check('sync_method fdatasync');
	}
	my $position = log_position($node);
	my $load = start_load($node, $ledger, clients => 1, mode => 'adaptive', keep_going => 1,
		endless => 1, size => sub { ($_[0] * 7919) % 2000 });

	wait_for_acks($load, 50);
	my $before = lone_flushes();
	wait_for_lone("a lone flush, $what: there are some", sub { lone_flushes() > $before });
	set_fault(0, calls => [$call], %fault);
	ok(wait_until(sub { fault_hits(0) >= $fault{count} }), "a lone flush, $what: it has struck");
	ok(wait_until(sub { status($node, 'refusal') eq '' }), "a lone flush, $what: over");
	my $since = lone_flushes();
	wait_for_lone("a lone flush, $what: and goes on alone", sub { lone_flushes() > $since });
	finish_load($load, stop => 1);
	my $said = $call eq 'write' ? 'write to' : 'fdatasync';
	like(log_since($node, $position), qr/could not $said file "[^"]*\.seg": Input/, "a lone flush, $what: said in the log") if $fault{error};
	unlike($load->{errors}, qr/ERROR/, "a lone flush, $what: no append failed") if $what ne 'EIO twice';
	crash_and_check("a lone flush, $what");
}

# ---- a lone flush that takes long: others are answered, and can be cancelled ----
{
	my $lone;
	my $finish = held_lone_flush('a slow lone flush',
		sub {
			$lone = start_load($node, $ledger, clients => 1, records => 1, mode => 'adaptive');
			return sub { finish_load($lone) };
		});

	my ($state) = sql_error($node, q(SET statement_timeout = '200ms'; SELECT grouplog.append('9200-1:', 'batch')));
	is($state, '57014', '... another session can be cancelled meanwhile');
	$ledger->{size}{9200} = sub { 0 };
	$ledger->{sent}{9200} = 1;

	# the writer goes, and the next one waits until the flush is over
	my $pid = writer_pid($node);
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	ok(wait_until(sub { writer_pid($node) != $pid }), '... the writer can be terminated');
	my $other = start_load($node, $ledger, clients => 2, records => 50, mode => 'batch');
	is(answers_to($lone) + answers_to($other), 0, '... all that while the flush goes on');
	clear_faults();
	$finish->();
	finish_load($other);
	unlike($lone->{errors} . $other->{errors}, qr/ERROR/, '... and all are answered');
	crash_and_check('a slow lone flush');
}

# ---- a lone flush that takes long is said in the log, whatever comes next ----
{
	my $position;
	my $number = 0;
	my ($out, $err);

	$node->safe_psql('postgres', $_)
	  foreach q(ALTER SYSTEM SET grouplog.log_sync_min_duration = '400ms'), 'SELECT pg_reload_conf()';
	$ledger->{size}{9400} = sub { 0 };
	my $before;
	my $finish = held_lone_flush('a slow lone flush, and one right behind it',
		sub {
			my @appends = map { "PERFORM grouplog.append('9400-$_:', 'adaptive');" } $number + 1, $number + 2;

			$ledger->{sent}{9400} = $number += 2;
			$position = log_position($node);
			$before = lone_flushes();
			($out, $err) = ('', '');
			my $session = IPC::Run::start(
				[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "DO \$\$BEGIN @appends END\$\$" ],
				'>', \$out, '2>', \$err);
			return sub { $session->finish };
		});
	ok(wait_until(sub { log_since($node, $position) =~ /a sync of the log has not ended/ }),
		'... said in the log while it goes on');
	clear_faults();
	$finish->();
	is($err, '', '... and answered');
	cmp_ok(lone_flushes(), '>', $before, '... it was a lone one');
	ok(wait_until(sub { log_since($node, $position) =~ /the sync of the log ended after/ }), '... said when it is over');
	$node->safe_psql('postgres', $_)
	  foreach 'ALTER SYSTEM RESET grouplog.log_sync_min_duration', 'SELECT pg_reload_conf()';

	# after such a stall the writer flushes, until the device has been fast for long
	$before = lone_flushes();
	my $load = start_load($node, $ledger, clients => 1, records => 90, mode => 'adaptive');
	finish_load($load);
	is(lone_flushes(), $before, 'after a slow sync no session flushes by itself');
	cmp_ok(alone('after a slow flush'), '>', 0, '... until many were fast');
	crash_and_check('slow lone flushes');
}

# ---- shut down during a lone flush ----
{
	alone('before a shutdown');
	set_fault(0, calls => ['write'], delay => 1500, count => 1);
	my $lone = start_load($node, $ledger, clients => 1, records => 1, mode => 'adaptive');
	ok(wait_until(sub { fault_hits(0) == 1 }), 'shut down during a lone flush: it has begun');
	my $position = log_position($node);
	$node->stop('fast');
	finish_load($lone);
	like(log_since($node, $position), qr/grouplog closed at LSN/, 'shut down during a lone flush: the log is closed');
	clear_faults();
	start_with_faults($node);
	check_ledger($node, $ledger, 'shut down during a lone flush');
}

# ---- a session that has a file open does not hold its space ----
SKIP:
{
	skip 'there is no /proc', 2 if !-d '/proc/self/fd';
	my $session = $node->background_psql('postgres');

	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	chomp $pid;
	my @open;
	my $sent = 0;
	wait_for_lone('a session that was alone has a file open',
		sub {
			$session->query_safe("SELECT grouplog.append('9300-" . ++$sent . ":', 'adaptive')") foreach 1 .. 40;
			return @open = grep { (readlink $_ // '') =~ /\.seg/ } glob "/proc/$pid/fd/*";
		});
	$ledger->{size}{9300} = sub { 0 };
	$ledger->{sent}{9300} = $sent;
	is(scalar @open, 1, '... and only one');
	alone('more files', records => 1500, size => sub { 8000 });
	$node->safe_psql('postgres', 'SELECT grouplog.truncate(durable_lsn) FROM grouplog.status');
	is((stat $open[0])[7], 0, '... and once it is removed, none of its space');
	$session->quit;
}

$node->stop;
done_testing();
