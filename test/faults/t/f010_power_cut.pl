# The power goes in the middle of a group, over and over: what was written and not
# synced is there or not, whole or torn, in any order.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# [ what is kept, unit ]
my @plans = (
	[ 'nothing', 512 ], [ 'first', 512 ], [ 'first', 4096 ], [ 'any', 512 ],
	[ 'last', 512 ], [ 'hole', 512 ], [ 'any', 4096 ], [ 'one', 512 ], [ 'all', 512 ], [ 'last', 4096 ]);
my @modes = qw(batch group adaptive periodic);
my $cuts = 0;
my $seed = $ENV{FAULTS_SEED} // time;

note "seed $seed";
each_configuration(
	'cut',
	sub {
		my ($title, $node, $fs, $ledger) = @_;

		knob($fs, 'seed ' . $seed++);
		foreach my $round (0 .. $#plans)
		{
			my ($keep, $unit) = @{ $plans[$round] };
			my $mode = $modes[ $cuts % @modes ];
			my $name = "H4: power cut in a group, $mode, $title: keeps $keep by $unit";
			my $load = start_load($node, $ledger, clients => 6, mode => $mode,
				options => '-c grouplog.group_window=2ms', keep_going => 1, records => 1500);

			wait_for_acks($load, 60);
			knob($fs, "plan $keep $unit");
			knob($fs, 'fault 0 on=write cut=1 skip=' . ($round * 7 % 11));
			ok(wait_until(sub { knob($fs, 'state') =~ /off=1/ }), "$name: it is dark") or next;
			power_cut_node($node, $fs);
			finish_load($load);
			like(status($node, 'recovery'), qr/^(?:unclean|torn|clean)/, "$name: recovered");
			check_log($node, $ledger, $name, $mode eq 'periodic' ? (lossy => only_the_end($load)) : ());
			$cuts++;
		}

		# twice in a row, without an append; then one that stays
		power_cut_node($node, $fs, 'nothing', 512);
		power_cut_node($node, $fs, 'any', 512);
		check_log($node, $ledger, "H4: power cuts without an append, $title");
		append_some($node, $ledger, "H4: appends go on, $title");
		power_cut_node($node, $fs, 'nothing', 512);
		check_log($node, $ledger, "H4: what was acknowledged has been synced, $title");
		$cuts += 3;
	});
figure('power-cuts', $cuts);
done_testing();
