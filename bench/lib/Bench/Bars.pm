package Bench::Bars;

# The bars that grouplog is held to, each with what was measured. To add one, push
# another row: its words, the values of its rounds, and the least (or with 'at_most' the
# most) that its median must be. Where the machine sets an end to what anybody can reach,
# 'ceiling' has that too, measured beside, and 'ceiling_is' says what it is.
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
	for my $clients (1, 2, 4, 8, 16, 32, 64, 128, 256)
	{
		push @rows, row("200 syncs/s, $clients clients: adaptive ÷ the better of batch and group",
			[ $data->to_best(map { [ 'slow', $_, $clients ] } 'adaptive', 'batch', 'group') ], 0.97);
	}
	push @rows, row('200 syncs/s, 1 client: adaptive ÷ batch',
		[ $data->ratios([ 'slow', 'adaptive', 1 ], [ 'slow', 'batch', 1 ]) ], 0.99);
	return @rows;
}

# What waits sleeps: no call that waits is faster than one that only sleeps.
sub own
{
	my ($data) = @_;
	my %least = (1 => 1.05, 8 => 1.4, 32 => 2.2, 64 => 3, 128 => 3);
	my @rows;

	for my $clients (sort { $a <=> $b } keys %least)
	{
		my $row = row("own disk, $clients clients: adaptive ÷ INSERT",
			[ $data->ratios([ 'clients', 'adaptive', $clients ], [ 'clients', 'insert', $clients ]) ], $least{$clients});

		$row->{ceiling} = [ $data->ratios([ 'clients', 'sleep', $clients ], [ 'clients', 'insert', $clients ]) ];
		$row->{ceiling_is} = 'a call that sleeps once';
		push @rows, $row;
	}
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
	my $read = Bench::Data::median(@{ $figure->{'own: 1 MB reads in sequence, direct'} // [] });
	my @recovery = map { @{ $figure->{$_} } } grep { /^recovery/ } keys %$figure;

	return (
		row('append_batch of 1,000 × 4 kB ÷ fio, direct writes in sequence',
			$to_fio->('append_batch, 1,000 records of 4 kB a call', 'beside append_batch: 1 MB writes in sequence, direct'), 0.6),
		row('the same into files used again, as fio writes into its file again',
			$to_fio->('append_batch, the same into files used again',
				'beside append_batch into files used again: 1 MB writes in sequence, direct'), 0.6),
		row('append_async in one statement, million records/s',
			[ map { $_ / 1e6 } @{ $figure->{'append_async in one statement, 32 bytes'} // [] } ], 1.5),
		row('read of 100-byte records, million records/s', [ map { $_ / 1e6 } @{ $figure->{'read, 100 bytes'} // [] } ], 1),
		row('recovery, GB/s, or 0.8 of fio\'s direct reads in sequence' . ($read ? sprintf(' (%.2f GB/s)', $read / 1000) : ''),
			[ map { $_ / 1000 } @recovery ], $read && 0.8 * $read < 1000 ? 0.8 * $read / 1000 : 1));
}

sub open_loop
{
	my ($data) = @_;
	my ($sync) = grep { $_ } Bench::Data::median(@{ $data->{figure}{'slow: 4 kB writes, direct, dsync'} // [] }), 200;
	my $half = ($data->{run}{saturation} // 0) / 2;
	my @rows;

	for my $offered ($data->distinct('openloop', 'offered'))
	{
		my $part = $half ? sprintf('%.0f %%', 50 * $offered / $half) : "$offered/s";

		push @rows, row("open loop, 200 syncs/s, $part of saturation: adaptive's median latency, in syncs",
			[ map { $_ * $sync / 1000 } $data->values('median', 'openloop', 'adaptive', 64, 32, '', $offered) ],
			1.6, 1)
		  if abs($offered - $half) < 0.05 * $half;
		push @rows, row("open loop, 200 syncs/s, $part of saturation: adaptive's median latency ÷ batch's",
			[ $data->ratios([ 'openloop', 'adaptive', 64, 32, '', $offered ], [ 'openloop', 'batch', 64, 32, '', $offered ], 'median') ],
			1.05, 1);
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
	my $text = "| bar | least | measured: median (min–max) | | ceiling, measured beside |\n| --- | ---: | ---: | --- | --- |\n";
	my ($met, $missed, $not_run) = (0, 0, 0);

	for my $row (rows($data))
	{
		my $good = met($row);

		next if !$all && !defined $good;
		$good ? $met++ : defined $good ? $missed++ : $not_run++;
		my $ceiling = Bench::Data::median(@{ $row->{ceiling} // [] });

		$text .= sprintf("| %s | %s%s | %s | %s | %s |\n", $row->{bar}, $row->{at_most} ? 'at most ' : '', Bench::Data::shown($row->{limit}),
			Bench::Data::spread(@{ $row->{values} }), $good ? 'met' : defined $good ? '**missed**' : 'not measured',
			defined $ceiling ? Bench::Data::shown($ceiling) . ", $row->{ceiling_is}" : '');
	}
	return $text . "\n$met met, $missed missed" . ($not_run ? ", $not_run not measured" : '') . ".\n";
}

1;
