#!/usr/bin/perl
# latency.pl KEYS UNTIL FILE...: the stress report's figures from pgbench's logs
# of transactions (pgbench -l).
#
# What ends in the first quarter of the time warms up, and what ends after UNTIL (in
# seconds since 1970, when pgbench was to stop) was only waited for: neither is
# counted. Prints, with tabs between them: calls, interval_op_rate, interval_key_rate,
# mean, median, 95th, 99th, 99.9th percentile and maximum of the latency in ms, total
# operation time in s, and the number of all calls, those that do not count too.
use strict;
use warnings;

my ($keys, $until, @files) = @ARGV;
my (@at, @latency, $begin, $end);

for my $file (@files)
{
	open(my $log, '<', $file) or die "$file: $!\n";
	while (<$log>)
	{
		# client, transaction, latency in µs (with --rate: from its scheduled
		# start), script, end as s and µs
		my (undef, undef, $us, undef, $s, $part) = split;
		# neither what was skipped or failed nor half a line
		next unless defined $part && $us =~ /^\d+$/;
		my $time = $s + $part / 1e6;
		my $start = $time - $us / 1e6;
		$begin = $start if !defined $begin || $start < $begin;
		$end = $time if !defined $end || $time > $end;
		push @at, $time;
		push @latency, $us;
	}
	close $log;
}
exit 1 if !@at;

# A volume may let syncs pass in bunches, ten a second: a whole number of tenths holds as
# many of them wherever it begins. One that ended with the last call would count the
# silence before that; and with a few calls at a given rate it would always end with one of
# them, and so find too much.
$until = $end if $until <= $begin;
my $tenths = int(7.5 * ($until - $begin));
my $from = $tenths > 0 ? $until - $tenths / 10 : $begin + ($until - $begin) / 4;
my @counted = sort { $a <=> $b } map { $latency[$_] } grep { $at[$_] > $from && $at[$_] <= $until } 0 .. $#at;
my $interval = $until - $from;
# a few slow calls: better than none
if (!@counted)
{
	@counted = sort { $a <=> $b } @latency;
	$interval = $end - $begin || 1e-6;
}

my $sum = 0;
$sum += $_ for @counted;

# the smallest value that at least this part of them does not exceed
sub percentile
{
	my ($part) = @_;
	my $index = int($part * @counted + 0.999999) - 1;
	$index = 0 if $index < 0;
	return $counted[$index] / 1000;
}

my $rate = @counted / $interval;
printf "%d\t%.1f\t%.1f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%d\n", scalar @counted, $rate, $rate * $keys,
  $sum / @counted / 1000, percentile(0.5), percentile(0.95), percentile(0.99), percentile(0.999),
  $counted[-1] / 1000, $end - $begin, scalar @at;
