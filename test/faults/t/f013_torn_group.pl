# H4: one group, torn at every 512-byte boundary: the log ends at the last whole
# record, wherever that is.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($count, $looked_for) = (0, 0);

each_configuration(
	'torn',
	sub {
		my ($title, $node, $fs, $ledger) = @_;
		my @before = start_load($node, $ledger, clients => 2, mode => 'batch', records => 20);

		finish_load($_) foreach @before;
		foreach my $case ([ 'small records', 60, 12 ], [ 'large records', 5000, 6 ])
		{
			my ($what, $size, $records) = @$case;

			# several sessions, and a sync that does not end until we say so
			knob($fs, 'fault 0 on=sync delay=60000000');
			my $load = start_load($node, $ledger, clients => $records, mode => 'group', records => 1,
				size => sub { $size }, options => '-c grouplog.group_window=100ms');
			my $dirty = 0;
			wait_until(sub { ($dirty) = knob($fs, 'state') =~ /dirty=(\d+)/; return $dirty > 0 });

			my $marks = ack_marks(@before);
			foreach my $keep (qw(first last))
			{
				my @images;

				foreach my $point (0 .. $dirty)
				{
					my $folder = "$fs->{backing}.$records.$keep.$point";

					knob($fs, "image $folder $keep 512 $point");
					push @images, [ "$folder/data/log", $marks ];
				}
				my ($still) = knob($fs, 'state') =~ /dirty=(\d+)/;
				my $name = "H4: torn at each of $dirty sectors, keeps the $keep, $what, $title";

				is($still, $dirty, "$name: one moment");
				$ledger->{sent}{$_} = 1 foreach keys %{ $load->{clients} };
				my ($wrong, $checked, @found) = check_images($ledger, \@before, @images);
				is(join('; ', @$wrong), '', "$name: all that was acknowledged is there");
				@found = reverse @found if $keep eq 'last';
				is(scalar(grep { $found[ $_ - 1 ] > $found[$_] } 1 .. $#found),
					0, "$name: the more has landed, the more is read");
				cmp_ok($found[-1], '>', $found[0], "$name: up to all of it") or diag "@found";
				as_root('rm', '-rf', map { s{/data/log$}{}r } map { $_->[0] } @images);
				$count += @images;
				$looked_for += $checked;
			}
			knob($fs, 'clear');
			finish_load($load);
		}
		check_log($node, $ledger, "H4: torn groups, $title, the server itself");
	});
figure('crash-images', $count);
figure('records-checked', $looked_for);
done_testing();
