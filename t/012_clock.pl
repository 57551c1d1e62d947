# The wall clock jumps: order is by LSN, and time never goes backwards in it.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use_faults() or plan skip_all => 'there is no C compiler';

my $node = new_node('clock', start => 0,
	conf => { 'grouplog.sync_period' => '200ms', 'grouplog.sync_lag_limit' => '400ms' });
my $ledger = new_ledger();
my $day = 24 * 3600;
my $offset = 0;

start_with_faults($node);
$node->safe_psql('postgres', 'CREATE EXTENSION grouplog');

sub jump_to
{
	my ($seconds) = @_;

	$offset = $seconds;
	set_clock($seconds);
}

sub check
{
	my ($name) = @_;

	$node->safe_psql('postgres', q(SET statement_timeout = '180s'; SELECT grouplog.flush()));
	check_ledger($node, $ledger, $name);
	is( $node->safe_psql('postgres', q(
			SELECT count(*) FROM (SELECT recorded_at, lag(recorded_at) OVER (ORDER BY lsn) AS before FROM grouplog.read()) t
			WHERE recorded_at < before)), 0, "$name: recorded_at never goes backwards");
}

foreach my $mode (qw(batch group adaptive periodic))
{
	append_some($node, $ledger, "H18 $mode: now", mode => $mode);
}
check('H18 now');

# under load
foreach my $jump ([ '3 days back', -3 * $day ], [ '400 days ahead', 400 * $day ], [ 'right again', 0 ])
{
	my ($name, $seconds) = @$jump;
	my @loads = map { start_load($node, $ledger, clients => 2, mode => $_, records => 2000) } qw(batch group adaptive periodic);

	wait_for_acks($loads[0], 50);
	jump_to($seconds);
	wait_for_acks($loads[0], 400);
	finish_load($_, stop => 1) foreach @loads;
	is(join('', map { $_->{errors} =~ /ERROR/ ? $_->{errors} : '' } @loads), '', "H18 clock $name under load: no append failed");
	check("H18 clock $name under load");
}

# over restarts
foreach my $jump ([ '3 days back', -3 * $day ], [ '400 days ahead', 400 * $day ], [ 'right again', 0 ])
{
	my ($name, $seconds) = @$jump;

	kill_server($node);
	jump_to($seconds);
	start_with_faults($node);
	check("H18 clock $name at a start");
	append_some($node, $ledger, "H18 clock $name: appends go on", mode => $_) foreach qw(batch periodic);
	check("H18 clock $name, in use");
	$node->stop;
	start_with_faults($node);
	check("H18 clock $name, after a clean restart");
}

is($node->safe_psql('postgres', q(SELECT max(recorded_at) > now() + '300 days' FROM grouplog.read())),
	't', 'H18 the newest record has the largest time ever used');
is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', 'H18 verify agrees');

$node->stop;
done_testing();
