# Ledger.pm: what clients sent, what they were told, and whether the log keeps it.
#
# A ledger notes what clients sent and what the server answered.  What it checks
# is the same in every test:
#
#	- each acknowledged record is read back intact, in the order of LSNs, once;
#	- what was refused is absent; what was cancelled, of unknown outcome, or on
#	  its way when the connection was lost, is absent or whole;
#	- what is absent though it was handed an LSN has nothing after it from the
#	  same session: the log has no holes;
#	- the records of a session are in the order in which it sent them;
#	- nothing is there that was never sent, or in another database;
#	- no LSN is ever given to two records, over restarts too.
#
# Record number s of client c has the key "c-s" and the payload "c-s:" plus as
# many equal letters as its size says, so that an md5 is all that need be kept.
#
# There is no server in here: t/Load.pm runs the clients and reads the log,
# t/000_ledger.pl feeds the checker with wrong answers.

package Ledger;

use strict;
use warnings FATAL => 'all';

use Digest::MD5 qw(md5_hex);
use Exporter 'import';

our @EXPORT = qw(
  new_ledger note_append note_unsure note_refused forget_before judge_records only_the_end
  lsn_number lsn_text
);
our @EXPORT_OK = qw(payload_of script_of numbers_at read_answers read_errors settle plain_errors);

# bytes of the log before each payload
my $header = 32;

sub lsn_number
{
	my ($text) = @_;
	my ($high, $low) = split m{/}, $text;

	return hex($high) * 2**32 + hex($low);
}

# How the server writes one: see GrouplogTest.pm
our $lsn_format = '%X/%X';

sub lsn_text
{
	my ($number) = @_;

	return sprintf $lsn_format, $number >> 32, $number & 0xFFFFFFFF;
}

# ---- what is noted ----

sub new_ledger
{
	return {
		acked    => {},    # key => { lsn, time, batch: lsn is that of its batch's last }
		unsure   => {},    # key => { lsn, why }: absent or whole; lsn: if it is known
		refused  => {},    # key => why: absent
		sent     => {},    # client => largest number that may have been sent
		size     => {},    # client => how large a record is, by its number
		database => {},    # client => where it appends
		batch    => {},    # client => records a batch
		owner    => {},    # lsn => key, of all that was ever told or read
		lost     => {},    # lsn => end, of acknowledged records that a crash was allowed to take
		reused   => [],
		strange  => []
	};
}

sub payload_of
{
	my ($client, $number, $size) = @_;

	return "$client-$number:" . (chr(97 + $number % 26) x $size);
}

sub note_owner
{
	my ($ledger, $lsn, $key) = @_;

	if (exists $ledger->{owner}{$lsn} && $ledger->{owner}{$lsn} ne $key)
	{
		push @{ $ledger->{reused} }, lsn_text($lsn) . ": $ledger->{owner}{$lsn}, then $key";
	}
	$ledger->{owner}{$lsn} = $key;
}

sub note_client
{
	my ($ledger, $client, $number, $size) = @_;

	$ledger->{size}{$client} //= sub { $size };
	$ledger->{sent}{$client} = $number if $number > ($ledger->{sent}{$client} // 0);
}

# An append that a test made by itself: its client must be unused by loads.
sub note_append
{
	my ($ledger, $client, $number, $size, $lsn) = @_;

	note_client($ledger, $client, $number, $size);
	$ledger->{acked}{"$client-$number"} = { lsn => lsn_number($lsn), time => time };
	note_owner($ledger, lsn_number($lsn), "$client-$number");
}

# ... one that may be there or not; lsn: where, if that is known
sub note_unsure
{
	my ($ledger, $client, $number, $size, $lsn) = @_;

	note_client($ledger, $client, $number, $size);
	$ledger->{unsure}{"$client-$number"} = { why => 'noted' };
	return unless defined $lsn;
	$ledger->{unsure}{"$client-$number"}{lsn} = lsn_number($lsn);
	note_owner($ledger, lsn_number($lsn), "$client-$number");
}

# ... one that must not be there
sub note_refused
{
	my ($ledger, $client, $number, $size) = @_;

	note_client($ledger, $client, $number, $size);
	$ledger->{refused}{"$client-$number"} = 'noted';
}

# What lay before an LSN was removed by request.
sub forget_before
{
	my ($ledger, $lsn) = @_;

	foreach my $fate ($ledger->{acked}, $ledger->{unsure})
	{
		foreach my $key (keys %$fate)
		{
			my $entry = $fate->{$key};

			next unless defined $entry->{lsn};
			if ($entry->{lsn} < $lsn)
			{
				delete $fate->{$key};
			}
			# of a batch only the last LSN is known until it is read back
			elsif ($entry->{batch})
			{
				delete $fate->{$key};
				$ledger->{unsure}{$key} = { why => 'removed with its batch, perhaps' };
			}
		}
	}
}

# ---- a client: what it does, and what it was told ----

# The text that psql is given: each line is one statement.  kind: append, batch
# (so many records a statement), or async (of so many, the last one is waited for).
# lines: only those from one to another.
sub script_of
{
	my ($client, %load) = @_;
	my $text = '';
	my $payload = sub {
		my ($number) = @_;
		my $letter = chr(97 + $number % 26);

		return "'$client-$number:' || repeat('$letter', " . $load{size}->($number) . ')';
	};

	my ($from, $to) = @{ $load{lines} // [1] };
	for (my $line = $from; (!defined $to || $line <= $to) && (my @numbers = numbers_at($line, %load)); $line++)
	{
		my $number = $numbers[-1];
		my ($what, $call, $source) = ("'acked'", '', '');

		if ($load{kind} eq 'batch')
		{
			$call = 'grouplog.append_batch_text(ARRAY[' . join(', ', map { $payload->($_) } @numbers) . '])';
		}
		elsif ($load{kind} eq 'append')
		{
			$call = 'grouplog.append(' . $payload->($number) . ')';
		}
		elsif ($number % $load{batch} != 0 && $number != $load{records})
		{
			$what = "'told'";
			$call = 'grouplog.append_async(' . $payload->($number) . ')';
		}
		else
		{
			$what = q(CASE WHEN grouplog.wait_durable(l) THEN 'acked' END);
			$call = 'l';
			$source = ' FROM grouplog.append_async(' . $payload->($number) . ') AS l';
		}
		$text .= "SELECT $what, '$client-$number', $call, extract(epoch FROM clock_timestamp())$source;\n";
	}
	return $text;
}

# The numbers of the records that a line of the script appends.
sub numbers_at
{
	my ($line, %load) = @_;
	my $size = $load{kind} eq 'batch' ? $load{batch} : 1;
	my $first = ($line - 1) * $size + 1;
	my $last = $first + $size - 1;

	$last = $load{records} if $last > $load{records};
	return $first .. $last;
}

# What psql printed.  Returns how many records were acknowledged, and the number
# of the last one that was answered for.
sub read_answers
{
	my ($ledger, $client, $text, %load) = @_;
	my ($acked, $last, $last_lsn) = (0, 0, 0);
	my @told;

	foreach my $line ($text =~ /^(.*\n)/mg)    # a last one without its end was torn by a kill
	{
		my ($what, $number, $lsn, $time) =
		  $line =~ /^(acked|told) \Q$client\E-(\d+) ([0-9A-F]+\/[0-9A-F]+) ([0-9.]+)$/;
		my @numbers = ($number);

		if (!defined $what)
		{
			push @{ $ledger->{strange} }, "client $client was told: $line";
			next;
		}
		$lsn = lsn_number($lsn);
		push @{ $ledger->{strange} },
		  "client $client: $number at " . lsn_text($lsn) . ' after ' . lsn_text($last_lsn)
		  if $lsn <= $last_lsn || $number <= $last;
		($last_lsn, $last) = ($lsn, $number);
		note_owner($ledger, $lsn, "$client-$number");

		if ($what eq 'told')
		{
			push @told, "$client-$number";
			$ledger->{unsure}{"$client-$number"} = { lsn => $lsn, why => 'not waited for' };
			next;
		}
		if ($load{kind} eq 'batch')
		{
			@numbers = numbers_at(int(($number + $load{batch} - 1) / $load{batch}), %load);
		}
		$ledger->{acked}{"$client-$_"} =
		  { lsn => $lsn, time => $time, $_ == $number ? () : (batch => 1) }
		  foreach @numbers;
		# all before it are durable, too
		foreach my $key (splice @told)
		{
			$ledger->{acked}{$key} = { lsn => $ledger->{unsure}{$key}{lsn}, time => $time };
			delete $ledger->{unsure}{$key};
			$acked++;
		}
		$acked += @numbers;
	}
	return ($acked, $last);
}

# What psql said of errors.  Returns the number of the last record that one is
# about, whether the connection was lost, and { SQLSTATE => count }.
sub read_errors
{
	my ($ledger, $client, $text, %load) = @_;
	my ($last, $gone) = (0, 0);
	my %states;

	foreach my $message (split /^(?=psql:)/m, $text)
	{
		my ($line, $level, $state) =
		  $message =~ /^psql:\S*:(\d+): (?:(ERROR|FATAL|PANIC):  ([0-9A-Z]{5}): )?/;

		if (!defined $line || !defined $level)
		{
			# no connection to begin with, or lost; else a notice or a warning
			$gone = 1 if $message =~ /connection to server|server closed the connection|could not receive data/;
			next;
		}
		$states{$state}++;
		my @numbers = numbers_at($line, %load);
		next unless @numbers;
		$last = $numbers[-1];
		$gone = 1 if $level ne 'ERROR';

		my ($in_log, $batch_lsn) = $message =~ /(\d+) records of the batch are in the log, the last one at LSN ([0-9A-F\/]+)/;
		my ($lsn) = $message =~ /(?:waiting for|the outcome of) the record at LSN ([0-9A-F\/]+)/;
		my $why = "$level $state";
		my @unsure;

		if (defined $in_log)
		{
			@unsure = splice @numbers, 0, $in_log;
			$lsn //= $batch_lsn;
		}
		elsif (defined $lsn || $level ne 'ERROR' || $state eq '57014')
		{
			# cancelled without an LSN: before the append, or just after it
			@unsure = splice @numbers;
		}
		if (defined $lsn && @unsure)
		{
			my $key = "$client-" . pop @unsure;

			$ledger->{unsure}{$key} = { lsn => lsn_number($lsn), why => $why };
			note_owner($ledger, lsn_number($lsn), $key);
		}
		$ledger->{unsure}{"$client-$_"} = { why => $why } foreach @unsure;
		$ledger->{refused}{"$client-$_"} = $why foreach @numbers;
	}
	return ($last, $gone, \%states);
}

# A client has ended: every record that it may have sent has a fate.
sub settle
{
	my ($ledger, $client, $answered, $failed, $gone, %load) = @_;
	my $last = $answered > $failed ? $answered : $failed;
	my $step = $load{kind} eq 'batch' ? $load{batch} : 1;
	my $ended = !$gone && ($load{keep_going} || $failed == 0);

	# the next statement may have been under way
	$ledger->{sent}{$client} = $gone && $last < $load{records} ? $last + $step : $last;
	$ledger->{sent}{$client} = $load{records} if $ledger->{sent}{$client} > $load{records};
	foreach my $number ($ended ? (1 .. $load{records}) : ())
	{
		my $key = "$client-$number";

		push @{ $ledger->{strange} }, "client $client had no answer for $number"
		  unless $ledger->{acked}{$key} || $ledger->{unsure}{$key} || $ledger->{refused}{$key};
	}
}

# Messages as psql prints them without being asked for more.
sub plain_errors
{
	my ($text) = @_;

	$text =~ s/^(psql:\S*: (?:ERROR|FATAL|PANIC|WARNING|NOTICE):  )[0-9A-Z]{5}: /$1/mg;
	$text =~ s/^LOCATION:  .*\n//mg;
	return $text;
}

# ---- the check ----

# judge_records(LEDGER, ROWS, lossy => SUB, uncrashed => 1, after => LSN, oldest => LSN,
#   databases => [...])
#
# rows: [ database, lsn, key, length, md5 ], in the order in which they were read.
# Returns { missing, wrong, disorder, found, lost }: lists of what is wrong, and
# two counts.  lossy: called with those acknowledged records that are not there
# (ordered by LSN; { key, lsn, time }) and the last LSN that is; returns what is
# wrong with that, or ''.  Such records are struck from the ledger.  uncrashed: the
# server has not crashed since the first record and all is durable, so whatever was
# handed an LSN must be there, too.
sub judge_records
{
	my ($ledger, $rows, %options) = @_;
	my (%found, %last_number, %last_lsn, %read_up_to, @missing, @wrong, @disorder);
	my ($last, $end) = (0, 0);
	my $after = defined $options{after} ? lsn_number($options{after}) : 0;
	my $oldest = $options{oldest} // 0;
	my %in_scope = map { $_ => 1 } @{ $options{databases} // [] };
	my $here = sub {
		my ($key) = @_;
		my ($client) = $key =~ /^(\d+)-/;
		my $database = $ledger->{database}{$client};

		return !defined $database || !%in_scope || $in_scope{$database};
	};

	# each database as it was read; then the whole log by LSN
	foreach my $row (@$rows)
	{
		my ($database, $lsn) = @$row;

		push @disorder, lsn_text($lsn) . ' after ' . lsn_text($read_up_to{$database})
		  if $lsn <= ($read_up_to{$database} // 0);
		$read_up_to{$database} = $lsn;
	}
	foreach my $row (sort { $a->[1] <=> $b->[1] } @$rows)
	{
		my ($database, $lsn, $key, $length, $md5) = @$row;
		my ($client, $number) = $key =~ /^(\d+)-(\d+)\z/;
		my $text = lsn_text($lsn);

		push @disorder, "$key is there twice" if exists $found{$key};
		push @disorder, "$key at $text lies within the record before it" if $lsn > $last && $lsn < $end;
		$last = $lsn;
		$end = $lsn + $header + $length;
		$found{$key} = $lsn;
		note_owner($ledger, $lsn, $key);

		if (   !defined $client
			|| !exists $ledger->{size}{$client}
			|| $number > ($ledger->{sent}{$client} // 0))
		{
			push @wrong, "$key at $text was never sent";
			next;
		}
		my $size = $ledger->{size}{$client}->($number);
		my $acked = $ledger->{acked}{$key};
		my $unsure = $ledger->{unsure}{$key};

		if ($md5 ne md5_hex(payload_of($client, $number, $size)))
		{
			push @wrong, "$key at $text is not what was sent, but $length characters";
		}
		if (defined $ledger->{database}{$client} && $ledger->{database}{$client} ne $database)
		{
			push @wrong, "$key at $text is in database $database, not $ledger->{database}{$client}";
		}
		if ($acked && $acked->{batch} && $lsn < $acked->{lsn})
		{
			$acked->{lsn} = $lsn;
			delete $acked->{batch};
		}
		elsif ($acked && $acked->{lsn} != $lsn)
		{
			push @wrong, "$key was acknowledged at " . lsn_text($acked->{lsn}) . ", is at $text";
		}
		if ($unsure && defined $unsure->{lsn} && $unsure->{lsn} != $lsn)
		{
			push @wrong, "$key was said to be at " . lsn_text($unsure->{lsn}) . ", is at $text";
		}
		if ($ledger->{refused}{$key})
		{
			push @wrong, "$key was refused ($ledger->{refused}{$key}), is at $text";
		}
		if (defined $last_number{$client} && $number <= $last_number{$client})
		{
			push @disorder, "$key at $text comes after $client-$last_number{$client}";
		}
		# a batch is there from its first record on, as far as it goes
		my $batch = $ledger->{batch}{$client};
		if (   $batch
			&& defined $last_number{$client}
			&& ($number - 1) % $batch != 0
			&& $last_number{$client} != $number - 1)
		{
			push @missing, "$client-" . ($number - 1) . " of the batch of $key at $text";
		}
		$last_number{$client} = $number;
		$last_lsn{$client} = $lsn;
	}

	# nothing may lie where a record was that a crash has taken
	if (%{ $ledger->{lost} // {} })
	{
		my @gone = sort { $a <=> $b } keys %{ $ledger->{lost} };
		my $next = 0;

		foreach my $row (sort { $a->[1] <=> $b->[1] } @$rows)
		{
			$next++ while $next < @gone && $ledger->{lost}{ $gone[$next] } <= $row->[1];
			last if $next >= @gone;
			push @{ $ledger->{reused} },
			  lsn_text($row->[1]) . ": $row->[2], where a record was lost at " . lsn_text($gone[$next])
			  if $gone[$next] < $row->[1] + $header + $row->[3];
		}
	}

	my @lost = sort { $a->{lsn} <=> $b->{lsn} || $a->{key} cmp $b->{key} }
	  grep { $_->{lsn} > $after }
	  map { { key => $_, %{ $ledger->{acked}{$_} } } }
	  grep { !exists $found{$_} && $here->($_) } keys %{ $ledger->{acked} };
	if ($options{lossy})
	{
		my $problem = $options{lossy}->(\@lost, $last);
		push @missing, $problem if $problem;
	}
	else
	{
		push @missing, map { "$_->{key} at " . lsn_text($_->{lsn}) } @lost;
	}

	# what is missing with something of its session after it is a hole; without
	# a crash nothing may be missing
	foreach my $entry (
		$options{lossy} ? @lost : (),
		map { { key => $_, %{ $ledger->{unsure}{$_} } } }
		grep { !exists $found{$_} && $here->($_) } keys %{ $ledger->{unsure} // {} })
	{
		my ($client) = $entry->{key} =~ /^(\d+)-/;

		next unless defined $entry->{lsn};
		next if $entry->{lsn} <= $after || $entry->{lsn} < $oldest;
		push @missing, "$entry->{key} at " . lsn_text($entry->{lsn}) . ", $entry->{why}"
		  if $options{uncrashed};
		next unless defined $last_lsn{$client};
		push @missing, "$entry->{key} at " . lsn_text($entry->{lsn}) . ': a hole, '
		  . lsn_text($last_lsn{$client}) . ' is there'
		  if $entry->{lsn} < $last_lsn{$client};
	}

	if ($options{lossy})
	{
		foreach my $entry (@lost)
		{
			my ($client, $number) = $entry->{key} =~ /^(\d+)-(\d+)/;
			my $size = $ledger->{size}{$client}->($number);

			$ledger->{lost}{ $entry->{lsn} } = $entry->{lsn} + $header + length(payload_of($client, $number, 0)) + $size
			  unless $entry->{batch};
			# it must not come back
			$ledger->{refused}{ $entry->{key} } = 'lost in a crash';
			delete $ledger->{acked}{ $entry->{key} };
		}
	}
	return {
		missing  => \@missing,
		wrong    => \@wrong,
		disorder => \@disorder,
		found    => scalar keys %found,
		lost     => scalar @lost
	};
}

# For lossy: what a crash may take of records in periodic mode, the newest ones
# without a hole.  It takes them of these loads' clients and of nobody else.
sub only_the_end
{
	my %may = map { $_ => 1 } map { keys %{ $_->{clients} } } @_;

	return sub {
		my ($lost, $last) = @_;
		my @others = grep { !$may{ ($_->{key} =~ /^(\d+)-/)[0] } } @$lost;

		return "$others[0]{key} at " . lsn_text($others[0]{lsn}) . ', which may not be lost' if @others;
		return '' if !@$lost || $lost->[0]{lsn} > $last;
		return 'lost ' . lsn_text($lost->[0]{lsn}) . ', but ' . lsn_text($last) . ' is there';
	};
}

1;
