# No space, no quota, no right to write: refused before a claim, and over by itself.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $faults = 0;

each_configuration(
	'space',
	sub {
		my ($title, $node, $fs, $ledger) = @_;

		foreach my $error (qw(ENOSPC EDQUOT))
		{
			my $name = "H13: $error, $title";
			my $position = log_position($node);
			my @loads = map {
				start_load($node, $ledger, clients => 2, mode => $_, records => 1000, size => sub { 8000 })
			} qw(batch adaptive periodic);

			wait_for_acks($loads[0], 20);
			# a spare that is being filled gets stuck in its middle
			knob($fs, "space 700000 $error");
			finish_load($_) foreach @loads;
			foreach my $load (@loads)
			{
				is(join(' ', sort keys %{ $load->{states} }), '53100', "$name: appends are refused as disk_full");
				is($load->{states}{'53100'}, 2, "$name: ... each session is told");
			}
			like(status($node, 'refusal'), qr/no_space/, "$name: shown in status");
			my ($state, $message) = sql_error($node, q(SELECT grouplog.append('992-1:' || repeat('x', 8000))));
			is($state, '53100', "$name: further appends fail at once");
			like($message, qr/HINT/, "$name: ... with a hint");
			is(() = log_since($node, $position) =~ /LOG:  (?:no space for another file|could not [^\n]*spare-)/g,
				1, "$name: said once in the log");
			$node->safe_psql('postgres', 'SELECT grouplog.flush()');
			check_log($node, $ledger, "$name: reads go on");

			# a start needs no space, with a spare and without
			kill_server($node);
			start_up($node);
			check_log($node, $ledger, "$name: a start needs no space");
			kill_server($node);
			unlink glob(log_of($fs) . '/spare-*');
			start_up($node);
			check_log($node, $ledger, "$name: a start without a spare");
			$node->stop('fast');
			start_up($node);
			check_log($node, $ledger, "$name: a stop without space");

			knob($fs, 'space -1 ENOSPC');
			ok(wait_until(sub { status($node, 'refusal') eq '' }), "$name: space comes back");
			append_some($node, $ledger, "$name: appends go on without a restart", size => sub { 8000 });
			power_cut_node($node, $fs, 'nothing', 512);
			check_log($node, $ledger, "$name: after a power cut");
			$faults++;
		}

		# ---- a file system that is read-only from now on ----
		{
			my $name = "EROFS, $title";
			my @loads = map {
				start_load($node, $ledger, clients => 2, mode => $_, records => 4000)
			} qw(batch adaptive group);

			wait_for_acks($loads[0], 20);
			knob($fs, 'readonly 1');
			finish_load($_) foreach @loads;
			foreach my $load (@loads)
			{
				like(join(' ', sort keys %{ $load->{states} }), qr/^(?:(?:42501|58000|58030)\s?)+$/,
					"$name: the errors that are promised");
			}
			my ($state, $message) = sql_error($node, q(SELECT grouplog.append('993-1:')));
			like($state, qr/^(?:42501|58000)$/, "$name: appends are refused");
			like($message, qr/Read-only file system/, "$name: ... and say why");
			is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM grouplog.read()'), 't', "$name: reads go on");

			kill_server($node);
			start_up($node);
				isnt(status($node, 'state'), 'corrupt', "$name: ... and does not call the log corrupt");
			($state, $message) = sql_error($node, q(SELECT grouplog.append('993-1:')));
			like($message, qr/Read-only file system/, "$name: ... but says why it takes no appends");
			knob($fs, 'readonly 0');
			# what was refused must not be there
			note_refused($ledger, 993, 1, 0);
			ok(wait_until(sub { status($node, 'state') eq 'open' && status($node, 'refusal') eq '' }),
				"$name: it can be written again");
			append_some($node, $ledger, "$name: appends go on without a restart");
			check_log($node, $ledger, "$name: over");
			$faults++;
		}
	});
figure('faults-staged', $faults);
done_testing();
