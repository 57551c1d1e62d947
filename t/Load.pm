# Load.pm: clients that append, and a look at what became of it.
#
# What they were told goes into a ledger (t/Ledger.pm); check_ledger reads the
# log and has the ledger judge it.

package Load;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Ledger qw(:DEFAULT script_of read_answers read_errors settle plain_errors);
use POSIX qw(:sys_wait_h);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  start_load answers_to errors_in wait_for_acks finish_load append_some check_ledger
  process_is_gone wait_until scratch
);

my $timeout = $PostgreSQL::Test::Utils::timeout_default;
my $next_client = 1;

sub scratch
{
	my ($name) = @_;

	return "$PostgreSQL::Test::Utils::tmp_check/$name";
}

sub process_is_gone
{
	my ($pid) = @_;

	open my $stat, '<', "/proc/$pid/stat" or return 1;
	my $line = <$stat> // '';
	close $stat;
	return $line eq '' || $line =~ /^\d+ \(.*\) [ZX]/s;
}

# Until the condition holds; false if it never does.
sub wait_until
{
	my ($condition, $seconds) = @_;
	my $end = time + ($seconds // $timeout);

	while (1)
	{
		return 1 if $condition->();
		return 0 if time > $end;
		sleep 0.02;
	}
}

# start_load(NODE, LEDGER, clients => N, records => N, mode => ..., size => SUB,
#   kind => 'append', 'batch' or 'async', batch => N, options => "-c ...",
#   dbname => ..., keep_going => 1, endless => 1)
#
# Clients that append one record after the other until there is no more to do,
# or the server is gone.  Each notes what the server has answered.  kind: one
# record a call; so many a call; or so many without waiting, and then a wait.
# keep_going: an error does not end a client (what it says is in the load's
# errors, how often each SQLSTATE came in its states).  endless: there is always
# more to do, so what a test does beside the load meets it, however slow the test
# is; such a load ends when it is stopped, or the server is.
sub start_load
{
	my ($node, $ledger, %options) = @_;
	my %load = (
		node       => $node,
		ledger     => $ledger,
		clients    => {},
		kind       => $options{kind} // 'append',
		batch      => $options{batch} // 5,
		records    => $options{endless} ? 1_000_000_000 : $options{records} // 8000,
		size       => $options{size} // sub { ($_[0] * 7919) % 400 },
		keep_going => $options{keep_going},
		endless    => $options{endless},
		states     => {},
		errors     => '');
	my $pgoptions = join ' ', grep { defined } (
		$options{mode} ? "-c grouplog.sync_mode=$options{mode}" : undef, $options{options});
	my $dbname = $options{dbname} // 'postgres';

	foreach (1 .. $options{clients} // 4)
	{
		my $client = $next_client++;
		my $script = scratch("client$client.sql");
		my $out = scratch("client$client.out");
		my $err = scratch("client$client.err");

		$ledger->{size}{$client} = $load{size};
		$ledger->{database}{$client} = $dbname;
		$ledger->{batch}{$client} = $load{batch} if $load{kind} eq 'batch';
		my ($feeder, $statements);
		if ($options{endless})
		{
			($feeder, $statements) = feed($client, %load);
		}
		else
		{
			open my $file, '>', $script or die "$script: $!";
			print $file script_of($client, %load);
			close $file;
		}

		my $pid = fork // die "fork: $!";
		if ($pid == 0)
		{
			local $ENV{PGOPTIONS} = $pgoptions;
			delete $ENV{LD_PRELOAD};
			if ($feeder) { open STDIN, '<&', $statements; }
			else         { open STDIN, '<',  '/dev/null'; }
			open STDOUT, '>', $out;
			open STDERR, '>', $err;
			exec 'psql', '-XAtq', '-F', ' ', '-v', 'VERBOSITY=verbose',
			  '-v', 'ON_ERROR_STOP=' . ($load{keep_going} ? 0 : 1), '-f', $feeder ? '-' : $script,
			  '-d', $node->connstr($dbname)
			  or POSIX::_exit(1);
		}
		$load{clients}{$client} = { pid => $pid, out => $out, err => $err, script => $script, feeder => $feeder };
	}
	return \%load;
}

# A process that writes statements to a pipe for as long as somebody reads them.
sub feed
{
	my ($client, %load) = @_;

	pipe my $from, my $to or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if ($pid == 0)
	{
		# nothing of the test's stays open in it
		open STDIN,  '<', '/dev/null';
		open STDOUT, '>', '/dev/null';
		open STDERR, '>', '/dev/null';
		close $from;
		$SIG{$_} = 'DEFAULT' foreach qw(PIPE TERM INT);
		for (my $line = 1;; $line += 50)
		{
			my $text = script_of($client, %load, lines => [ $line, $line + 49 ]);

			while (length $text)
			{
				my $written = syswrite $to, $text;

				POSIX::_exit(1) unless defined $written;
				substr $text, 0, $written, '';
			}
		}
	}
	close $to;
	return ($pid, $from);
}

# How many calls are answered.
sub answers_to
{
	my ($load) = @_;
	my $lines = 0;

	foreach my $client (values %{ $load->{clients} })
	{
		open my $file, '<', $client->{out} or next;
		$lines += () = <$file>;
		close $file;
	}
	return $lines;
}

# How many errors the clients have been told of so far.
sub errors_in
{
	my ($load) = @_;

	return scalar(() = join('', map { slurp_file($_->{err}) } values %{ $load->{clients} }) =~ /ERROR: /g);
}

# Until so many calls are answered (or all clients have ended).
sub wait_for_acks
{
	my ($load, $wanted) = @_;

	return wait_until(
		sub {
			return 1 if answers_to($load) >= $wanted;
			return !grep { !process_is_gone($_->{pid}) } values %{ $load->{clients} };
		});
}

# Until a client ends; false if it makes no progress for too long.
sub wait_for_client
{
	my ($client) = @_;
	my $told = 0;

	while (1)
	{
		return 1 if wait_until(sub { process_is_gone($client->{pid}) });
		my $now = (-s $client->{out}) + (-s $client->{err});
		return 0 if $now == $told;
		$told = $now;
	}
}

# Wait for the clients to end (stop => 1: end them now), and read what they
# were told.  Returns how many records were acknowledged.
sub finish_load
{
	my ($load, %options) = @_;
	my $ledger = $load->{ledger};
	my $total = 0;

	if ($options{stop})
	{
		kill 'TERM', map { $_->{pid} } values %{ $load->{clients} };
	}
	foreach my $number (sort { $a <=> $b } keys %{ $load->{clients} })
	{
		my $client = $load->{clients}{$number};

		if (!wait_for_client($client))
		{
			push @{ $ledger->{strange} }, "client $number hangs";
			kill 'KILL', $client->{pid};
		}
		waitpid $client->{pid}, 0;
		my $killed = WIFSIGNALED($?);
		if ($client->{feeder})
		{
			kill 'KILL', $client->{feeder};
			waitpid $client->{feeder}, 0;
		}

		my $text = slurp_file($client->{err});
		my ($acked, $answered) = read_answers($ledger, $number, slurp_file($client->{out}), %$load);
		my ($failed, $gone, $states) = read_errors($ledger, $number, $text, %$load);

		settle($ledger, $number, $answered, $failed, $gone || $killed, %$load);
		$total += $acked;
		$load->{errors} .= plain_errors($text);
		$load->{states}{$_} += $states->{$_} foreach keys %$states;
		unlink $client->{script} unless $client->{feeder};
	}
	return $total;
}

# A few records, to have some: all of them must be acknowledged.
sub append_some
{
	my ($node, $ledger, $name, %options) = @_;
	my $load = start_load($node, $ledger, clients => 2, records => 20, %options);
	my $wanted = ($options{clients} // 2) * ($options{records} // 20);
	my $acked = finish_load($load);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($acked, $wanted, $name) or diag $load->{errors};
	return $acked;
}

sub some
{
	my (@list) = @_;
	my $more = @list > 5 ? ' and ' . (@list - 5) . ' more' : '';

	return join('; ', @list[ 0 .. ($#list > 4 ? 4 : $#list) ]) . $more;
}

# check_ledger(NODE, LEDGER, NAME, lossy => SUB, uncrashed => 1, after => LSN,
#   dbname => ...)
#
# Three assertions, over all databases that clients have used, or the one named.
# lossy and uncrashed: see judge_records.
sub check_ledger
{
	my ($node, $ledger, $name, %options) = @_;
	my %databases = map { $_ => 1 } values %{ $ledger->{database} };
	my @databases =
	  defined $options{dbname} ? ($options{dbname}) : %databases ? sort keys %databases : ('postgres');
	my $oldest = $node->safe_psql($databases[0], 'SELECT oldest_lsn FROM grouplog.status');
	my @rows;

	foreach my $database (@databases)
	{
		my $text = $node->safe_psql($database,
			q(SELECT lsn, split_part(payload, ':', 1), octet_length(payload), md5(payload) FROM grouplog.read_text())
			  . ($options{after} ? " WHERE lsn > '$options{after}'" : ''));

		foreach my $row (split /\n/, $text)
		{
			my ($lsn, @rest) = split /\|/, $row;

			push @rows, [ $database, lsn_number($lsn), @rest ];
		}
	}

	my $verdict = judge_records($ledger, \@rows, %options,
		oldest    => $oldest ne '' ? lsn_number($oldest) : 0,
		databases => \@databases);

	note "$name: $verdict->{found} records read, " . keys(%{ $ledger->{acked} }) . ' acknowledged, '
	  . "$verdict->{lost} lost";
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(some(@{ $verdict->{missing} }), '', "$name: every acknowledged record is there");
	is(some(@{ $verdict->{wrong} }, @{ $ledger->{strange} }), '', "$name: intact, and nothing else");
	is(some(@{ $verdict->{disorder} }, @{ $ledger->{reused} }), '',
		"$name: in order of LSN, once, no LSN used twice");
	$ledger->{reused} = [];
	$ledger->{strange} = [];
	return $verdict->{found};
}

1;
