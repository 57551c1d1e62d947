package Bench::Bars;

# The bars that grouplog is held to, each with what was measured. To add one, push
# another row: its words, the values of its rounds, and the least (or with 'at_most' the
# most) that its median must be. Where it says something of what the machine allows,
# 'ceiling' has another ratio, measured beside, and 'ceiling_is' says what it is.
use strict;
use warnings;
use utf8;

my $rate = 'interval_op_rate';

sub rows
{
	my ($data) = @_;

	return (slow($data), own($data), memory($data), bulk($data), open_loop($data), growth($data));
}

sub row
{
	my ($bar, $values, $limit, $at_most) = @_;

	return { bar => $bar, values => $values, limit => $limit, at_most => $at_most };
}

sub met
{
	my ($row) = @_;
	my $median = Bench::Data::median(@{ $row->{values} });

	return undef if !defined $median;
	return $row->{at_most} ? $median <= $row->{limit} : $median >= $row->{limit};
}

sub slow
{
	my ($data) = @_;
	my @rows;

	for my $clients (1, 2, 4, 8, 16)
	{
		push @rows, row("200 syncs/s, $clients clients: adaptive ÷ (clients × 200)",
			[ map { $_ / ($clients * 200) } $data->values($rate, 'slow', 'adaptive', $clients) ],
			$clients <= 8 ? 0.93 : 0.88);
	}
	for my $clients (2, 4, 8, 16)
	{
		push @rows, row("200 syncs/s, $clients clients: adaptive ÷ INSERT",
			[ $data->ratios([ 'slow', 'adaptive', $clients ], [ 'slow', 'insert', $clients ]) ], 1.8);
	}
	push @rows, against_own($data, 'slow', '200 syncs/s', 1, 8, 64);
	for my $clients ($data->distinct('slow', 'clients'))
	{
		my @peers = grep { $data->cell('slow', $_, $clients) } 'batch', 'group', 'group_5';

		push @rows, row("200 syncs/s, $clients clients: adaptive ÷ the best of " . join(', ', map { $Bench::Data::label{$_} } @peers),
			[ $data->to_best([ 'slow', 'adaptive', $clients ], map { [ 'slow', $_, $clients ] } @peers) ], 0.97);
	}
	push @rows, row('200 syncs/s, 1 client: adaptive ÷ batch',
		[ $data->ratios([ 'slow', 'adaptive', 1 ], [ 'slow', 'batch', 1 ]) ], 0.99);
	return @rows;
}

# PostgreSQL's own commit at its best: with commit_delay as tuned, or as a message. The
# tuned delay may be a loss at another number of clients, so plain INSERT is among them.
sub against_own
{
	my ($data, $theme, $volume, @clients) = @_;

	return map {
		my $clients = $_;
		my @peers = grep { $data->cell($theme, $_, $clients) } 'insert', 'insert_delay', 'message';

		row("$volume, $clients clients: adaptive ÷ the best of INSERT, with and without commit_delay, and pg_logical_emit_message",
			@peers == 3 ? [ $data->to_best([ $theme, 'adaptive', $clients ], map { [ $theme, $_, $clients ] } @peers) ] : [], 0.97)
	} @clients;
}

# What waits sleeps. What a call costs the processors that only sleeps says how many of
# them they could do: its rate itself is bound by its timer.
sub sleeping
{
	my ($data, $clients) = @_;
	my %insert = map { $_->{round} => $_->{interval_op_rate} } @{ $data->cell('clients', 'insert', $clients) // [] };
	my $cores = $data->{run}{cores};

	return map { $cores * 1e6 / $_->{cpu_us} / $insert{ $_->{round} } }
	  grep { $_->{cpu_us} && $insert{ $_->{round} } } @{ $data->cell('clients', 'sleep', $clients) // [] };
}

sub own
{
	my ($data) = @_;
	my %least = (1 => 1.05, 8 => 1.4, 32 => 2.2, 64 => 3, 128 => 3);
	my @rows;

	for my $clients (sort { $a <=> $b } keys %least)
	{
		my $row = row("own disk, $clients clients: adaptive ÷ INSERT",
			[ $data->ratios([ 'clients', 'adaptive', $clients ], [ 'clients', 'insert', $clients ]) ], $least{$clients});

		$row->{ceiling} = [ sleeping($data, $clients) ];
		$row->{ceiling_is} = 'calls that only sleep, on all cores';
		push @rows, $row;
	}
	push @rows, against_own($data, 'clients', 'own disk', 1, 8, 64);
	push @rows, map {
		row("own disk, $_ clients: adaptive ÷ batch", [ $data->ratios([ 'clients', 'adaptive', $_ ], [ 'clients', 'batch', $_ ]) ], 0.95)
	} $data->distinct('clients', 'clients');
	return @rows;
}

sub memory
{
	my ($data) = @_;
	my @rows;

	push @rows, row('64 clients: periodic ÷ do-nothing C function',
		[ $data->ratios([ 'clients', 'periodic', 64 ], [ 'clients', 'select', 64 ]) ], 0.75);
	for my $clients (1, 8, 64)
	{
		my $row = row("$clients clients: periodic ÷ INSERT with synchronous_commit off",
			[ $data->ratios([ 'clients', 'periodic', $clients ], [ 'clients', 'insert_async', $clients ]) ], 2);

		$row->{ceiling} = [ $data->ratios([ 'clients', 'select', $clients ], [ 'clients', 'insert_async', $clients ]) ];
		$row->{ceiling_is} = 'a call that does nothing';
		push @rows, $row;
	}
	return @rows;
}

sub bulk
{
	my ($data) = @_;
	my $figure = $data->{figure};
	my $to_fio = sub { return [ $data->figure_ratios(@_) ] };

	return (
		row('append_batch of 1,000 × 4 kB ÷ fio, direct writes in sequence',
			$to_fio->('append_batch, 1,000 records of 4 kB a call', 'beside append_batch: 1 MB writes in sequence, direct'), 0.6),
		row('the same into files used again, as fio writes into its file again',
			$to_fio->('append_batch, the same into files used again',
				'beside append_batch into files used again: 1 MB writes in sequence, direct'), 0.6),
		row('append_async in one statement, million records/s',
			[ map { $_ / 1e6 } @{ $figure->{'append_async in one statement, 32 bytes'} // [] } ], 1.5),
		row('read of 100-byte records, million records/s', [ map { $_ / 1e6 } @{ $figure->{'read, 100 bytes'} // [] } ], 1),
		row('verify() of the log so far, from page cache, GB/s', [ map { $_ / 1000 } @{ $figure->{'verify, from page cache'} // [] } ], 1),
		row('recovery ÷ fio, direct reads of the same file in sequence',
			$to_fio->('recovery, 100-byte records', 'beside recovery: 1 MB reads in sequence, direct'), 0.8));
}

# Beyond what a mode can take its sessions only queue, and the longer the longer it goes
# on: a load counts for batch if batch did it.
sub open_loop
{
	my ($data) = @_;
	my ($sync) = grep { $_ } Bench::Data::median(@{ $data->{figure}{'slow: 4 kB writes, direct, dsync'} // [] }), 200;
	my $half = ($data->{run}{'saturation, adaptive'} // 0) / 2;
	my @rows;

	for my $offered ($data->distinct('openloop', 'offered'))
	{
		my @adaptive = ('openloop', 'adaptive', 64, 32, '', $offered);
		my @batch = ('openloop', 'batch', 64, 32, '', $offered);

		push @rows, row(sprintf("open loop, 200 syncs/s, half of adaptive's saturation: adaptive's median latency, in syncs of %.0f ms", 1000 / $sync),
			[ map { $_ * $sync / 1000 } $data->values('median', @adaptive) ], 1.6, 1)
		  if abs($offered - $half) < 1;
		push @rows, row("open loop, 200 syncs/s, $offered offered a second: adaptive's median latency ÷ batch's",
			[ $data->ratios([@adaptive], [@batch], 'median') ], 1.05, 1)
		  if ($data->value($rate, @batch) // 0) > 0.95 * $offered;
	}
	return @rows;
}

# The append's own cost, in periodic mode: against the do-nothing function of the same
# time, so that the machine's changes don't count.
sub growth
{
	my ($data) = @_;
	my @rows;

	return () if !$data->distinct('growth', 'situation');
	for my $pair ([ '100 MB of log', '20 GB of log' ], [ '10 segments of 4 MB', '1,000 segments of 4 MB' ],
		[ '1 idle sessions', '250 idle sessions' ])
	{
		my ($small, $large) = @$pair;

		for my $mode ('adaptive', 'periodic')
		{
			my $peer = $mode eq 'adaptive' ? 'insert' : 'select';
			my @few = $data->ratios([ 'growth', $mode, 8, 32, $small ], [ 'growth', $peer, 8, 32, $small ]);
			my @many = $data->ratios([ 'growth', $mode, 8, 32, $large ], [ 'growth', $peer, 8, 32, $large ]);
			my ($base) = Bench::Data::median(@few);

			push @rows, row("growth: $large against $small, $mode ($Bench::Data::label{$peer} beside it = 1)",
				[ $base ? map { $_ / $base } @many : () ], 0.9);
		}
	}
	return @rows;
}

sub table
{
	my ($data, $all) = @_;
	my $text = "| bar | least | measured: median (min–max), rounds | | beside it |\n| --- | ---: | ---: | --- | --- |\n";
	my ($met, $missed, $not_run) = (0, 0, 0);

	for my $row (rows($data))
	{
		my $good = met($row);

		next if !$all && !defined $good;
		$good ? $met++ : defined $good ? $missed++ : $not_run++;
		my $ceiling = Bench::Data::median(@{ $row->{ceiling} // [] });

		$text .= sprintf("| %s | %s%s | %s, %d | %s | %s |\n", $row->{bar}, $row->{at_most} ? 'at most ' : '', Bench::Data::shown($row->{limit}),
			Bench::Data::spread(@{ $row->{values} }), scalar @{ $row->{values} }, $good ? 'met' : defined $good ? '**missed**' : 'not measured',
			defined $ceiling ? Bench::Data::shown($ceiling) . ", $row->{ceiling_is}" : '');
	}
	return $text . "\n$met met, $missed missed" . ($not_run ? ", $not_run not measured" : '') . ".\n";
}

1;
