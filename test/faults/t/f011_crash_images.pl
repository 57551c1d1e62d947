# Hundreds of crash images: at many moments under load, what a power cut would
# leave just then, for each way in which it may.  Recovery and a walk (logcheck)
# must find in each of them all that had been acknowledged.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my @plans = map { my $keep = $_; map { [ $keep, $_ ] } 512, 4096 } qw(nothing first last hole any);
my $moments = $ENV{FAULTS_MOMENTS} // 10;
my $seed = $ENV{FAULTS_SEED} // time;
my ($count, $looked_for) = (0, 0);

note "seed $seed";
srand $seed;
each_configuration(
	'images',
	sub {
		my ($title, $node, $fs, $ledger) = @_;
		my @loads = map {
			start_load($node, $ledger, clients => 2, mode => $_, records => 3000,
				size => sub { ($_[0] * 7919) % 1500 }, options => '-c grouplog.group_window=2ms')
		} qw(batch group adaptive);
		my @images;
		my $in_flight = 0;

		knob($fs, 'seed ' . ++$seed);
		wait_for_acks($loads[0], 10);
		# so that something is on its way at most moments
		knob($fs, 'fault 7 on=sync file=segment,spare,control delay=10000');
		foreach my $moment (1 .. $moments)
		{
			sleep rand 0.05;
			foreach my $plan (@plans)
			{
				my $folder = "$fs->{backing}.$moment." . @images;

				# most of them in the middle of a group
				$in_flight++ if wait_until(sub { knob($fs, 'state') !~ /dirty=0 / }, 0.2);
				my $marks = ack_marks(@loads);
				knob($fs, "image $folder @$plan");
				push @images, [ "$folder/data/log", $marks ];
			}
		}
		knob($fs, 'clear');
		finish_load($_, stop => 1) foreach @loads;
		note "$in_flight with something on its way";
		cmp_ok($in_flight, '>', @images / 20, "H4: images, $title: something was on its way");
		my ($wrong, $checked) = check_images($ledger, \@loads, @images);
		is(join('; ', @$wrong[ 0 .. ($#$wrong > 4 ? 4 : $#$wrong) ]),
			'', "H4: " . @images . " crash images, $title: all acknowledged are in each");
		cmp_ok($checked, '>', 0, "H4: images, $title: some were");
		check_log($node, $ledger, "H4: the server itself, after the images, $title");
		as_root('rm', '-rf', map { s{/data/log$}{}r } map { $_->[0] } @images);
		$count += @images;
		$looked_for += $checked;
	});
figure('crash-images', $count);
figure('records-checked', $looked_for);
done_testing();
