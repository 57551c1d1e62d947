# GrouplogTest.pm: what grouplog's server tests share.
#
# A ledger notes what clients sent and what the server answered.  The invariant
# that it checks is the same in every test: each acknowledged record is read back
# intact, in the order of LSNs, exactly once; what was not acknowledged is absent
# or whole; no LSN is ever given to two records.
#
# Record number s of client c has the key "c-s" and the payload "c-s:" plus as
# many equal letters as its size says, so that an md5 is all that need be kept.

package GrouplogTest;

use strict;
use warnings FATAL => 'all';

use Digest::MD5 qw(md5_hex);
use Exporter 'import';
use File::Basename qw(dirname);
use File::Copy qw();
use POSIX qw(:sys_wait_h);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  new_node kill_server wait_for_server writer_pid wait_for_writer status log_since log_position
  new_ledger start_load wait_for_acks finish_load append_some check_ledger note_append
  lsn_number lsn_text wait_until sql_error
  segment_files log_directory save_log restore_log read_bytes write_bytes
  cut_file file_at build_library build_program scratch
  use_faults set_fault clear_faults fault_hits set_clock start_with_faults
);

my %default_conf = (
	shared_preload_libraries  => 'grouplog',
	fsync                     => 'on',
	log_statement             => 'none',
	autovacuum                => 'off',
	max_connections           => 60,
	'grouplog.segment_size'   => '1MB',
	'grouplog.buffers'        => '256kB',
	'grouplog.min_free_space' => '0');

my $timeout = $PostgreSQL::Test::Utils::timeout_default;

# Orphans become our children, where we can ask for that (PR_SET_CHILD_SUBREAPER):
# a process 1 may take a second to reap the servers that were killed.
syscall(157, 36, 1, 0, 0, 0) if (POSIX::uname())[0] eq 'Linux' && (POSIX::uname())[4] eq 'x86_64';

# ---- servers ----

# new_node(NAME, conf => {...}, init => [...], start => 0, extension => 0)
sub new_node
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(@{ $options{init} // [] });
	my %conf = (%default_conf, %{ $options{conf} // {} });
	foreach my $setting (sort keys %conf)
	{
		$node->append_conf('postgresql.conf', "$setting = '$conf{$setting}'")
		  if defined $conf{$setting};
	}
	return $node if exists $options{start} && !$options{start};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION grouplog')
	  unless exists $options{extension} && !$options{extension};
	return $node;
}

sub process_is_gone
{
	my ($pid) = @_;

	open my $stat, '<', "/proc/$pid/stat" or return 1;
	my $line = <$stat> // '';
	close $stat;
	return $line eq '' || $line =~ /^\d+ \(.*\) [ZX]/s;
}

sub children_of
{
	my ($parent) = @_;
	my @children;

	foreach my $file (glob '/proc/[0-9]*/stat')
	{
		open my $stat, '<', $file or next;
		my $line = <$stat> // '';
		close $stat;
		push @children, $1 if $line =~ /^(\d+) \(.*\) \S (\d+) /s && $2 == $parent;
	}
	return @children;
}

# Every process of the server, at one moment, as the power would.
sub kill_server
{
	my ($node) = @_;
	my $postmaster = $node->{_pid};

	# stopped, it starts no more of them
	kill 'STOP', $postmaster;
	my @children = children_of($postmaster);
	kill 'KILL', @children;
	$node->kill9;
	# the postmaster must be reaped, too: a zombie still holds postmaster.pid
	wait_until(
		sub {
			waitpid $postmaster, WNOHANG;
			return !-d "/proc/$postmaster" && !grep { !process_is_gone($_) } @children;
		})
	  or BAIL_OUT('the server does not die');
}

# Until it accepts connections (again).
sub wait_for_server
{
	my ($node) = @_;

	return wait_until(
		sub { system('pg_isready', '-q', '-d', $node->connstr('postgres')) == 0 });
}

sub writer_pid
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		q(SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE backend_type = 'grouplog writer'));
}

# Wait for a writer other than this one.
sub wait_for_writer
{
	my ($node, $old) = @_;

	return $node->poll_query_until('postgres',
		"SELECT writer_pid IS NOT NULL AND writer_pid <> $old AND state = 'open' FROM grouplog.status");
}

sub status
{
	my ($node, $column) = @_;

	return $node->safe_psql('postgres', "SELECT $column FROM grouplog.status");
}

# The message of a statement that must fail: (SQLSTATE, whole stderr)
sub sql_error
{
	my ($node, $sql, %options) = @_;
	my ($out, $err);
	my $status = $node->psql($options{dbname} // 'postgres',
		"\\set VERBOSITY verbose\n$sql",
		stdout => \$out, stderr => \$err, on_error_stop => 1,
		%{ $options{psql} // {} });

	return ('00000', "no error: $out") if $status == 0;
	return (($err =~ /(?:ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}):/)[0] // '?????', $err);
}

sub log_position
{
	my ($node) = @_;

	return -s $node->logfile;
}

sub log_since
{
	my ($node, $position) = @_;

	return slurp_file($node->logfile, $position);
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

sub lsn_number
{
	my ($text) = @_;
	my ($high, $low) = split m{/}, $text;

	return hex($high) * 2**32 + hex($low);
}

sub lsn_text
{
	my ($number) = @_;

	return sprintf '%X/%X', $number >> 32, $number & 0xFFFFFFFF;
}

sub scratch
{
	my ($name) = @_;

	return "$PostgreSQL::Test::Utils::tmp_check/$name";
}

# ---- load ----

my $next_client = 1;

sub new_ledger
{
	return {
		acked   => {},    # key => { lsn, time, size }
		sent    => {},    # client => largest number that may have been sent
		size    => {},    # client => how large a record is, by its number
		owner   => {},    # lsn => key
		reused  => [],
		strange => []
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

# An append that a test made by itself: its client must be unused.
sub note_append
{
	my ($ledger, $client, $number, $size, $lsn) = @_;

	$ledger->{size}{$client} //= sub { $size };
	$ledger->{sent}{$client} = $number if $number > ($ledger->{sent}{$client} // 0);
	$ledger->{acked}{"$client-$number"} = { lsn => lsn_number($lsn), time => time };
	note_owner($ledger, lsn_number($lsn), "$client-$number");
}

# start_load(NODE, LEDGER, clients => N, records => N, mode => ..., size => SUB,
#   options => "-c ...", dbname => ..., sql => SUB)
#
# Clients that append one record after the other until there is no more to do,
# or the server is gone.  Each notes what the server has answered.  keep_going:
# an error does not end a client (what it says is in the load's errors).
sub start_load
{
	my ($node, $ledger, %options) = @_;
	my $records = $options{records} // 8000;
	my $size = $options{size} // sub { ($_[0] * 7919) % 400 };
	my $pgoptions = join ' ', grep { defined } (
		$options{mode} ? "-c grouplog.sync_mode=$options{mode}" : undef, $options{options});
	my %load = (node => $node, ledger => $ledger, clients => {}, keep_going => $options{keep_going});

	foreach (1 .. $options{clients} // 4)
	{
		my $client = $next_client++;
		my $script = scratch("client$client.sql");
		my $out = scratch("client$client.out");
		my $err = scratch("client$client.err");

		$ledger->{size}{$client} = $size;
		open my $file, '>', $script or die "$script: $!";
		print $file "\\set ON_ERROR_STOP on\n" unless $options{keep_going};
		for my $number (1 .. $records)
		{
			my $letter = chr(97 + $number % 26);
			my $length = $size->($number);

			print $file
			  "SELECT '$client-$number', grouplog.append('$client-$number:' || repeat('$letter', $length)),"
			  . " extract(epoch FROM clock_timestamp());\n";
		}
		close $file;

		my $pid = fork // die "fork: $!";
		if ($pid == 0)
		{
			local $ENV{PGOPTIONS} = $pgoptions;
			delete $ENV{LD_PRELOAD};
			open STDIN, '<', '/dev/null';
			open STDOUT, '>', $out;
			open STDERR, '>', $err;
			exec 'psql', '-XAtq', '-F', ' ', '-f', $script, '-d',
			  $node->connstr($options{dbname} // 'postgres')
			  or POSIX::_exit(1);
		}
		$load{clients}{$client} = { pid => $pid, out => $out, err => $err, script => $script };
	}
	return \%load;
}

# Until so many records are acknowledged (or all clients have ended).
sub wait_for_acks
{
	my ($load, $wanted) = @_;

	return wait_until(
		sub {
			my $lines = 0;
			foreach my $client (values %{ $load->{clients} })
			{
				open my $file, '<', $client->{out} or next;
				$lines += () = <$file>;
				close $file;
			}
			return 1 if $lines >= $wanted;
			return !grep { !process_is_gone($_->{pid}) } values %{ $load->{clients} };
		});
}

# Wait for the clients to end (stop => 1: end them now), and read what they
# were told.  Returns how many records were acknowledged.
sub finish_load
{
	my ($load, %options) = @_;
	my $ledger = $load->{ledger};
	my $acked = 0;

	if ($options{stop})
	{
		kill 'TERM', map { $_->{pid} } values %{ $load->{clients} };
	}
	foreach my $number (sort { $a <=> $b } keys %{ $load->{clients} })
	{
		my $client = $load->{clients}{$number};

		if (!wait_until(sub { process_is_gone($client->{pid}) }))
		{
			push @{ $ledger->{strange} }, "client $number hangs";
			kill 'KILL', $client->{pid};
		}
		waitpid $client->{pid}, 0;

		my $last = 0;
		open my $file, '<', $client->{out} or die "$client->{out}: $!";
		while (my $line = <$file>)
		{
			last unless $line =~ /\n\z/;    # torn by our own kill
			if ($line !~ /^\d+-(\d+) ([0-9A-F]+\/[0-9A-F]+) ([0-9.]+)$/)
			{
				push @{ $ledger->{strange} }, "client $number was told: $line";
				next;
			}
			$ledger->{acked}{"$number-$1"} = { lsn => lsn_number($2), time => $3 };
			note_owner($ledger, lsn_number($2), "$number-$1");
			$last = $1;
			$acked++;
		}
		close $file;
		$ledger->{sent}{$number} = $load->{keep_going} ? 1_000_000_000 : $last + 1;
		$load->{errors} .= slurp_file($client->{err});
		unlink $client->{script};
	}
	return $acked;
}

# A few records, to have some: all of them must be acknowledged.
sub append_some
{
	my ($node, $ledger, $name, %options) = @_;
	my $load = start_load($node, $ledger, clients => 2, records => 20, %options);
	my $wanted = ($options{clients} // 2) * ($options{records} // 20);
	my $acked = finish_load($load);

	is($acked, $wanted, $name) or diag $load->{errors};
	return $acked;
}

sub some
{
	my (@list) = @_;
	my $more = @list > 5 ? ' and ' . (@list - 5) . ' more' : '';

	return join('; ', @list[ 0 .. ($#list > 4 ? 4 : $#list) ]) . $more;
}

# check_ledger(NODE, LEDGER, NAME, lossy => SUB, after => LSN, dbname => ...)
#
# Three assertions.  lossy: called with those acknowledged records that are not
# there (ordered by LSN; { key, lsn, time }) and the last LSN that is; returns
# what is wrong with that, or ''.  Such records are struck from the ledger.
sub check_ledger
{
	my ($node, $ledger, $name, %options) = @_;
	my $rows = $node->safe_psql($options{dbname} // 'postgres',
		q(SELECT lsn, split_part(payload, ':', 1), length(payload), md5(payload) FROM grouplog.read_text())
		  . ($options{after} ? " WHERE lsn > '$options{after}'" : ''));
	my (%found, @disorder, @wrong, @missing);
	my $last = 0;

	foreach my $row (split /\n/, $rows)
	{
		my ($text, $key, $length, $md5) = split /\|/, $row;
		my $lsn = lsn_number($text);
		my ($client, $number) = $key =~ /^(\d+)-(\d+)$/;

		push @disorder, "$text after " . lsn_text($last) if $lsn <= $last;
		push @disorder, "$key is there twice" if exists $found{$key};
		$last = $lsn;
		$found{$key} = $lsn;
		note_owner($ledger, $lsn, $key);

		if (   !defined $client
			|| !exists $ledger->{size}{$client}
			|| $number > $ledger->{sent}{$client})
		{
			push @wrong, "$key at $text was never sent";
		}
		elsif ($md5 ne md5_hex(payload_of($client, $number, $ledger->{size}{$client}->($number))))
		{
			push @wrong, "$key at $text is not what was sent, but $length characters";
		}
		elsif (exists $ledger->{acked}{$key} && $ledger->{acked}{$key}{lsn} != $lsn)
		{
			push @wrong, "$key was acknowledged at " . lsn_text($ledger->{acked}{$key}{lsn})
			  . ", is at $text";
		}
	}

	my @lost = map { { key => $_, %{ $ledger->{acked}{$_} } } }
	  grep { !exists $found{$_} } keys %{ $ledger->{acked} };
	if ($options{after})
	{
		@lost = grep { $_->{lsn} > lsn_number($options{after}) } @lost;
	}
	@lost = sort { $a->{lsn} <=> $b->{lsn} } @lost;
	if ($options{lossy})
	{
		my $problem = $options{lossy}->(\@lost, $last);
		push @missing, $problem if $problem;
		delete $ledger->{acked}{ $_->{key} } foreach @lost;
	}
	else
	{
		@missing = map { "$_->{key} at " . lsn_text($_->{lsn}) } @lost;
	}

	note "$name: " . keys(%found) . ' records read, ' . keys(%{ $ledger->{acked} }) . ' acknowledged, '
	  . @lost . ' lost';
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(some(@missing), '', "$name: every acknowledged record is there");
	is(some(@wrong, @{ $ledger->{strange} }), '', "$name: intact, and nothing else");
	is(some(@disorder, @{ $ledger->{reused} }), '', "$name: in order of LSN, once, no LSN used twice");
	$ledger->{reused} = [];
	$ledger->{strange} = [];
	return scalar keys %found;
}

# ---- files of a log whose server is stopped ----

sub log_directory
{
	my ($node) = @_;

	return $node->data_dir . '/grouplog';
}

# [{ name, path, number, first, bytes }], oldest first
sub segment_files
{
	my ($node) = @_;
	my @files;

	foreach my $name (sort grep { /^[0-9A-F]{8}-[0-9A-F]{16}\.seg$/ } slurp_dir(log_directory($node)))
	{
		my ($number, $high, $low) = $name =~ /^(.{8})-(.{8})(.{8})/;
		my $path = log_directory($node) . "/$name";

		push @files,
		  {
			name   => $name,
			path   => $path,
			number => hex $number,
			first  => hex($high) * 2**32 + hex $low,
			bytes  => -s $path
		  };
	}
	return @files;
}

# (path, offset) of an LSN; first_lsn is aligned to a block in all our cases
sub file_at
{
	my ($node, $lsn) = @_;
	my ($file) = grep { $_->{first} <= $lsn } reverse segment_files($node);

	return ($file->{path}, 4096 + $lsn - int($file->{first} / 4096) * 4096);
}

sub save_log
{
	my ($node, $name) = @_;

	system('cp', '-a', log_directory($node), scratch($name)) == 0 or die "cp: $?";
}

sub restore_log
{
	my ($node, $name) = @_;

	system('rm', '-rf', log_directory($node)) == 0 or die "rm: $?";
	system('cp', '-a', scratch($name), log_directory($node)) == 0 or die "cp: $?";
}

sub read_bytes
{
	my ($path, $offset, $length) = @_;
	my $bytes;

	open my $file, '<:raw', $path or die "$path: $!";
	seek $file, $offset, 0;
	read $file, $bytes, $length;
	close $file;
	return $bytes;
}

sub write_bytes
{
	my ($path, $offset, $bytes) = @_;

	open my $file, '+<:raw', $path or die "$path: $!";
	seek $file, $offset, 0;
	print $file $bytes;
	close $file or die "$path: $!";
}

sub cut_file
{
	my ($path, $bytes) = @_;

	truncate $path, $bytes or die "$path: $!";
}

# ---- helpers in C ----

sub compile
{
	my ($source, $output, @flags) = @_;
	my $compiler = $ENV{CC} // 'cc';
	my $log = scratch('compile.log');

	system("$compiler -O1 -Wall -o '$output' '$source' @flags >'$log' 2>&1") == 0
	  or do { note slurp_file($log) if -e $log; return; };
	return $output;
}

# ---- faults: see test/faultlib.c ----

my %call = (write => 1, fdatasync => 2, fsync => 4, read => 8, direct => 16, rename => 32);
my %file = (segment => 1, spare => 2, directory => 4, control => 8);
my ($library, $knobs);

# False where there is no compiler.
sub use_faults
{
	$library = build_library() or return 0;
	$knobs = scratch('faults');
	clear_faults();
	return 1;
}

sub write_knobs
{
	my ($offset, $bytes) = @_;

	# in place: every process has mapped the file
	open my $handle, -e $knobs ? '+<:raw' : '+>:raw', $knobs or die "$knobs: $!";
	sysseek $handle, $offset, 0;
	syswrite $handle, $bytes;
	close $handle;
}

# set_fault(SLOT, calls => [...], files => [...], error => N, bytes => N,
#   delay => ms, skip => N, count => N)
sub set_fault
{
	my ($slot, %fault) = @_;
	my $calls = 0;
	my $files = 0;

	$calls += $call{$_} // die "no call $_" foreach @{ $fault{calls} };
	$files += $file{$_} // die "no file $_" foreach @{ $fault{files} // ['segment'] };

	# what it strikes is written last
	write_knobs(8 + 32 * $slot, pack 'l', 0);
	write_knobs(12 + 32 * $slot,
		pack 'l7', $files, $fault{error} // 0, $fault{bytes} // 0, $fault{delay} // 0,
		$fault{skip} // 0, $fault{count} // -1, 0);
	write_knobs(8 + 32 * $slot, pack 'l', $calls);
}

sub clear_faults
{
	if (!-e $knobs)
	{
		write_knobs(0, pack 'q l64', 0, (0) x 64);
		return;
	}
	write_knobs(8 + 32 * $_, pack 'l8', (0) x 8) foreach 0 .. 7;
}

sub fault_hits
{
	my ($slot) = @_;

	return unpack 'l', read_bytes($knobs, 8 + 32 * $slot + 28, 4);
}

# Seconds that the wall clock of the servers is ahead.
sub set_clock
{
	my ($seconds) = @_;

	write_knobs(0, pack 'q', $seconds * 1_000_000);
}

sub start_with_faults
{
	my ($node, %options) = @_;

	local $ENV{GROUPLOG_FAULTS} = $knobs;
	local $ENV{LD_PRELOAD} = $library;
	return $node->start(%options);
}

# The path of the fault library, or undef where there is no compiler.
sub build_library
{
	my $source = dirname(__FILE__) . '/../test/faultlib.c';

	return compile($source, scratch('faultlib.so'), '-shared', '-fPIC', '-ldl');
}

# A program from its text, or undef.
sub build_program
{
	my ($name, $text) = @_;
	my $source = scratch("$name.c");

	open my $file, '>', $source or die "$source: $!";
	print $file $text;
	close $file;
	return compile($source, scratch($name));
}

1;
