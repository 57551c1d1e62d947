# The power goes while a file is made, renamed, recycled or removed.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Where it strikes, in the life of a file.
my @places = (
	[ 'a spare is made',             'on=create file=spare' ],
	[ 'a spare is filled',           'on=write file=spare skip=1' ],
	[ 'a spare is synced',           'on=sync file=spare' ],
	[ 'a spare gets its name',       'on=rename file=spare' ],
	[ 'a file is activated',         'on=rename file=segment' ],
	[ 'its name is synced',          'on=names' ],
	[ 'the control file is written', 'on=write file=control' ],
	[ 'the control file is synced',  'on=sync file=control' ],
	[ 'the control file is renamed', 'on=rename file=control' ],
	[ 'a file gets its first record', 'on=write file=segment' ]);
my @plans = qw(nothing any all first);
my ($cuts, $looked_for) = (0, 0);
my $seed = $ENV{FAULTS_SEED} // time;

note "seed $seed";

# What is gone with the oldest files is not missed.
sub forget_recycled
{
	my ($node, $ledger) = @_;
	my $oldest = status($node, 'oldest_lsn');

	forget_before($ledger, lsn_number($oldest)) if $oldest ne '';
}

foreach my $recycling (0, 1)
{
	my $what = $recycling ? 'recycled' : 'new files';

	each_configuration(
		$recycling ? 'recycle' : 'files',
		sub {
			my ($title, $node, $fs, $ledger) = @_;

			knob($fs, 'seed ' . ++$seed);
			if ($recycling)
			{
				# until files go round
				finish_load(start_load($node, $ledger, clients => 2, mode => 'batch', records => 400,
					size => sub { 8000 }));
				forget_recycled($node, $ledger);
			}
			foreach my $place (@places)
			{
				my ($words, $where) = @$place;
				my $plan = $plans[ $cuts % @plans ];
				my $name = "H20: power cut when $words, $what, $title, keeps $plan";
				my $load = start_load($node, $ledger, clients => 3, mode => 'batch', records => 700,
					size => sub { 6000 }, keep_going => 1);

				wait_for_acks($load, 5);
				knob($fs, "plan $plan 512");
				knob($fs, "fault 0 $where cut=1 count=1");
				my $dark = wait_until(sub { knob($fs, 'state') =~ /off=1/
					|| !grep { !process_is_gone($_->{pid}) } values %{ $load->{clients} } });
				my $off = knob($fs, 'state') =~ /off=1/;
				my $oldest = $off ? status($node, 'oldest_lsn') : '';
				power_cut_node($node, $fs, $off ? () : ('nothing', 512));
				finish_load($load);
				ok($off, "$name: it is dark") unless $recycling;
				forget_before($ledger, lsn_number($oldest)) if $oldest ne '';
				forget_recycled($node, $ledger) if $recycling;
				like(status($node, 'state'), qr/^open$/, "$name: the log opens");
				check_log($node, $ledger, $name);
				is($node->safe_psql('postgres', q(SELECT count(DISTINCT number) - max(number) + min(number) FROM grouplog.segments)),
					1, "$name: no number is missing");
				$cuts++;
			}
		},
		$recycling ? ('grouplog.max_size' => '6MB', 'grouplog.on_full' => 'recycle') : ());
}
figure('power-cuts', $cuts);
done_testing();
