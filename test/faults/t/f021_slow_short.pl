# Short writes, slow writes and syncs: late, but right.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @modes = qw(batch group adaptive periodic);
my $faults = 0;

sub under_load
{
	my ($node, $ledger, %options) = @_;
	my @loads = map {
		start_load($node, $ledger, clients => 2, mode => $_, records => 150,
			size => sub { ($_[0] * 7919) % 6000 }, options => '-c grouplog.group_window=2ms', %options)
	} @modes;

	finish_load($_) foreach @loads;
	return join '', map { $_->{errors} } @loads;
}

each_configuration(
	'slow',
	sub {
		my ($title, $node, $fs, $ledger) = @_;

		# with io_uring the kernel itself sees to short direct writes (knobs.h)
		if (status($node, 'io_method') eq 'sync')
		{
			knob($fs, 'short 1');
			$node->restart;
		}

		# direct I/O goes on from the beginning of a block: less than one is no progress
		my $buffered = status($node, 'sync_method') eq 'fdatasync';

		foreach my $case (
			$buffered
			? ([ 'H14: short writes of 512 bytes at most', 'on=write bytes=512 file=segment' ],
				[ 'H14: short writes now and then', 'on=write bytes=1000 chance=300000 file=segment,spare' ])
			: ([ 'H14: a write of 512 bytes', 'on=write bytes=512 count=1' ],
				[ 'H14: short writes now and then', 'on=write bytes=4096 chance=300000 file=segment,spare' ]),
			[ 'H14: short writes of 4096 bytes at most', 'on=write bytes=4096 file=segment,spare,control' ],
			[ 'H14: a write of nothing', 'on=write bytes=0 count=1' ],
			[ 'slow writes',      'on=write delay=4000' ],
			[ 'slow syncs',       'on=sync delay=4000' ],
			[ 'a sync of 1.5 s',  'on=sync delay=1500000 count=1' ])
		{
			my ($what, $fault) = @$case;
			my $name = "$what, all modes, $title";

			knob($fs, "fault 0 $fault");
			is(under_load($node, $ledger), '', "$name: no append failed");
			cmp_ok(fault_hits_of($fs, 0), '>', 0, "$name: it has struck");
			is(status($node, 'refusal'), '', "$name: nothing is refused");
			$node->safe_psql('postgres', 'SELECT grouplog.flush()');
			power_cut_node($node, $fs, 'nothing', 512);
			check_log($node, $ledger, "$name, after a power cut");
			$faults++;
		}

		# short in the middle of a group, and then the power goes: never acknowledged early
		foreach my $keep (qw(nothing any all))
		{
			my $name = "H14: a short write, then a power cut, $title, keeps $keep";
			my $load = start_load($node, $ledger, clients => 6, mode => 'batch', records => 600,
				size => sub { 5000 }, keep_going => 1);

			wait_for_acks($load, 30);
			knob($fs, "plan $keep 512");
			knob($fs, 'fault 0 on=write bytes=4096');
			knob($fs, 'fault 1 on=write skip=4 cut=1');
			ok(wait_until(sub { knob($fs, 'state') =~ /off=1/ }), "$name: it is dark");
			power_cut_node($node, $fs);
			finish_load($load);
			check_log($node, $ledger, $name);
			$faults++;
		}

		# who waits for a slow device can be cancelled, and is told the LSN
		knob($fs, 'fault 0 on=sync delay=600000000');
		my ($state, $message) = sql_error($node,
			q(SET statement_timeout = '300ms'; SELECT grouplog.append('991-1:', 'batch')));
		is($state, '57014', "slow syncs, $title: a wait can be cancelled");
		my ($lsn) = $message =~ /waiting for the record at LSN ([0-9A-F\/]+)/;
		ok(defined $lsn, '... the message has the LSN');
		note_unsure($ledger, 991, 1, 0, $lsn);
		is($node->safe_psql('postgres', "SELECT '$lsn' < durable_lsn FROM grouplog.status"), 'f',
			'... long before the device has done it');
		knob($fs, 'clear');
		is($node->safe_psql('postgres', "SELECT grouplog.wait_durable('$lsn')"), 't', '... which becomes durable');
		check_log($node, $ledger, "slow syncs, $title: over");
	});
figure('faults-staged', $faults);
done_testing();
