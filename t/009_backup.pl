# A base backup under load; a standby, promoted.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('primary', init => [ allows_streaming => 1 ], conf => { wal_keep_size => '200MB' });
my $ledger = new_ledger();

append_some($node, $ledger, 'some records first', records => 300, size => sub { ($_[0] * 7919) % 3000 });

foreach my $round (1 .. 3)
{
	my @loads = map {
		start_load($node, $ledger, clients => 2, mode => $_, endless => 1, size => sub { ($_[0] * 7919) % 3000 })
	} qw(batch adaptive);

	wait_for_acks($loads[0], 200);

	# all that is acknowledged now must be in the backup
	my $durable = lsn_number(status($node, 'durable_lsn'));
	$node->backup("backup$round", backup_options => [ '-c', 'fast' ]);
	my $later = lsn_number(status($node, 'durable_lsn'));
	finish_load($_, stop => 1) foreach @loads;
	cmp_ok($later, '>', $durable, "backup $round: the log moved meanwhile");

	my $copy = PostgreSQL::Test::Cluster->new("copy$round");
	$copy->init_from_backup($node, "backup$round");
	my $position = 0;
	$copy->start;
	wait_open($copy);
	is(status($copy, 'state'), 'open', "backup $round: the log opens");
	like(status($copy, 'recovery'), qr/restored from a backup/, '... status shows that it was restored');
	ok(!-e log_directory($copy) . '/restored', '... the mark is gone when recovery has ended');

	# the copy's ledger: what was durable when the backup began
	my $copied = { %$ledger, acked => {}, owner => {}, reused => [], strange => [] };
	foreach my $key (keys %{ $ledger->{acked} })
	{
		$copied->{acked}{$key} = $ledger->{acked}{$key} if $ledger->{acked}{$key}{lsn} < $durable;
	}
	check_ledger($copy, $copied, "backup $round");
	append_some($copy, $copied, "backup $round: appends go on");
	check_ledger($copy, $copied, "backup $round, later");
	is($copy->safe_psql('postgres', 'SELECT count(*) FROM grouplog.verify() WHERE NOT ok'), 0, "backup $round: verify finds nothing wrong");
	kill_server($copy);
	$copy->start;
	wait_open($copy);
	is(status($copy, 'state'), 'open', "backup $round: open after a crash");
	check_ledger($copy, $copied, "backup $round, after a crash");
	$copy->restart;
	check_ledger($copy, $copied, "backup $round, after a clean restart");
	$copy->stop;
}
check_ledger($node, $ledger, 'the primary server');

# ---- a standby ----
{
	my $standby = PostgreSQL::Test::Cluster->new('standby');

	my $durable = lsn_number(status($node, 'durable_lsn'));
	$node->backup('standby', backup_options => [ '-c', 'fast' ]);
	$standby->init_from_backup($node, 'standby', has_streaming => 1);
	$standby->start;
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));

	is($standby->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'grouplog%')),
		0, 'standby: no writer runs');
	foreach my $call (
		q(grouplog.append('x')), q(grouplog.append('x', 'periodic')), q(grouplog.append_async('x')),
		q(grouplog.append_batch_text('{x}')), q(grouplog.flush()), q(grouplog.truncate('0/1')),
		q(grouplog.accept_end('0/1')))
	{
		my ($state, $message) = sql_error($standby, "SELECT $call");
		like($state, qr/^(25006|55000)$/, "standby: $call is refused") or diag $message;
	}
	foreach my $call (q(grouplog.read()), q(grouplog.read_text(NULL, 1)), q(grouplog.verify()))
	{
		my ($state, $message) = sql_error($standby, "SELECT * FROM $call");
		like($state, qr/^(55000|25006)$/, "standby: $call is refused") or diag $message;
	}
	my ($state) = sql_error($standby, q(SELECT grouplog.wait_durable('0/100000')));
	like($state, qr/^(55000|25006)$/, 'standby: wait_durable is refused');
	is($standby->psql('postgres', 'SELECT * FROM grouplog.status; SELECT * FROM grouplog.stat; SELECT * FROM grouplog.segments'),
		0, 'standby: the views work');
	is($standby->psql('postgres', q(SELECT grouplog.set_sync_mode('batch'))), 0, 'standby: a mode can be set');

	# stopped and started as a standby: the mark lasts
	$standby->restart;
	is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', 'standby: restarted');

	$standby->promote;
	wait_open($standby);
	is(status($standby, 'state'), 'open', 'promoted: the log opens');
	my $copied = { %$ledger, acked => { %{ $ledger->{acked} } }, owner => {}, reused => [], strange => [] };
	check_ledger($standby, $copied, 'promoted');
	append_some($standby, $copied, 'promoted: appends work');
	check_ledger($standby, $copied, 'promoted, in use');
	$standby->stop;
}

# ---- a copy that is started beside its original, with one log directory ----
{
	my $shared = scratch('shared_log');

	$node->stop;
	rename log_directory($node), $shared or die;
	$node->append_conf('postgresql.conf', "grouplog.directory = '$shared'");
	$node->start;
	append_some($node, $ledger, 'the log directory moved elsewhere: appends go on');
	$node->backup('beside', backup_options => [ '-c', 'fast' ]);
	my $copy = PostgreSQL::Test::Cluster->new('beside');
	$copy->init_from_backup($node, 'beside');
	$copy->start;
	wait_open($copy);
	is(status($copy, 'state'), 'unavailable', 'a copy beside its original: the log in use is not opened');
	ok(!-e "$shared/restored", '... and not marked as restored');
	$copy->stop;
	$node->restart;
	wait_open($node);
	unlike(status($node, 'recovery'), qr/restored/, '... so its owner does not take it for a backup');
	check_ledger($node, $ledger, 'the original');
}

$node->stop;
done_testing();
