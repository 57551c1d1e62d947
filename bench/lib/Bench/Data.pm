package Bench::Data;

# What a run left in its folder: cells.csv, figures.csv, run.csv. Everything is looked up
# by what it is; a value is the list of its rounds.
use strict;
use warnings;
use utf8;
use List::Util qw(min max);

# a name for the columns of tables and for the lines of charts
our %label = (
	select => 'do-nothing C function',
	sleep => 'a call that sleeps once',
	insert => 'INSERT',
	insert_delay => 'INSERT, commit_delay',
	insert_async => 'INSERT, synchronous_commit off',
	message => 'pg_logical_emit_message',
	redis => 'Redis XADD',
	batch => 'batch',
	group => 'group 10 ms',
	group_5 => 'group 5 ms',
	adaptive => 'adaptive',
	periodic => 'periodic',
	insert_100 => 'INSERT … SELECT, 100 rows',
	append_batch_100 => 'append_batch of 100',
	append_async_100 => '100 × append_async, flush',
	insert_pipeline_10 => 'pipeline of 10 INSERTs, one commit',
	append_pipeline_10 => 'pipeline of 10 appends',
	append_async_pipeline_10 => 'pipeline of 10 append_async, flush',
);

sub read_csv
{
	my ($file) = @_;

	open(my $in, '<:encoding(UTF-8)', $file) or return [];
	my @rows = map { chomp; [ map { s/^"(.*)"$/$1/r =~ s/""/"/gr } /("(?:[^"]|"")*"|[^,]*)(?:,|$)/g ] } <$in>;
	my @names = @{ shift @rows // [] };
	# a line cut short has nothing there
	return [ map { my ($row, %of) = $_; @of{@names} = map { $_ // '' } @$row[ 0 .. $#names ]; \%of } @rows ];
}

sub new
{
	my ($class, $folder) = @_;
	my $self = bless { folder => $folder, cells => read_csv("$folder/cells.csv"), figures => read_csv("$folder/figures.csv") },
	  $class;

	$self->{run} = { map { $_->{name} => $_->{value} } @{ read_csv("$folder/run.csv") } };
	my %seen;
	$self->{run_order} = [ grep { !$seen{$_}++ } map { $_->{name} } @{ read_csv("$folder/run.csv") } ];
	push @{ $self->{index}{ key(@$_{qw(theme variant clients payload situation offered)}) } }, $_ for @{ $self->{cells} };
	push @{ $self->{figure}{ $_->{name} } }, $_->{value} for @{ $self->{figures} };
	$self->{figure_of}{ $_->{name} }{ $_->{round} } = $_->{value} for @{ $self->{figures} };
	return $self;
}

sub key
{
	return join('|', map { $_ // '' } @_[ 0 .. 5 ]);
}

# cell(theme, variant, clients [, payload, situation, offered]): its rounds
sub cell
{
	my ($self, $theme, $variant, $clients, $payload, $situation, $offered) = @_;

	return $self->{index}{ key($theme, $variant, $clients, $payload // 32, $situation, $offered) };
}

# values(column, cell...): one column of its rounds
sub values
{
	my ($self, $column, @cell) = @_;
	my $rounds = $self->cell(@cell) or return ();

	return map { $_->{$column} } grep { number($_->{$column}) } @$rounds;
}

sub value
{
	my ($self, $column, @cell) = @_;

	return median($self->values($column, @cell));
}

# ratios([cell], [other cell], column): of each round that has both
sub ratios
{
	my ($self, $one, $other, $column) = @_;
	my ($of_one, $of_other) = ($self->cell(@$one), $self->cell(@$other));

	$column //= 'interval_op_rate';
	return () if !$of_one || !$of_other;
	my %other = by_round($of_other, $column);
	return map { $_->{$column} / $other{ $_->{round} } }
	  grep { number($_->{$column}) && $other{ $_->{round} } } @$of_one;
}

# round => value of a cell's rounds
sub by_round
{
	my ($rounds, $column) = @_;

	return map { $_->{round} => $_->{$column} } grep { number($_->{$column}) } @{ $rounds // [] };
}

# one cell to the best of others, of each round that has them all (but those never run)
sub to_best
{
	my ($self, $one, @others) = @_;
	my $column = 'interval_op_rate';
	my %one = by_round($self->cell(@$one), $column);
	my @all = grep { %$_ } map { { by_round($self->cell(@$_), $column) } } @others;
	my @ratios;

	for my $round (sort { $a <=> $b } keys %one)
	{
		my @of_round = grep { defined } map { $_->{$round} } @all;
		my $best = max(@of_round);

		push @ratios, $one{$round} / $best if $best && @of_round == @all;
	}
	return @ratios;
}

# ratios of figures, of each round that has both
sub figure_ratios
{
	my ($self, $one, $other) = @_;
	my ($of_one, $of_other) = map { $self->{figure_of}{$_} // {} } $one, $other;

	return map { $of_one->{$_} / $of_other->{$_} }
	  grep { number($of_one->{$_}) && number($of_other->{$_}) && $of_other->{$_} } sort { $a <=> $b } keys %$of_one;
}

sub number
{
	return defined $_[0] && $_[0] =~ /^-?[\d.]+(?:e[-+]?\d+)?$/i;
}

# the different values of a column in a theme, in order
sub distinct
{
	my ($self, $theme, $column, %where) = @_;
	my %seen;

	for my $row (grep { $_->{theme} eq $theme } @{ $self->{cells} })
	{
		next if grep { $row->{$_} ne $where{$_} } keys %where;
		$seen{ $row->{$column} } //= keys %seen;
	}
	my @found = sort { $seen{$a} <=> $seen{$b} } keys %seen;
	return grep(!/^[\d.]+$/, @found) ? @found : sort { $a <=> $b } @found;
}

sub median
{
	my @sorted = sort { $a <=> $b } grep { number($_) } @_;

	return undef if !@sorted;
	return @sorted % 2 ? $sorted[ @sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

# a number as it is shown: thousands with commas, small ones with some digits
sub shown
{
	my ($value) = @_;
	my $text;

	return '–' if !number($value);
	$text = $value >= 100 ? sprintf('%.0f', $value) : $value >= 10 ? sprintf('%.1f', $value) : sprintf($value >= 1 || $value == 0 ? '%.2f' : '%.3f', $value);
	1 while $text =~ s/^(\d+)(\d{3})/$1,$2/;
	return $text;
}

# median (min–max)
sub spread
{
	my @values = grep { number($_) } @_;

	return '–' if !@values;
	return shown($values[0]) if @values == 1;
	return shown(median(@values)) . ' (' . shown(min(@values)) . '–' . shown(max(@values)) . ')';
}

1;
