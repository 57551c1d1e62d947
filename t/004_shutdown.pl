# Shutdown in each way, in each mode: fast and smart lose nothing.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

# A period that does not end by itself here: the longest there is.
my $node = new_node('shutdown',
	conf => {
		'grouplog.sync_period'    => '100s',
		'grouplog.sync_lag_limit' => '200s'
	});
my $ledger = new_ledger();
my $client = 9000;

foreach my $mode (qw(periodic batch group adaptive))
{
	foreach my $kind (qw(fast smart immediate))
	{
		my $load = start_load($node, $ledger, clients => 3, mode => $mode,
			records => $kind eq 'smart' ? 200 : 8000,
			options => '-c grouplog.group_window=3ms');

		# smart waits for sessions, so these end by themselves
		$kind eq 'smart' ? finish_load($load) : wait_for_acks($load, 200);
		my $position = log_position($node);
		$node->stop($kind);
		finish_load($load) if $kind ne 'smart';

		my $log = log_since($node, $position);
		if ($kind eq 'immediate')
		{
			unlike($log, qr/grouplog closed at/, "H24 $mode, immediate: no close record");
		}
		else
		{
			like($log, qr/grouplog closed at LSN/, "H24 $mode, $kind: closed");
		}

		$position = log_position($node);
		$node->start;
		$node->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status));
		if ($kind eq 'immediate')
		{
			unlike(status($node, 'recovery'), qr/^clean/, "H24 $mode, immediate: not found closed");
		}
		else
		{
			like(status($node, 'recovery'), qr/^clean at/, "H24 $mode, $kind: found closed");
		}
		check_ledger($node, $ledger, "H24 $mode, $kind",
			$mode eq 'periodic' && $kind eq 'immediate' ? (lossy => only_the_end($load)) : ());
	}
}

# One record in memory, nobody waits, stop.
foreach my $kind (qw(fast smart))
{
	my $lsn = $node->safe_psql('postgres', "SELECT grouplog.append_async('$client-1:')");

	note_append($ledger, $client, 1, 0, $lsn);
	is($node->safe_psql('postgres', "SELECT '$lsn' >= durable_lsn FROM grouplog.status"),
		't', "H24 one asynchronous record is not durable before $kind");
	$node->stop($kind);
	$node->start;
	is($node->safe_psql('postgres', "SELECT grouplog.wait_durable('$lsn')"),
		't', "H24 ... but after $kind, it is");
	$client++;
}

# Clean starts and stops without a record: still clean, no file more.
{
	my $files = segment_files($node);

	foreach (1 .. 3)
	{
		$node->restart;
		$node->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status));
		like(status($node, 'recovery'), qr/^clean at/, 'H24 a restart without a record stays clean');
	}
	is(scalar segment_files($node), $files, 'H24 ... and makes no file');
}

# Sessions that wait at shutdown: with a writer that cannot write, they end.
{
	my $pid = writer_pid($node);
	my $load = start_load($node, $ledger, clients => 3, mode => 'batch');

	wait_for_acks($load, 100);
	kill 'STOP', $pid;
	sleep 1;
	system('pg_ctl', '-D', $node->data_dir, '-m', 'fast', '-W', 'stop');
	sleep 1;
	kill 'CONT', $pid;
	ok(wait_until(sub { !-e $node->data_dir . '/postmaster.pid' }), 'H24 fast with a stopped writer: ends when it goes on');
	$node->_update_pid(0);
	finish_load($load);
	$node->start;
	check_ledger($node, $ledger, 'H24 fast while all waited');
}

sub stop_without_waiting
{
	my ($kind) = @_;

	system('pg_ctl', '-s', '-D', $node->data_dir, '-m', $kind, '-W', 'stop');
	# the file goes when it has ended
	return wait_until(sub { (eval { slurp_file($node->data_dir . '/postmaster.pid') } // 'stopping') =~ /^stopping/m });
}

sub stopped
{
	my ($name) = @_;

	ok(wait_until(sub { !-e $node->data_dir . '/postmaster.pid' }), $name);
	$node->_update_pid(0);
}

# A smart shutdown waits for sessions; they need the log, whoever is told to end.
{
	my $session = $node->background_psql('postgres');
	my $pid = writer_pid($node);
	my $position = log_position($node);
	my $number = 0;

	$client = 9100;
	ok(stop_without_waiting('smart'), 'H24 smart with a session: the server is stopping');
	foreach my $mode (qw(batch group adaptive periodic))
	{
		foreach my $times (1, 2)
		{
			$session->query_safe("SELECT pg_terminate_backend($pid)");
			my $key = "$client-" . ++$number . ':' . chr(97 + $number % 26) x 3;
			my $lsn = $session->query_safe("SELECT grouplog.append('$key', '$mode')");

			like($lsn, qr{^[0-9A-F]+/[0-9A-F]+$}, "H24 smart, the writer terminated: the session still appends ($mode, $times)");
			note_append($ledger, $client, $number, 3, $lsn);
		}
	}
	is($session->query_safe('SELECT writer_pid FROM grouplog.status'), $pid, '... by the same writer');
	$session->quit;
	stopped('H24 ... and when it has left, the server stops');
	my @lines = log_since($node, $position) =~ /grouplog writer ends with the last session/g;
	is(scalar @lines, 1, 'H24 ... the log says once why the writer stayed');
	like(log_since($node, $position), qr/grouplog closed at LSN/, 'H24 ... and that it was closed');
	$node->start;
	$node->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status));
	like(status($node, 'recovery'), qr/^clean at/, 'H24 ... as the next start finds');
	check_ledger($node, $ledger, 'H24 smart, the writer terminated');
}

# The writer is told to end, and the server to stop, at once.  Then there may be no
# writer to close the log: what was not waited for may be lost, as in a crash.
foreach my $round (1 .. 4)
{
	my @loads = (
		map({ start_load($node, $ledger, clients => 2, mode => $_) } qw(batch adaptive)),
		start_load($node, $ledger, clients => 2, kind => 'async'));

	wait_for_acks($_, 50) foreach @loads;
	kill 'TERM', writer_pid($node);
	sleep rand 0.02 if $round > 2;
	stop_without_waiting('fast');
	stopped("H24 fast, just after the writer was terminated, round $round: the server stops");
	finish_load($_) foreach @loads;
	$node->start;
	$node->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status));
	check_ledger($node, $ledger, "H24 fast, just after the writer was terminated, round $round");
}

$node->stop;
done_testing();
