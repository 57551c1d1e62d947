# H3: the newest file is empty, has nothing but its header, or garbage; and the
# hole with a whole record after it (H5).

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $faults = 0;
my $seed = $ENV{FAULTS_SEED} // time;

note "seed $seed";
srand $seed;

sub garbage
{
	my ($bytes) = @_;

	return join '', map { chr int rand 256 } 1 .. $bytes;
}

sub newest
{
	my ($fs) = @_;

	return (sort grep { /\.seg$/ } glob log_of($fs) . '/*')[-1];
}

sub start_and_see
{
	my ($node, $name) = @_;

	start_up($node);
	return status($node, 'state');
}

each_configuration(
	'last',
	sub {
		my ($title, $node, $fs, $ledger) = @_;

		append_some($node, $ledger, "H3: records, $title", size => sub { 700 });
		$node->stop('fast');
		start_up($node);

		# ---- a spare that was activated, and got no record: header only ----
		knob($fs, 'plan nothing 512');
		knob($fs, 'fault 0 on=write file=segment cut=1');
		sql_error($node, q(SELECT grouplog.append('995-1:')));
		note_unsure($ledger, 995, 1, 0);
		power_cut_node($node, $fs);
		my $name = "H3: the newest file is a header only, $title";
		is(status($node, 'state'), 'open', "$name: the log opens");
		cmp_ok(-s newest($fs), '>=', 4096, "$name: it is that indeed");
		check_log($node, $ledger, $name);
		append_some($node, $ledger, "$name: appends go on");

		# ---- garbage after the end: a torn tail, reported ----
		foreach my $bytes (32, 512, 5000)
		{
			$name = "H3: $bytes bytes of garbage at the end, $title";
			append_some($node, $ledger, "$name: records");
			kill_server($node);
			my $file = newest($fs);
			my ($base) = map { hex(substr $_, 0, 8) * 2**32 + hex substr $_, 8 } $file =~ /-(\w{16})\.seg$/;
			my $end = 0;
			foreach my $entry (values %{ $ledger->{acked} })
			{
				$end = $entry->{lsn} if $entry->{lsn} > $end;
			}
			# some way after the last record there is
			write_bytes($file, 4096 + $end - int($base / 4096) * 4096 + 2048, garbage($bytes));
			is(start_and_see($node, $name), 'open', "$name: the log opens");
			like(status($node, 'recovery'), qr/^torn at .* bytes left behind/, "$name: and reports a torn tail");
			check_ledger($node, $ledger, $name);
			append_some($node, $ledger, "$name: appends go on");
			$faults++;
		}

		# ---- the newest file is cut, emptied, overwritten as a whole ----
		$node->stop('fast');
		start_up($node);
		append_some($node, $ledger, "H3: records in the newest file, $title");
		kill_server($node);
		my $file = newest($fs);
		my $whole = read_bytes($file, 0, -s $file);
		foreach my $case (
			[ 'empty', sub { truncate $file, 0 } ],
			[ 'half a header', sub { truncate $file, 2048 } ],
			[ 'all zeros', sub { write_bytes($file, 0, "\0" x length $whole) } ],
			[ 'garbage', sub { write_bytes($file, 0, garbage(length $whole)) } ])
		{
			my ($what, $damage) = @$case;

			$name = "H3: the newest file is $what, $title";
			$damage->();
			is(start_and_see($node, $name), 'corrupt', "$name: named, not repaired");
			my ($state, $message) = sql_error($node, q(SELECT grouplog.append('995-2:')));
			is($state, 'XX001', "$name: appends are refused");
			my $base_name = (split m{/}, $file)[-1];
			like($message, qr/\Q$base_name\E/, '... with the name of the file');
			ok(-e $file, '... which nobody removes');
			kill_server($node);
			write_bytes($file, 0, $whole);
			$faults++;
		}
		is(start_and_see($node, "H3: the file is back, $title"), 'open', "H3: the file is back, $title: the log opens");
		check_log($node, $ledger, "H3: the file is back, $title");

		# ---- H5: a hole of zeros and a whole record after it, never acknowledged ----
		foreach my $round (1 .. 3)
		{
			$name = "H5: a hole, then a whole group, $title, round $round";
			my @loads = map {
				start_load($node, $ledger, clients => 3, mode => $_, records => 400, keep_going => 1,
					size => sub { 900 })
			} qw(batch group);

			wait_for_acks($loads[0], 30);
			knob($fs, 'plan hole 512');
			knob($fs, 'fault 0 on=write cut=1 skip=5');
			ok(wait_until(sub { knob($fs, 'state') =~ /off=1/ }), "$name: it is dark");
			power_cut_node($node, $fs);
			finish_load($_) foreach @loads;
			my $end = status($node, 'recovery');
			my $found = check_log($node, $ledger, $name);
			# what a recovery has left behind never comes back
			kill_server($node);
			start_up($node);
			is(check_log($node, $ledger, "$name, started twice"), $found, "$name: the same records, both times");
			append_some($node, $ledger, "$name: appends go on", clients => 1, records => 3);
			kill_server($node);
			start_up($node);
			is(check_log($node, $ledger, "$name, and later"), $found + 3, "$name: no ghost");
			$faults++;
		}
	});
figure('faults-staged', $faults);
done_testing();
