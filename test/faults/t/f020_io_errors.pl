# Writes and syncs that fail: once, the n-th time, at random, for good.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my @modes = qw(batch group adaptive periodic);
my $faults = 0;
my $seed = $ENV{FAULTS_SEED} // time;

note "seed $seed";

sub loads
{
	my ($node, $ledger, %options) = @_;

	return map {
		start_load($node, $ledger, clients => 2, mode => $_, records => 300,
			size => sub { ($_[0] * 7919) % 3000 }, options => '-c grouplog.group_window=2ms', %options)
	} @modes;
}

sub errors_of
{
	my %states;

	foreach my $load (@_)
	{
		$states{$_} += $load->{states}{$_} foreach keys %{ $load->{states} };
	}
	return join ' ', sort keys %states;
}

# A power cut takes what was never synced; a kill leaves what the cache pretends.
sub crash_and_check
{
	my ($node, $fs, $ledger, $name, $power) = @_;

	if ($power)
	{
		power_cut_node($node, $fs, 'nothing', 512);
	}
	else
	{
		kill_server($node);
		knob($fs, 'clear');
		start_up($node);
	}
	check_log($node, $ledger, "$name, after a " . ($power ? 'power cut' : 'kill'));
}

each_configuration(
	'errors',
	sub {
		my ($title, $node, $fs, $ledger) = @_;

		knob($fs, 'seed ' . ++$seed);

		# ---- once, or now and then: nobody notices ----
		foreach my $case (
			[ 'write: EIO once',         'on=write errno=EIO count=1' ],
			[ 'write: EIO the 8th time', 'on=write errno=EIO skip=7 count=1' ],
			[ 'fsync: EIO once',         'on=sync errno=EIO count=1' ],
			[ 'fsync: EIO the 8th time', 'on=sync errno=EIO skip=7 count=1' ])
		{
			my ($what, $fault) = @$case;
			my $name = "H11: $what, all modes, $title";
			my $position = log_position($node);
			my $before = $node->safe_psql('postgres', 'SELECT continuations FROM grouplog.stat');
			my @loads = loads($node, $ledger);

			wait_for_acks($loads[0], 30);
			knob($fs, "fault 0 $fault");
			ok(wait_until(sub { fault_hits_of($fs, 0) > 0 }), "$name: it has struck");
			finish_load($_) foreach @loads;
			is(errors_of(@loads), '', "$name: no append failed");
			is(status($node, 'state'), 'open', "$name: the log stays open");
			# It may have struck the last periodic records, which nobody waited for.
			$node->safe_psql('postgres', 'SELECT grouplog.flush()');
			cmp_ok($node->safe_psql('postgres', 'SELECT continuations FROM grouplog.stat'),
				'>', $before, "$name: a continuation file took over");
			is(() = log_since($node, $position) =~ /grouplog leaves the file/g, 1, "$name: said once in the log");
			check_log($node, $ledger, "$name, before a crash");
			crash_and_check($node, $fs, $ledger, $name, $faults++ % 2);
		}

		# ---- at random ----
		foreach my $fault ('on=write errno=EIO chance=150000', 'on=sync errno=EIO chance=150000')
		{
			my $name = "H11: $fault, all modes, $title";
			my @loads = loads($node, $ledger, keep_going => 1, records => 150);

			knob($fs, "fault 0 $fault file=segment,spare");
			wait_until(sub { fault_hits_of($fs, 0) >= 12
				|| !grep { !process_is_gone($_->{pid}) } map { values %{ $_->{clients} } } @loads });
			my $hits = fault_hits_of($fs, 0);
			knob($fs, 'clear');
			finish_load($_) foreach @loads;
			cmp_ok($hits, '>', 0, "$name: it has struck");
			like(errors_of(@loads), qr/^(?:(?:58000|58030)\s?)*$/, "$name: the errors that are promised");
			ok(wait_until(sub { status($node, 'refusal') eq '' }), "$name: appends are taken again");
			append_some($node, $ledger, "$name: appends go on");
			$node->safe_psql('postgres', 'SELECT grouplog.flush()');
			check_log($node, $ledger, "$name, before a crash");
			crash_and_check($node, $fs, $ledger, $name, $faults++ % 2);
		}

		# ---- for good ----
		foreach my $fault ('on=write', 'on=sync')
		{
			foreach my $then ('the device is back', 'a kill', 'a power cut', 'a shutdown')
			{
				my $name = "H12: EIO for good, $fault, all modes, $title, then $then";
				my $position = log_position($node);
				my @loads = loads($node, $ledger, records => 1500);

				wait_for_acks($loads[0], 30);
				knob($fs, "fault 0 $fault file=segment,spare errno=EIO");
				finish_load($_) foreach @loads;
				like(errors_of(@loads), qr/58030/, "$name: those who waited are told that the outcome is unknown");
				like(errors_of(@loads), qr/^(?:(?:58000|58030)\s?)+$/, "$name: nobody is told anything else");
				is(status($node, 'refusal'), 'device', "$name: appends are refused");
				foreach my $mode (@modes)
				{
					my ($state, $message) = sql_error($node, "SELECT grouplog.append('990-1:', '$mode')");
					is($state, '58000', "$name: refused in mode $mode");
					like($message, qr/HINT/, '... with a hint');
				}
				note_refused($ledger, 990, 1, 0);
				is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM grouplog.read()'), 't', "$name: reads go on");
				is($node->safe_psql('postgres', 'SELECT 1'), '1', "$name: the server lives");
				is(() = log_since($node, $position) =~ /LOG:  could not [^\n]*\n[^\n]*HINT:  Appends are refused until/g,
					1, "$name: said once in the log");

				# of the periodic ones the newest are lost, as far as a restart comes in between
				my @lossy = $then eq 'the device is back' ? () : (lossy => only_the_end($loads[-1]));
				if ($then eq 'the device is back')
				{
					knob($fs, 'clear');
					ok(wait_until(sub { status($node, 'refusal') eq '' }), "$name: appends are taken again");
					is(() = log_since($node, $position) =~ /grouplog can write again/g, 1, "$name: said once in the log");
				}
				elsif ($then eq 'a power cut')
				{
					power_cut_node($node, $fs, 'any', 512);
				}
				elsif ($then eq 'a kill')
				{
					kill_server($node);
					knob($fs, 'clear');
					start_up($node);
				}
				else
				{
					$node->stop('fast');
					like(log_since($node, $position), qr/could not make the last records durable/,
						"$name: said in the log");
					knob($fs, 'clear');
					start_up($node);
				}
				check_log($node, $ledger, $name, @lossy);
				append_some($node, $ledger, "$name: appends go on");
				check_ledger($node, $ledger, "$name: and after that");
				$faults++;
			}
		}
	});
figure('faults-staged', $faults);
done_testing();
