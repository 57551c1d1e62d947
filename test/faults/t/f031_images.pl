# Crash images of a real file system: its disk is cloned under load, over and over,
# and each clone is mounted (so its journal is replayed) and looked at.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $moments = $ENV{FAULTS_MOMENTS} // 25;
my ($count, $looked_for, $started) = (0, 0, 0);
my $outer = loop_mount('outer', type => 'xfs', megabytes => 4000);

foreach my $type (qw(ext4 xfs))
{
	foreach my $configuration (configurations())
	{
		my ($title, $settings) = @$configuration;
		my $name = "H20: clones of $type, $title";
		my $unique = "${type}_" . $title =~ s/\W+/_/gr;
		my $fs = loop_mount("disk_$unique", type => $type, megabytes => 320, in => $outer->{mount});
		my $ledger = new_ledger();
		my $node = new_node("clone_$unique",
			conf => { %$settings, 'grouplog.directory' => "$fs->{mount}/log" });
		my @loads = map {
			start_load($node, $ledger, clients => 2, mode => $_, records => 4000,
				size => sub { ($_[0] * 7919) % 4000 }, options => '-c grouplog.group_window=2ms')
		} qw(batch group adaptive);
		my @clones;

		foreach my $moment (1 .. $moments)
		{
			sleep rand 0.05;
			my $marks = ack_marks(@loads);
			my $clone = "$outer->{mount}/clone_$moment.img";

			loop_image($fs, $clone);
			push @clones, [ $clone, $marks ];
		}
		finish_load($_, stop => 1) foreach @loads;
		check_log($node, $ledger, "$name: the server itself");
		$node->stop('fast');

		my @all_wrong;
		foreach my $clone (@clones)
		{
			my ($image, $marks) = @$clone;
			my $copy = loop_mount('clone', type => $type, image => $image);
			my ($wrong, $checked) = check_images($ledger, \@loads, [ "$copy->{mount}/log", $marks ]);

			push @all_wrong, @$wrong;
			$looked_for += $checked;
			$count++;
			loop_unmount($copy);
		}
		is(join('; ', @all_wrong[ 0 .. ($#all_wrong > 4 ? 4 : $#all_wrong) ]),
			'', "$name: all that was acknowledged is in each of " . @clones);

		# one of them, with a server
		loop_unmount($fs);
		rename $clones[-1][0], $fs->{image};
		my $again = loop_mount("disk_$unique", type => $type, image => $fs->{image});
		start_up($node);
		is(status($node, 'state'), 'open', "$name: a server opens the last one");
		is($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.verify() WHERE NOT ok'), 0,
			"$name: verify finds nothing wrong");
		my %there = map { $_ => 1 } split /\n/,
		  $node->safe_psql('postgres', q(SELECT split_part(payload, ':', 1) FROM grouplog.read_text()));
		my $acked = acked_at(\@loads, $clones[-1][1]);
		is(scalar(grep { !$there{$_} } keys %$acked), 0, "$name: ... and reads all that was acknowledged");
		$started++;
		$node->stop('immediate');
		$node->clean_node;
		loop_unmount($again);
		as_root('rm', '-f', $fs->{image}, map { $_->[0] } @clones);
	}
}
loop_unmount($outer);
figure('crash-images', $count);
figure('records-checked', $looked_for);
done_testing();
