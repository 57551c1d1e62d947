# What the disk says it has done and has not, or has done wrongly: bits that flip,
# writes that are lost, reads that fail.  Detected, and never served.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($faults, $flips) = (0, 0);
my $seed = $ENV{FAULTS_SEED} // time;

note "seed $seed";
srand $seed;

# [ lsn, size in the log ] of every record, oldest first.
sub records_of
{
	my ($node) = @_;

	return map { my ($lsn, $size) = split /\|/; [ lsn_number($lsn), $size ] } split /\n/,
	  $node->safe_psql('postgres', 'SELECT lsn, length(payload) + 32 FROM grouplog.read()');
}

# (name, offset) of an LSN
sub place_of
{
	my ($fs, $lsn) = @_;
	my ($name, $first);

	foreach my $file (sort grep { /\.seg$/ } slurp_dir(log_of($fs)))
	{
		my $begins = hex(substr $file, 9, 8) * 2**32 + hex(substr $file, 17, 8);

		($name, $first) = ($file, $begins) if $begins <= $lsn;
	}
	return ("log/$name", 4096 + $lsn - int($first / 4096) * 4096);
}

# Every record but the one at an LSN, by reading around it.
sub read_around
{
	my ($node, $lsn) = @_;
	my $text = lsn_text($lsn);

	return $node->safe_psql('postgres', "SELECT count(*) FROM grouplog.read('$text')");
}

each_configuration(
	'damage',
	sub {
		my ($title, $node, $fs, $ledger) = @_;

		knob($fs, 'seed ' . ++$seed);
		finish_load(start_load($node, $ledger, clients => 4, mode => 'batch', records => 600,
			size => sub { ($_[0] * 7919) % 3000 }));
		append_some($node, $ledger, "H7: records, $title");
		my @records = records_of($node);
		my $count = @records;

		# ---- a bit flips at rest, in the middle of the log ----
		foreach my $try (1 .. 25)
		{
			my $victim = 1 + int rand($count - 2);
			my ($lsn, $size) = @{ $records[$victim] };
			my ($name, $offset) = place_of($fs, $lsn);
			my $where = "$name " . ($offset + int rand $size) . ' ' . int rand 8;
			my $text = lsn_text($lsn);

			knob($fs, "flip $where");
			my ($state, $message) = sql_error($node, 'SELECT sum(length(payload)) FROM grouplog.read()');
			is($state, 'XX001', "H7: bit flip $try, $title: a reader is told") or diag $where;
			like($message, qr/corrupt at LSN \Q$text\E in file "\Q$fs->{mount}\/$name\E"/, '... where');
			is(read_around($node, $lsn), $count - $victim - 1, '... and reads on after it');
			is($node->safe_psql('postgres', "SELECT bad_lsn FROM grouplog.verify() WHERE NOT ok ORDER BY number LIMIT 1"),
				$text, '... verify names it');
			knob($fs, "flip $where");
			$flips++;
		}
		check_log($node, $ledger, "H7: flipped back, $title");

		# ---- ... in a read only ----
		knob($fs, 'fault 0 on=read flip=1 count=1');
		my ($state, $message) = sql_error($node, 'SELECT sum(length(payload)) FROM grouplog.read()');
		like($state, qr/^(?:XX001|00000)$/, "H7: a bit flips in a read, $title: told, or it did not matter");
		check_log($node, $ledger, "H7: a bit flipped in a read, $title: over");

		# ---- a read fails ----
		knob($fs, 'fault 0 on=read errno=EIO skip=1 count=1');
		($state, $message) = sql_error($node, 'SELECT sum(length(payload)) FROM grouplog.read()');
		is($state, '58030', "a read fails once, $title: a reader is told");
		like($message, qr/could not read file ".*"/, '... where');
		check_log($node, $ledger, "a read fails once, $title: over");
		knob($fs, 'fault 0 on=read errno=EIO');
		($state, $message) = sql_error($node, 'SELECT sum(length(payload)) FROM grouplog.read()');
		is($state, '58030', "all reads fail, $title: a reader is told");
		append_some($node, $ledger, "all reads fail, $title: appends go on");
		kill_server($node);
		start_up($node);
		is(status($node, 'state'), 'unavailable', '... the log does not open');
		knob($fs, 'clear');
		ok(wait_until(sub { status($node, 'state') eq 'open' }), '... but by itself when the device is back');
		check_log($node, $ledger, "reads failed at a start, $title: over");
		knob($fs, 'fault 0 on=read errno=EIO chance=200000');
		foreach my $try (1 .. 20)
		{
			($state) = sql_error($node, 'SELECT sum(length(payload)) FROM grouplog.read()');
			last if $state !~ /^(?:58030|00000)$/;
		}
		like($state, qr/^(?:58030|00000)$/, "reads fail at random, $title: told, or complete");
		knob($fs, 'clear');
		check_log($node, $ledger, "reads failed at random, $title: over");

		# ---- a write stores a wrong bit, or nothing at all; found at the next start ----
		foreach my $case ([ 'a bit that flips in a write', 'flip=1' ], [ 'a write that is lost', 'lose=1' ])
		{
			my ($what, $fault) = @$case;
			my $name = "$what, $title";
			my $position = log_position($node);

			append_some($node, $ledger, "$name: before it");
			knob($fs, "fault 0 on=write $fault skip=5 count=1");
			# one at a time and no block twice, so that what is damaged stays, and later records prove it
			my $load = start_load($node, $ledger, clients => 1, mode => 'batch', records => 30, size => sub { 9000 });
			finish_load($load);
			is(fault_hits_of($fs, 0), 1, "$name: it has struck");
			knob($fs, 'clear');
			kill_server($node);
			start_up($node);
	
			# rows up to the damage are right; what the bit hit may have been padding
			if (status($node, 'state') eq 'corrupt')
			{
				my ($refused, $why) = sql_error($node, q(SELECT grouplog.append('994-1:')));

				is($refused, 'XX001', "$name: no appends over a hole");
				my ($bad) = $why =~ /corrupt at LSN ([0-9A-F\/]+) in file/;
				my ($valid) = $why =~ /valid records go on to ([0-9A-F\/]+)/i;
				ok(defined $bad && defined $valid, '... it says where, and how far valid records go');
				my ($read, $told) = sql_error($node, 'SELECT sum(length(payload)) FROM grouplog.read()');
				is($read, 'XX001', '... a reader is told');
				$node->safe_psql('postgres', "SELECT grouplog.accept_end('$valid')");
				is(status($node, 'state'), 'open', '... it can be ended there');
				# all but what was damaged can be read
				my @keys = map { (split /\|/)[1] } split /\n/, $node->safe_psql('postgres',
					qq(SELECT lsn, split_part(convert_from(payload, 'UTF8'), ':', 1) FROM grouplog.read('$bad')));
				my %there = map { $_ => 1 } @keys;
				my @gone = grep { $ledger->{acked}{$_}{lsn} >= lsn_number($bad) && !$there{$_} } keys %{ $ledger->{acked} };
				cmp_ok(scalar @gone, '<=', 4, "$name: few records are damaged") or diag "@gone";
				cmp_ok(scalar @gone, '>', 0, "$name: ... one at least");
				# from here on a fresh log, so that the next check is not about this one
			}
			else
			{
				is($fault, 'flip=1', "$name: only what nobody reads may be wrong without notice");
				check_ledger($node, $ledger, "$name: it was not a record");
			}
			$node->stop('fast');
			unlink glob log_of($fs) . '/*';
			$ledger = new_ledger();
			start_up($node);
			append_some($node, $ledger, "$name: a new log");
			$faults++;
		}
		$faults += 4;
	});
figure('faults-staged', $faults);
figure('bits-flipped', $flips);
done_testing();
