# Power cuts on real file systems: ext4 and XFS on loop devices, shut down under
# load; and read-only remounts.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my @modes = qw(batch group adaptive periodic);
my $rounds = $ENV{FAULTS_ROUNDS} // 4;
my $cuts = 0;

foreach my $type (qw(ext4 xfs))
{
	my $fs = loop_mount("disk_$type", type => $type, megabytes => 400);

	foreach my $configuration (configurations())
	{
		my ($title, $settings) = @$configuration;
		my $ledger = new_ledger();
		my $node = new_node("cut_${type}_" . $title =~ s/\W+/_/gr,
			conf => {
				%$settings,
				'grouplog.directory'      => "$fs->{mount}/" . $title =~ s/\W+/_/gr,
				'grouplog.sync_period'    => '100ms',
				'grouplog.sync_lag_limit' => '200ms'
			});

		foreach my $round (1 .. $rounds)
		{
			my $mode = $modes[ $cuts % @modes ];
			my $name = "H20: shutdown of $type, $mode, $title, round $round";
			my $load = start_load($node, $ledger, clients => 6, mode => $mode, records => 1500,
				options => '-c grouplog.group_window=2ms', keep_going => 1,
				# so that files are made all the time
				size => sub { ($_[0] * 7919) % 12000 });

			wait_for_acks($load, 50 + 100 * ($round % 3));
			sleep rand 0.1;
			loop_shutdown($node, $fs);
			finish_load($load);
			is(status($node, 'state'), 'open', "$name: the log opens");
			check_log($node, $ledger, $name, $mode eq 'periodic' ? (lossy => only_the_end($load)) : ());
			is($node->safe_psql('postgres', q(SELECT count(DISTINCT number) - max(number) + min(number) FROM grouplog.segments)),
				1, "$name: no number is missing");
			$cuts++;
		}

		# ---- read-only, and back ----
		my $name = "EROFS: $type remounted read-only, $title";
		append_some($node, $ledger, "$name: before");
		$node->stop('fast');
		as_root('mount', '-o', 'remount,ro', $fs->{mount});
		start_up($node);
		my ($state, $message) = sql_error($node, q(SELECT grouplog.append('996-1:')));
		like($message, qr/Read-only file system/, "$name: appends are refused, and say why");
		note_refused($ledger, 996, 1, 0);
		as_root('mount', '-o', 'remount,rw', $fs->{mount});
		ok(wait_until(sub { status($node, 'state') eq 'open' && status($node, 'refusal') eq '' }),
			"$name: it can be written again");
		append_some($node, $ledger, "$name: appends go on without a restart");
		check_log($node, $ledger, "$name: over");
		$node->stop('immediate');
		$node->clean_node;
		unlink glob "$fs->{mount}/*/*";
	}
	loop_unmount($fs);
}
figure('power-cuts', $cuts);
done_testing();
