# A sync that hangs for a while is seen in the server log: while it lasts, where
# the writer is free to look, or else when it is over.  With io_method = sync it is
# not; nor is it with io_uring when it writes to this file system by direct I/O,
# since FUSE makes even a call that must not wait wait.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $faults = 0;

each_configuration(
	'slow_sync',
	sub {
		my ($title, $node, $fs) = @_;
		my $position = log_position($node);
		my $free = status($node, 'io_method') eq 'io_uring' && status($node, 'sync_method') eq 'fdatasync';
		my $slow = sub {
			return [ log_since($node, $position) =~ /^.*\b((?:WARNING|LOG):  (?:a|the) sync of the log .*) after \d+ ms$/mg ];
		};
		my $unfinished = 'WARNING:  a sync of the log has not ended';

		$node->safe_psql('postgres', q(SELECT grouplog.append('first', 'batch')));
		$position = log_position($node);
		knob($fs, 'fault 0 on=sync delay=4000000 count=1');
		my $session = $node->background_psql('postgres');
		$session->query_until(qr/started/, "\\echo started\nSELECT grouplog.append('slow', 'batch');\n");

		ok(wait_until(sub { fault_hits_of($fs, 0) > 0 }), "slow sync, $title: it has struck");
		if (!$free)
		{
			ok(wait_until(sub { log_since($node, $position) =~ /WARNING:  a sync of the log took (\d+) ms$/m && $1 >= 500 }),
				"slow sync, $title: said when it is over");
			is_deeply($slow->(), [], "slow sync, $title: not before");
		}
		else
		{
			ok(wait_until(sub { @{ $slow->() } > 0 }), "slow sync, $title: said");
			is_deeply($slow->(), [$unfinished], "slow sync, $title: ... while it lasts");
			ok(wait_until(sub { @{ $slow->() } > 1 }), "slow sync, $title: and when it is over");
			is_deeply($slow->(), [ $unfinished, 'LOG:  the sync of the log ended' ], "slow sync, $title: ... each once");
		}
		$session->quit;
		$faults++;
	},
	'grouplog.log_sync_min_duration' => '500ms');

figure('faults-staged', $faults);
done_testing();
