package Bench::Tables;

# The Markdown tables of RESULTS.md.
use strict;
use warnings;
use utf8;

my $rate = 'interval_op_rate';

# CASSANDRA-13530, operations a second: threads => SELECT batch, group, UPDATE batch, group
my %published = (
	1 => [ 192, 103, 45, 26 ],
	2 => [ 163, 212, 39, 51 ],
	4 => [ 264, 416, 58, 102 ],
	8 => [ 454, 800, 102, 198 ],
	16 => [ 744, 1311, 167, 213 ],
	32 => [ 1151, 1481, 289, 295 ],
	64 => [ 1767, 1844, 544, 548 ],
	128 => [ 2949, 3011, 1046, 1058 ],
	256 => [ 4723, 5000, 2020, 2061 ],
);

sub header
{
	my (@names) = @_;

	return '| ' . join(' | ', @names) . " |\n|" . ' ---: |' x @names . "\n";
}

# the variants of a theme, in the order of the labels here
sub variants
{
	my ($data, $theme, %where) = @_;
	my %there = map { $_ => 1 } $data->distinct($theme, 'variant', %where);

	return grep { $there{$_} } qw(select sleep insert insert_delay message redis batch group group_5 adaptive insert_async periodic
	  insert_100 append_batch_100 append_async_100 insert_pipeline_10 append_pipeline_10 append_async_pipeline_10);
}

# throughput by clients, each with its ratio to INSERT; then the median latency
sub by_clients
{
	my ($data, $theme, $payload) = @_;
	my @variants = variants($data, $theme, payload => $payload);
	my @clients = $data->distinct($theme, 'clients', payload => $payload);
	my $text = '';

	$text .= "Calls a second: median (min–max) of the rounds; in brackets the median of the rounds' ratios to INSERT.\n\n";
	$text .= header('clients', map { $Bench::Data::label{$_} } @variants);
	for my $clients (@clients)
	{
		$text .= "| $clients |";
		for my $variant (@variants)
		{
			my @ratios = $variant eq 'insert' ? () : $data->ratios([ $theme, $variant, $clients, $payload ], [ $theme, 'insert', $clients, $payload ]);

			$text .= ' ' . Bench::Data::spread($data->values($rate, $theme, $variant, $clients, $payload));
			$text .= sprintf(' [%.2f]', Bench::Data::median(@ratios)) if @ratios;
			$text .= ' |';
		}
		$text .= "\n";
	}

	$text .= "\nLatency in ms, median / 95th / 99.9th percentile (medians of the rounds):\n\n";
	$text .= header('clients', map { $Bench::Data::label{$_} } @variants);
	for my $clients (@clients)
	{
		$text .= "| $clients | " . join(' | ', map { latencies($data, $theme, $_, $clients, $payload) } @variants) . " |\n";
	}
	return $text . records_a_sync($data, $theme, $payload, \@clients, @variants)
	  . ($theme eq 'clients' ? processor_time($data, $theme, $payload, \@clients, @variants) : '');
}

sub latencies
{
	my ($data, @cell) = @_;

	return '–' if !$data->cell(@cell);
	# the answer was there before pgbench looked at its clock again: that is no latency
	return join(' / ', map { my $ms = $data->value($_, @cell); $ms ? Bench::Data::shown($ms) : '–' } 'median', 'p95', 'p99_9');
}

sub records_a_sync
{
	my ($data, $theme, $payload, $clients, @variants) = @_;
	my $text = "\nRecords a sync (for PostgreSQL's own: commits a sync of the WAL):\n\n";

	@variants = grep { !/^(select|sleep|redis|insert_async)$/ } @variants;
	$text .= header('clients', map { $Bench::Data::label{$_} } @variants);
	for my $n (@$clients)
	{
		$text .= "| $n | " . join(' | ', map { Bench::Data::shown(group_size($data, $theme, $_, $n, $payload)) } @variants) . " |\n";
	}
	return $text;
}

sub processor_time
{
	my ($data, $theme, $payload, $clients, @variants) = @_;
	my $text = "\nProcessor time a call in µs, of all processes, pgbench included (medians of the rounds):\n\n";

	@variants = grep { $_ ne 'redis' } @variants;
	$text .= header('clients', map { $Bench::Data::label{$_} } @variants);
	for my $n (@$clients)
	{
		$text .= "| $n | " . join(' | ', map { Bench::Data::shown($data->value('cpu_us', $theme, $_, $n, $payload)) } @variants) . " |\n";
	}
	return $text;
}

sub group_size
{
	my ($data, @cell) = @_;
	my $rounds = $data->cell(@cell) or return undef;

	# PostgreSQL says how many syncs there were, pgbench how many commits
	return Bench::Data::median(
		map {
			my $records = Bench::Data::number($_->{records}) ? $_->{records} : $_->{all_calls};
			Bench::Data::number($_->{syncs}) && $_->{syncs} > 0 ? $records / $_->{syncs} : undef
		} @$rounds);
}

sub cassandra
{
	my ($data) = @_;
	my @modes = ('batch', 'group', 'adaptive');
	my $text = "Operations a second on volumes of 200 syncs a second, threads 1 to 256. The columns on the right are those of\n"
	  . "CASSANDRA-13530 (three nodes, Batch 2 ms against Group 10 ms; SELECT with Paxos, and UPDATE).\n\n";

	$text .= header('threads', 'Batch', 'Group 10 ms', 'Adaptive', 'Adaptive ÷ Batch', 'SELECT Batch', 'SELECT Group', 'Group ÷ Batch',
		'UPDATE Batch', 'UPDATE Group', 'Group ÷ Batch');
	for my $threads (sort { $a <=> $b } keys %published)
	{
		my ($sb, $sg, $ub, $ug) = @{ $published{$threads} };

		$text .= '| ' . join(' | ', $threads, map({ Bench::Data::shown($data->value($rate, 'slow', $_, $threads)) } @modes),
			Bench::Data::shown(Bench::Data::median($data->ratios([ 'slow', 'adaptive', $threads ], [ 'slow', 'batch', $threads ]))),
			map({ Bench::Data::shown($_) } $sb, $sg, $sg / $sb, $ub, $ug, $ug / $ub)) . " |\n";
	}
	return $text;
}

sub open_loop
{
	my ($data) = @_;
	my @variants = variants($data, 'openloop');
	my ($adaptive, $batch) = map { $data->{run}{"saturation, $_"} } 'adaptive', 'batch';
	my $text = "Poisson arrivals for 64 sessions; latency in ms from the scheduled start, median / 95th / 99.9th percentile.\n"
	  . sprintf("64 clients without a pause make %s a second in batch mode, and %s in adaptive mode; in brackets what was done a second,\n"
		. "where that is less than 0.95 of what was offered: then the latency says how long the run was, and no more.\n\n",
		map { Bench::Data::shown($_) } $batch, $adaptive);

	$text .= header('offered a second', "of batch's saturation", map { $Bench::Data::label{$_} } @variants);
	for my $offered ($data->distinct('openloop', 'offered'))
	{
		$text .= '| ' . join(' | ', Bench::Data::shown($offered), $batch ? sprintf('%.0f %%', 100 * $offered / $batch) : '–',
			map({ latencies($data, 'openloop', $_, 64, 32, '', $offered) . short_of($data, $offered, 'openloop', $_, 64, 32, '', $offered) } @variants)) . " |\n";
	}
	return $text;
}

sub short_of
{
	my ($data, $offered, @cell) = @_;
	my $done = $data->value($rate, @cell);

	return defined $done && $done < 0.95 * $offered ? ' [' . Bench::Data::shown($done) . ']' : '';
}

sub calls
{
	my ($data) = @_;
	my @clients = $data->distinct('calls', 'clients');
	my $text = "Records a second (interval_key_rate): median (min–max).\n\n" . header('', map { "$_ clients" } @clients);

	for my $variant (variants($data, 'calls'))
	{
		$text .= "| $Bench::Data::label{$variant} | "
		  . join(' | ', map { Bench::Data::spread($data->values('interval_key_rate', 'calls', $variant, $_)) } @clients) . " |\n";
	}
	return $text;
}

sub payloads
{
	my ($data) = @_;
	my @variants = variants($data, 'payloads');
	my $text = "Calls a second, and the ratio to INSERT.\n\n"
	  . header('payload', 'clients', map { $Bench::Data::label{$_} } @variants);

	for my $payload ($data->distinct('payloads', 'payload'))
	{
		for my $clients ($data->distinct('payloads', 'clients', payload => $payload))
		{
			$text .= '| ' . Bench::Data::shown($payload) =~ s/\.\d+//r . " B | $clients |";
			for my $variant (@variants)
			{
				my @ratios = $variant eq 'insert' ? () : $data->ratios([ 'payloads', $variant, $clients, $payload ], [ 'payloads', 'insert', $clients, $payload ]);

				$text .= ' ' . Bench::Data::spread($data->values($rate, 'payloads', $variant, $clients, $payload));
				$text .= sprintf(' [%.2f]', Bench::Data::median(@ratios)) if @ratios;
				$text .= ' |';
			}
			$text .= "\n";
		}
	}
	return $text;
}

sub growth
{
	my ($data) = @_;
	my @variants = variants($data, 'growth');
	my $text = "Calls a second, 8 clients: median (min–max).\n\n" . header('', map { $Bench::Data::label{$_} } @variants);

	for my $situation ($data->distinct('growth', 'situation'))
	{
		$text .= "| $situation | "
		  . join(' | ', map { Bench::Data::spread($data->values($rate, 'growth', $_, 8, 32, $situation)) } @variants) . " |\n";
	}
	return $text;
}

# figures(theme): those that are no cells
sub figures
{
	my ($data, $theme) = @_;
	my $text = "| what | median (min–max) | |\n| --- | ---: | --- |\n";
	my %seen;

	for my $figure (grep { $_->{theme} eq $theme && !$seen{ $_->{name} }++ } @{ $data->{figures} })
	{
		$text .= "| $figure->{name} | " . Bench::Data::spread(@{ $data->{figure}{ $figure->{name} } }) . " | $figure->{unit} |\n";
	}
	return $text;
}

# the stress report's lines, of every cell
sub every_cell
{
	my ($data) = @_;
	my @columns = qw(interval_op_rate interval_key_rate median p95 p99_9 total_time);
	my $text = "| theme | what | clients | payload | | rounds | interval_op_rate | interval_key_rate | latency median | latency 95th percentile | latency 99.9th percentile | Total operation time |\n"
	  . "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
	my %seen;

	for my $row (@{ $data->{cells} })
	{
		my @cell = @$row{qw(theme variant clients payload situation offered)};

		next if $seen{ Bench::Data::key(@cell) }++;
		$text .= '| ' . join(' | ', $cell[0], $Bench::Data::label{ $cell[1] } // $cell[1], $cell[2], $cell[3],
			length $cell[5] ? "offered $cell[5]/s" : $cell[4], scalar @{ $data->cell(@cell) },
			map({ Bench::Data::shown($data->value($_, @cell)) } @columns)) . " |\n";
	}
	return $text;
}

1;
