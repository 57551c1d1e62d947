# Sessions are cancelled and terminated while they append, wait, read; with
# GROUPLOG_TEST_LONG, thousands of them.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use List::Util qw(shuffle);
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

my $appenders = q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE '%grouplog.append%'
	AND pid <> pg_backend_pid());

# ---- cancels, at random: the clients go on after each ----
foreach my $round (1 .. (long_run() ? 4 : 1))
{
	my @loads = (
		map({ start_load($node, $ledger, clients => 3, mode => $_, records => 2500, endless => $_ ne 'periodic', keep_going => 1,
				options => '-c grouplog.group_window=4ms', size => sub { ($_[0] * 7919) % 5000 }) }
			qw(batch group adaptive periodic)),
		map { start_load($node, $ledger, clients => 1, mode => 'batch', records => 2500, keep_going => 1, kind => $_, batch => 4) }
			qw(batch async));

	# one that is between two statements takes no notice, so until there are enough
	my $sent = 0;
	my $named = qr/waiting for the record at LSN [0-9A-F]+\/[0-9A-F]+, which is in the log and may still become durable/;
	ok( wait_until(
			sub {
				my @pids = split /\n/, $node->safe_psql('postgres', $appenders);

				foreach (@pids ? 1 .. 500 : ())
				{
					kill 'INT', $pids[ rand @pids ];
					sleep 0.001 if ++$sent % 3 == 0;
				}
				my $text = join '', map { slurp_file($_->{err}) } map { values %{ $_->{clients} } } @loads;
				return (() = $text =~ /ERROR: /g) > 2000 && (() = $text =~ /$named/g) > 10;
			}),
		'H16 many statements are cancelled');
	finish_load($_, stop => $_->{endless}) foreach @loads;

	my $errors = join '', map { $_->{errors} } @loads;
	my %states;
	foreach my $load (@loads)
	{
		$states{$_} += $load->{states}{$_} foreach keys %{ $load->{states} };
	}
	my $cancelled = $states{57014} // 0;
	note "H16 $sent cancels sent, $cancelled statements cancelled";
	note "figure: cancelled_statements $cancelled";
	cmp_ok($cancelled, '>', 100, 'H16 many statements were cancelled');
	my $waiting = () = $errors =~ /CONTEXT:  $named/g;
	cmp_ok($waiting, '>', 10, "H16 a cancelled wait names its LSN ($waiting times)");
	my @other = grep { /ERROR/ && !/canceling statement due to user request/ } split /\n/, $errors;
	is(join("\n", @other[ 0 .. ($#other > 3 ? 3 : $#other) ]), '', 'H16 no other error');
	$node->safe_psql('postgres', 'SELECT grouplog.flush()');

	# with what cancelled waits named, as they said
	check_ledger($node, $ledger, 'H16 after cancels', uncrashed => 1);
}

# ---- terminations, at random: clients come and go ----
{
	my ($terminated, $rounds, $errors) = (0, 0, '');
	my $wanted = long_run() ? 1000 : 100;

	while ($terminated < $wanted && $rounds < $wanted)
	{
		my @loads = map {
			start_load($node, $ledger, clients => 4, mode => $_, records => 2000, size => sub { ($_[0] * 7919) % 20000 })
		} qw(batch periodic adaptive group);

		# until the last one is gone, also those that came late
		sleep 0.1;
		while (grep { !process_is_gone($_->{pid}) } map { values %{ $_->{clients} } } @loads)
		{
			foreach my $pid (shuffle split /\n/, $node->safe_psql('postgres', $appenders))
			{
				kill 'TERM', $pid;
				sleep rand 0.02;
			}
		}
		foreach my $load (@loads)
		{
			finish_load($load);
			$errors .= $load->{errors};
			$terminated += $load->{states}{'57P01'} // 0;
		}
		$rounds++;
	}
	note "figure: terminated_sessions $terminated";
	cmp_ok($terminated, '>=', $wanted, "H16 many terminations ($rounds rounds)");
	my @other = grep { /ERROR/ } split /\n/, $errors;
	is(join("\n", @other[ 0 .. ($#other > 3 ? 3 : $#other) ]), '', 'H16 no other error');
	$node->safe_psql('postgres', q(SET statement_timeout = '180s'; SELECT grouplog.flush()));
	check_ledger($node, $ledger, 'H16 after terminations', uncrashed => 1);
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
	my ($state, $message) = cancelled_in_wait($node,
		q(SELECT grouplog.append_batch(array_agg(convert_to(repeat('x', 1000), 'UTF8')), 'batch') FROM generate_series(1, 1000)));
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
