# Sessions are cancelled and terminated while they append, wait, read.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_node('cancel',
	conf => {
		'grouplog.buffers'        => '128kB',
		'grouplog.sync_period'    => '100ms',
		'grouplog.sync_lag_limit' => '150ms'
	});
my $ledger = new_ledger();

append_some($node, $ledger, 'H16 some records first');

# ---- cancels, at random: the clients go on after each ----
{
	my @loads = map {
		start_load($node, $ledger, clients => 3, mode => $_, records => 2500, keep_going => 1,
			options => '-c grouplog.group_window=4ms', size => sub { ($_[0] * 7919) % 5000 })
	} qw(batch group adaptive periodic);
	my $canceller = $node->background_psql('postgres');
	my $end = time + 8;
	my $cancelled = 0;

	$canceller->set_query_timer_restart();
	while (time < $end)
	{
		$cancelled += $canceller->query_safe(
			q(SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) FROM pg_stat_activity
			  WHERE backend_type = 'client backend' AND query LIKE '%append%' AND pid <> pg_backend_pid() AND state = 'active'
			    AND random() < 0.4;
			  ));
		sleep 0.005;
	}
	$canceller->quit;
	finish_load($_) foreach @loads;
	cmp_ok($cancelled, '>', 200, "H16 many cancels ($cancelled)");
	my $errors = join '', map { $_->{errors} } @loads;
	my $waiting = () = $errors =~ /CONTEXT:  waiting for the record at LSN [0-9A-F]+\/[0-9A-F]+, which is in the log and may still become durable/g;
	cmp_ok($waiting, '>', 10, "H16 a cancelled wait names its LSN ($waiting times)");
	my @other = grep { /ERROR/ && !/canceling statement due to user request/ } split /\n/, $errors;
	is(join("\n", @other[ 0 .. ($#other > 3 ? 3 : $#other) ]), '', 'H16 no other error');
	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	check_ledger($node, $ledger, 'H16 after cancels');

	# what a cancel's context says is in the log is there
	my @lsns = $errors =~ /waiting for the record at LSN ([0-9A-F]+\/[0-9A-F]+)/g;
	splice @lsns, 200 if @lsns > 200;
	is( $node->safe_psql('postgres',
			'SELECT count(*) FROM unnest(ARRAY[' . join(',', map { "'$_'::pg_lsn" } @lsns) . ']) l WHERE l NOT IN (SELECT lsn FROM grouplog.read())'),
		0, 'H16 the records that cancelled waits named became durable');
}

# ---- terminations, at random: clients come and go ----
{
	my $end = time + 8;
	my $killer = $node->background_psql('postgres');
	my ($terminated, $rounds) = (0, 0);
	my $errors = '';

	$killer->set_query_timer_restart();
	while (time < $end)
	{
		my @loads = map {
			start_load($node, $ledger, clients => 3, mode => $_, records => 400, size => sub { ($_[0] * 7919) % 20000 })
		} qw(batch periodic adaptive);

		sleep 0.1;
		foreach (1 .. 30)
		{
			$terminated += $killer->query_safe(
				q(SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
				  WHERE backend_type = 'client backend' AND query LIKE '%append%' AND pid <> pg_backend_pid() AND state = 'active'
				    AND random() < 0.3;
				  ));
			sleep 0.01;
		}
		foreach my $load (@loads)
		{
			finish_load($load);
			$errors .= $load->{errors};
		}
		$rounds++;
	}
	$killer->quit;
	cmp_ok($terminated, '>', 20, "H16 many terminations ($terminated in $rounds rounds)");
	my @other = grep { /ERROR/ } split /\n/, $errors;
	is(join("\n", @other[ 0 .. ($#other > 3 ? 3 : $#other) ]), '', 'H16 no other error');
	$node->safe_psql('postgres', q(SET statement_timeout = '60s'; SELECT grouplog.flush()));
	check_ledger($node, $ledger, 'H16 after terminations');
}

# ---- appends go on; the ring has no hole, the queue no stale ticket ----
{
	append_some($node, $ledger, 'H16 appends go on');
	my $load = start_load($node, $ledger, clients => 6, mode => 'periodic', records => 300, size => sub { 30000 });
	is(finish_load($load), 6 * 300, 'H19 ... with the ring full, too') or diag $load->{errors};
	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	check_ledger($node, $ledger, 'H16 at last');
	is($node->safe_psql('postgres', 'SELECT insert_lsn = durable_lsn FROM grouplog.status'), 't', 'H16 all is durable');
	kill_server($node);
	$node->start;
	check_ledger($node, $ledger, 'H16 after a crash');
}

# ---- a batch that is cancelled says how far it came ----
{
	my $pid = writer_pid($node);

	append_some($node, $ledger, 'H16 a file is open');
	kill 'STOP', $pid;
	my ($state, $message) = sql_error($node,
		q(SET statement_timeout = '500ms'; SELECT grouplog.append_batch(array_agg(convert_to(repeat('x', 1000), 'UTF8')), 'batch') FROM generate_series(1, 1000)));
	kill 'CONT', $pid;
	is($state, '57014', 'H16 a batch larger than the ring, cancelled');
	like($message, qr/\d+ records of the batch are in the log, the last one at LSN [0-9A-F]+\/[0-9A-F]+/, '... says how far it came');
	my ($count) = $message =~ /(\d+) records of the batch/;
	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	is($node->safe_psql('postgres', q(SELECT count(*) FROM grouplog.read() WHERE length(payload) = 1000 AND payload = convert_to(repeat('x', 1000), 'UTF8'))),
		$count, '... and that is what is there');
}

$node->stop;
done_testing();
