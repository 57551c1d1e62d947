package Bench::Charts;

# Charts as SVG, by gnuplot. Every chart is a set of lines; a line is a name and its
# points.
use strict;
use warnings;
use utf8;

# chart(file, title, x, y, options, [name, [x, y], ...] ...)
sub chart
{
	my ($file, $title, $x, $y, $options, @lines) = @_;
	my (@plots, $blocks);

	@lines = grep { @$_ > 1 } @lines;
	return 0 if !@lines;
	for my $i (0 .. $#lines)
	{
		my ($name, @points) = @{ $lines[$i] };

		$blocks .= "\$line$i << END\n" . join('', map { "$_->[0] $_->[1]\n" } @points) . "END\n";
		push @plots, sprintf("\$line%d with linespoints linewidth 2 pointtype %d pointsize 0.6 title '%s'", $i, 4 + $i % 10, $name);
	}
	# one that ends at once is no reason to end as well
	local $SIG{PIPE} = 'IGNORE';
	open(my $gnuplot, '|-:encoding(UTF-8)', 'gnuplot 2>/dev/null') or return 0;
	print $gnuplot "set encoding utf8\nset terminal svg size 800,480 noenhanced background '#ffffff' font 'sans-serif,13'\n",
	  "set output '$file'\nset title '$title'\nset xlabel '$x'\nset ylabel '$y'\nset grid linecolor '#dddddd'\n",
	  "set key outside right top\nset border 3\nset tics nomirror\n$options\n$blocks", 'plot ' . join(', ', @plots) . "\n";
	return close($gnuplot) && -s $file =~ s/''/'/gr;
}

my $by_clients = "set logscale x 2\nset logscale y 10\nset xtics (1, 2, 4, 8, 16, 32, 64, 128, 256)\n";

sub lines_by_clients
{
	my ($data, $theme, $value, @variants) = @_;

	return map {
		my $variant = $_;
		[   $Bench::Data::label{$variant},
			map { my $v = $value->($theme, $variant, $_); defined $v && $v > 0 ? [ $_, $v ] : () }
			  $data->distinct($theme, 'clients', payload => 32)
		]
	} @variants;
}

sub charts_in
{
	my ($folder) = @_;

	opendir(my $dir, $folder) or return ();
	return map { "$folder/$_" } grep { /\.svg$/ } readdir($dir);
}

# draw(data, folder): the charts that the data is enough for; returns theme => [file, title] ...
sub draw
{
	my ($data, $folder) = @_;
	my %drawn;
	my $add = sub {
		my ($theme, $file, $title, @rest) = @_;

		push @{ $drawn{$theme} }, [ "charts/$file.svg", $title ] if chart("$folder/charts/$file.svg" =~ s/'/''/gr, $title, @rest);
	};

	# the lines of an earlier run are none of this one
	unlink charts_in("$folder/charts");
	return () if system('command -v gnuplot >/dev/null 2>&1') != 0;
	mkdir "$folder/charts";
	for my $theme ('clients', 'slow')
	{
		my $volume = $theme eq 'slow' ? 'a volume of 200 syncs a second' : "the machine''s own disk";
		my $rate = sub { $data->value('interval_op_rate', @_) };
		my $median = sub { $data->value('median', @_) };
		my $group = sub { Bench::Tables::group_size($data, @_) };
		my @variants = Bench::Tables::variants($data, $theme, payload => 32);

		$add->($theme, "$theme-throughput", "Throughput, $volume", 'clients', 'calls a second', $by_clients,
			lines_by_clients($data, $theme, $rate, @variants));
		$add->($theme, "$theme-latency", "Median latency, $volume", 'clients', 'ms', $by_clients,
			lines_by_clients($data, $theme, $median, @variants));
		$add->($theme, "$theme-records", "Records a sync, $volume", 'clients', 'records a sync', $by_clients,
			lines_by_clients($data, $theme, $group, grep { /^(insert|insert_delay|message|batch|group|group_5|adaptive)$/ } @variants));
	}
	$add->('openloop', 'openloop', 'Open loop, a volume of 200 syncs a second', 'offered a second', 'median latency in ms', "set logscale y 10\n",
		map {
			my $variant = $_;
			[ $Bench::Data::label{$variant}, map { my $v = $data->value('median', 'openloop', $variant, 64, 32, '', $_); defined $v ? [ $_, $v ] : () }
				  $data->distinct('openloop', 'offered') ]
		} Bench::Tables::variants($data, 'openloop'));
	policy($data, $add);
	return %drawn;
}

# the simulation's cells, from the worst to the best
sub policy
{
	my ($data, $add) = @_;
	my (@closed, @open);

	open(my $in, '<:encoding(UTF-8)', "$data->{folder}/policy.md") or return;
	while (<$in>)
	{
		my (undef, undef, $loop, @field) = split /\s*\|\s*/;
		next if @field < 10 || $field[6] !~ /^[\d.]+$/;
		my ($rate, $median, $mean, $judged_by) = @field[6 .. 9];
		push @closed, $rate if $loop eq 'closed';
		push @open, $judged_by eq 'mean' ? $mean : $median if $loop eq 'open';
	}
	$add->('policy', 'policy', 'Simulated: adaptive against the best of batch and group', 'part of the cells, in %', 'ratio', '',
		[ 'throughput, closed loop (least: 0.95)', ranked(@closed) ], [ 'wait, open load (most: 1.10)', ranked(@open) ]);
	return;
}

sub ranked
{
	my @sorted = sort { $a <=> $b } @_;

	return map { [ 100 * $_ / (@sorted - 1 || 1), $sorted[$_] ] } 0 .. $#sorted;
}

1;
