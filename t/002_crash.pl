# The whole server is killed with -9 under load, in each mode, again and again:
# GROUPLOG_KILL_ROUNDS times, or 3.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $rounds = $ENV{GROUPLOG_KILL_ROUNDS} // 3;
my $node = new_node('crash',
	conf => {
		'grouplog.sync_period'    => '300ms',
		'grouplog.sync_lag_limit' => '600ms'
	});
my $ledger = new_ledger();
my $lost_lsn;

my $longest = 0;

# What is lost is the end; how long the time was that it covers is told.
sub note_lost
{
	my ($lost) = @_;

	return if !@$lost;
	$lost_lsn = $lost->[-1]{lsn};
	my ($first, $newest) = (sort { $a <=> $b } map { $_->{time} } @$lost)[ 0, -1 ];
	$longest = $newest - $first if $newest - $first > $longest;
}

my $kills = 0;

foreach my $mode (qw(batch group adaptive periodic))
{
	foreach my $round (1 .. $rounds)
	{
		my $load = start_load($node, $ledger, clients => 6, mode => $mode,
			options => '-c grouplog.group_window=3ms');

		wait_for_acks($load, 200 + 300 * (1 + $round % 3));
		sleep rand 0.2;
		kill_server($node);
		$kills++;
		my $acked = finish_load($load);
		cmp_ok($acked, '>', 0, "H2 $mode, round $round: records were acknowledged before the kill");
		$node->start;
		my $only = only_the_end($load);
		check_ledger($node, $ledger, "H2 $mode, round $round",
			$mode eq 'periodic' ? (lossy => sub { note_lost($_[0]); return $only->(@_) }) : ());
	}
}

note "figure: kills $kills";
note sprintf 'lost in periodic mode: at most %.3f seconds', $longest;

# All modes at once share groups; those who waited lose nothing.
{
	my @loads = map { start_load($node, $ledger, clients => 2, mode => $_) } qw(batch group adaptive);

	wait_for_acks($_, 300) foreach @loads;
	kill_server($node);
	finish_load($_) foreach @loads;
	$node->start;
	check_ledger($node, $ledger, 'H2 mixed modes');
}

# Every kind of call at once, in several databases.
{
	my @databases = ('postgres', 'second', 'third');

	foreach my $database (@databases[ 1, 2 ])
	{
		$node->safe_psql('postgres', "CREATE DATABASE $database");
		$node->safe_psql($database, 'CREATE EXTENSION grouplog');
	}
	foreach my $round (1 .. int(($rounds + 2) / 3))
	{
		my @loads;

		foreach my $database (@databases)
		{
			push @loads, start_load($node, $ledger, clients => 1, mode => $_, dbname => $database)
			  foreach qw(batch adaptive);
			push @loads, start_load($node, $ledger, clients => 1, mode => $_, dbname => $database,
				kind => 'batch', batch => 7, records => 7000)
			  foreach qw(group adaptive);
			push @loads, start_load($node, $ledger, clients => 1, dbname => $database,
				kind => 'async', batch => 10, records => 7000);
		}
		wait_for_acks($_, 60) foreach @loads;
		sleep rand 0.2;
		kill_server($node);
		finish_load($_) foreach @loads;
		$node->start;
		check_ledger($node, $ledger, "H2 batches and asynchronous appends, three databases, round $round");
	}
}

# Lost LSNs are known as lost: here of a period that does not end before the crash.
{
	$node->append_conf('postgresql.conf', "grouplog.sync_period = '100s'\ngrouplog.sync_lag_limit = '200s'");
	$node->restart;
	my $lsn = $node->safe_psql('postgres', q(SELECT grouplog.append('lost-1:', 'periodic')));
	kill_server($node);
	$node->start;
	is($node->safe_psql('postgres', "SELECT count(*) FROM grouplog.read() WHERE lsn = '$lsn'"),
		0, 'H2 a record whose period had not ended is lost');
	my ($state, $message) = sql_error($node, "SELECT grouplog.wait_durable('$lsn')");
	is($state, '22000', 'H2 wait_durable on an LSN lost in the crash is an error');
	like($message, qr/the record at LSN \Q$lsn\E was lost\n.*server went down/s, '... that says so');

	# also once the log has gone on, and after one more start
	append_some($node, $ledger, 'H2 appends go on after the loss');
	($state, $message) = sql_error($node, "SELECT grouplog.wait_durable('$lsn')");
	is($state, '22000', '... still when later records exist');
	$node->restart;
	($state, $message) = sql_error($node, "SELECT grouplog.wait_durable('$lsn')");
	is($state, '22000', '... and after the next start');

	my $end = status($node, 'insert_lsn');
	($state, $message) = sql_error($node, "SELECT grouplog.wait_durable('$end')");
	is($state, '22023', '... and an LSN that was never handed out is another error');
	($state) = sql_error($node, q(SELECT grouplog.wait_durable('0/1')));
	is($state, '22023', '... so is one from before the log');
}
if ($lost_lsn)
{
	my ($state) = sql_error($node, sprintf "SELECT grouplog.wait_durable('%s')", lsn_text($lost_lsn));
	is($state, '22000', 'H2 wait_durable on an acknowledged periodic record that was lost');
}

# Restarts without an append, and with one record each, of whatever kind.
{
	my $files = segment_files($node);
	my $before = status($node, 'run_start_lsn');

	foreach (1 .. 3)
	{
		kill_server($node);
		$node->start;
	}
	is(scalar segment_files($node), $files, 'H2 starts without a record make no file');
	check_ledger($node, $ledger, 'H2 repeated starts');
	foreach my $round (1 .. 4)
	{
		append_some($node, $ledger, "H2 one record before stop $round", clients => 1, records => 1);
		$round % 2 ? kill_server($node) : $node->stop('immediate');
		$node->start;
	}
	check_ledger($node, $ledger, 'H2 short runs');
	cmp_ok(lsn_number(status($node, 'run_start_lsn')), '>', lsn_number($before), 'H2 LSNs only grow');

	my $bytes = 0;
	$bytes += $_->{bytes} foreach grep { $_->{bytes} < 1024 * 1024 } segment_files($node);
	cmp_ok($bytes, '<', 40 * 1024 * 1024, 'H2 files that were left behind are cut');
}

# verify() agrees.
is($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.verify() WHERE NOT ok'),
	0, 'H2 verify finds nothing wrong');

$node->stop;
done_testing();
