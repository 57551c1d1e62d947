# The writer is terminated, killed, stopped; sessions stay, and are answered.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_node('writer', conf => { restart_after_crash => 'on' });
my $ledger = new_ledger();

# ---- SIGTERM: the writer alone restarts, waiters stay and are answered ----
{
	my $position = log_position($node);
	my $continuations = $node->safe_psql('postgres', 'SELECT continuations FROM grouplog.stat');
	my @loads = map { start_load($node, $ledger, clients => 2, mode => $_, endless => $_ ne 'periodic') }
	  qw(batch group adaptive periodic);

	foreach my $round (1 .. 3)
	{
		my $pid = writer_pid($node);

		wait_for_acks($loads[0], 200 * $round);
		is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)"),
			't', "H17 writer terminated under load, round $round");
		ok(wait_for_writer($node, $pid), '... another one carries on');
	}
	wait_for_acks($loads[0], 900);
	finish_load($_, stop => 1) foreach @loads;
	is(join('', map { $_->{errors} =~ /ERROR/ ? $_->{errors} : '' } @loads),
		'', 'H17 no append failed for it');
	unlike(log_since($node, $position), qr/terminating any other active|reinitializing/,
		'H17 the server itself did not restart');
	cmp_ok($node->safe_psql('postgres', 'SELECT continuations FROM grouplog.stat'),
		'>', $continuations, 'H17 a continuation file took over');
	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	check_ledger($node, $ledger, 'H17 after the writer was terminated');
	kill_server($node);
	$node->start;
	check_ledger($node, $ledger, 'H17 and after a crash');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.verify() WHERE NOT ok'),
		0, 'H17 verify finds nothing wrong');
}

# An idle log, terminated again and again, costs no file each time.
{
	my $files = segment_files($node);

	foreach (1 .. 3)
	{
		my $pid = writer_pid($node);
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		wait_for_writer($node, $pid);
	}
	cmp_ok(scalar segment_files($node), '<=', $files + 1, 'H17 restarts of an idle writer make no files');
	append_some($node, $ledger, 'H17 appends go on');
}

# A session that waits while there is no writer is answered by the next one.
{
	my $pid = writer_pid($node);

	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	my $lsn = $node->safe_psql('postgres', q(SET statement_timeout = '180s'; SELECT grouplog.append('9001-1:', 'batch')));
	like($lsn, qr{^[0-9A-F]+/[0-9A-F]+$}, 'H17 an append just after the writer is gone is answered');
	note_append($ledger, 9001, 1, 0, $lsn);
	wait_for_writer($node, $pid);
}

# ---- SIGKILL: PostgreSQL restarts all ----
foreach my $round (1 .. 2)
{
	my $pid = writer_pid($node);
	my $position = log_position($node);
	my $load = start_load($node, $ledger, clients => 4, mode => 'batch');

	wait_for_acks($load, 400);
	kill 'KILL', $pid;
	finish_load($load);
	wait_for_server($node);
	ok(wait_for_writer($node, $pid), "H17 writer killed, round $round: the server restarts all");
	like(log_since($node, $position), qr/all server processes terminated; reinitializing/, '... as it should');
	check_ledger($node, $ledger, "H17 writer killed, round $round");
	append_some($node, $ledger, '... appends go on');
}

# ---- a backend is killed in the middle of appends: the same ----
{
	my $pid = writer_pid($node);
	my $load = start_load($node, $ledger, clients => 4, mode => 'group');

	wait_for_acks($load, 300);
	my $backend = $node->safe_psql('postgres',
		q(SELECT min(pid) FROM pg_stat_activity WHERE query LIKE '%grouplog.append%' AND pid <> pg_backend_pid()));
	kill 'KILL', $backend;
	finish_load($load);
	wait_for_server($node);
	ok(wait_for_writer($node, $pid), 'H16 backend killed: the server restarts all');
	check_ledger($node, $ledger, 'H16 backend killed');
}

# ---- SIGSTOP: waits can be cancelled ----
{
	my $pid = writer_pid($node);

	append_some($node, $ledger, 'H17 the log has a file before the writer is stopped');

	# a record whose window is long: a session alone would not need the writer, which
	# has seen the record when it answers a request; and stops before the window ends
	my $pending = q(SELECT insert_lsn > durable_lsn FROM grouplog.status);
	my $held;
	foreach my $try (1 .. 10)
	{
		$held = start_load($node, $ledger, clients => 1, records => 1, mode => 'group',
			options => '-c grouplog.group_window=10s');
		wait_until(sub { answers_to($held) || $node->safe_psql('postgres', $pending) eq 't' });
		$node->safe_psql('postgres', q(SELECT grouplog.truncate('0/1')));
		kill 'STOP', $pid;
		last if $node->safe_psql('postgres', $pending) eq 't';
		kill 'CONT', $pid;
		finish_load($held);
	}
	foreach my $statement (
		q(SELECT grouplog.append('9002-1:', 'batch')),
		q(SELECT grouplog.append('9002-2:', 'group')),
		q(SELECT grouplog.append('9002-3:', 'adaptive')),
		q(SELECT grouplog.wait_durable(grouplog.append_async('9002-4:'))),
		q(SELECT grouplog.flush()),
		q(SELECT grouplog.truncate('0/1')))
	{
		my ($state, $message) = cancelled_in_wait($node, $statement);

		is($state, '57014', "H17 writer stopped: cancelled in $statement") or diag $message;
		like($message, qr/LSN [0-9A-F]+\/[0-9A-F]+/, '... with the LSN in its context')
		  if $statement =~ /append\(/;
	}

	# how long after its time a wait ends, by the server's clock
	my ($latest, $number) = (0, 0);
	foreach my $mode (qw(batch group adaptive))
	{
		my $err;

		$number++;
		# an error that is not caught came before the block began, on a slow machine
		for (my $timeout = 300; $timeout < 60_000; $timeout *= 2)
		{
			$node->psql('postgres', qq(SET statement_timeout = $timeout; DO \$\$ BEGIN
				PERFORM grouplog.append('9004-$number:', '$mode');
				EXCEPTION WHEN query_canceled THEN
				RAISE NOTICE 'late by % ms', round(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000 - $timeout);
				END \$\$), stderr => \$err);
			last unless $err =~ /ERROR:  canceling statement/ && $err !~ /at PERFORM/;
		}
		note_unsure($ledger, 9004, $number, 0);
		like($err, qr/late by \d+ ms/, "H17 writer stopped: an append that is cancelled can be caught, $mode");
		$latest = $1 if $err =~ /late by (\d+) ms/ && $1 > $latest;
	}
	note "figure: cancel_latency_ms $latest";

	# a wait with a timeout of its own
	is( $node->safe_psql('postgres',
			q(SELECT grouplog.wait_durable(grouplog.append_async('9002-5:'), '200ms'))),
		'f', 'H17 writer stopped: wait_durable times out');

	# reads need no writer
	cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.read()'),
		'>', 0, 'H17 writer stopped: reads go on');

	# the ring fills up: back-pressure, and that wait is cancellable, too
	my ($state) = cancelled_in_wait($node,
		q(SET grouplog.sync_mode = periodic;
		  SELECT grouplog.append_batch(array_agg(convert_to('9003-' || i || ':', 'UTF8'))) FROM generate_series(1, 20000) i));
	is($state, '57014', 'H19 writer stopped, ring full: cancelled');

	kill 'CONT', $pid;
	$ledger->{size}{$_} = sub { 0 } foreach 9002, 9003;
	$ledger->{sent}{9002} = 5;
	$ledger->{sent}{9003} = 20000;
	is( $node->safe_psql('postgres', q(SET statement_timeout = '180s'; SELECT grouplog.flush() IS NOT NULL)),
		't', 'H17 writer goes on');
	finish_load($held);
	is(writer_pid($node), $pid, '... the same one');
	append_some($node, $ledger, '... and appends do');
	check_ledger($node, $ledger, 'H17 after SIGSTOP');
	is( $node->safe_psql('postgres',
			q(SELECT string_agg(split_part(payload, ':', 1), ' ' ORDER BY lsn) FROM grouplog.read_text() WHERE payload ~ '^9002-')),
		'9002-1 9002-2 9002-3 9002-4 9002-5', 'H17 what was in the log before a cancel became durable');
}

# ---- SIGSTOP for longer, with many sessions under statement_timeout ----
{
	my $pid = writer_pid($node);
	my $seconds = long_run() ? 30 : 3;
	my @loads = map {
		start_load($node, $ledger, clients => 3, mode => $_, keep_going => 1, endless => 1,
			options => '-c statement_timeout=200ms -c grouplog.group_window=2ms')
	} qw(batch group adaptive periodic);

	wait_for_acks($_, 20) foreach @loads;
	kill 'STOP', $pid;
	sleep $seconds;
	foreach my $load (@loads)
	{
		wait_until(sub { errors_in($load) > 0 });
	}

	# a database can't be dropped without the writer; but that can be cancelled
	$node->safe_psql('postgres', 'CREATE DATABASE stuck');
	my ($state) = sql_error($node, q(SET statement_timeout = '500ms'; DROP DATABASE stuck));
	is($state, '57014', 'H17 writer stopped: DROP DATABASE can be cancelled');

	kill 'CONT', $pid;
	foreach my $load (@loads)
	{
		my $before = answers_to($load);

		ok(wait_until(sub { answers_to($load) > $before }), 'H17 ... it goes on, and so do they');
	}
	finish_load($_, stop => 1) foreach @loads;
	foreach my $load (@loads)
	{
		my $mode = (qw(batch group adaptive periodic))[ (grep { $loads[$_] == $load } 0 .. 3)[0] ];

		cmp_ok($load->{states}{57014} // 0, '>', 0, "H17 writer stopped for $seconds s under statement_timeout, $mode: cancelled");
		is(join(' ', grep { $_ ne '57014' } keys %{ $load->{states} }), '', '... and no other error');
	}
	($state) = sql_error($node, q(SET statement_timeout = '180s'; DROP DATABASE stuck));
	is($state, '00000', 'H17 ... and when it goes on, the database goes');
	$node->safe_psql('postgres', q(SET statement_timeout = '180s'; SELECT grouplog.flush()));
	check_ledger($node, $ledger, "H17 writer stopped for $seconds s under statement_timeout", uncrashed => 1);
}

# ---- DROP DATABASE waits for a barrier of every process ----
{
	my @loads = map { start_load($node, $ledger, clients => 2, mode => $_, endless => $_ eq 'batch') } qw(batch periodic);

	wait_for_acks($loads[0], 50);
	$node->safe_psql('postgres', 'CREATE DATABASE gone');
	my ($state) = sql_error($node, q(SET statement_timeout = '180s'; DROP DATABASE gone));
	is($state, '00000', 'H17 DROP DATABASE is not held up under load');
	finish_load($_, stop => 1) foreach @loads;

	$node->safe_psql('postgres', 'CREATE DATABASE gone');
	($state) = sql_error($node, q(SET statement_timeout = '180s'; DROP DATABASE gone));
	is($state, '00000', 'H17 ... nor with an idle writer');
}

$node->stop;
done_testing();
