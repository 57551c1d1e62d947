# Shutdown in each way, in each mode: fast and smart lose nothing.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A period that never ends by itself here.
my $node = new_node('shutdown',
	conf => {
		'grouplog.sync_period'    => '1h',
		'grouplog.sync_lag_limit' => '2h'
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
			$mode eq 'periodic' && $kind eq 'immediate' ? (lossy => sub { '' }) : ());
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

$node->stop;
done_testing();
