# GrouplogTest.pm: what grouplog's server tests share: servers that start, die
# and fail, their files, faults.  What clients append and whether the log keeps it
# is in t/Load.pm and t/Ledger.pm, which come with this one.

package GrouplogTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use File::Basename qw(dirname);
use IPC::Run ();
use Ledger;
use Load;
use POSIX qw(:sys_wait_h);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = (
	@Ledger::EXPORT,
	@Load::EXPORT,
	qw(
	  new_node kill_server wait_for_server wait_open writer_pid wait_for_writer status log_since log_position
	  sql_error cancelled_in_wait segment_files log_directory save_log restore_log read_bytes write_bytes
	  cut_file file_at build_library build_program
	  use_faults set_fault clear_faults fault_hits struck_pid set_clock start_with_faults
	  configured long_run server_version
	));

my $waiting = 0;

my %default_conf = (
	shared_preload_libraries  => 'grouplog',
	fsync                     => 'on',
	log_statement             => 'none',
	autovacuum                => 'off',
	max_connections           => 60,
	'grouplog.segment_size'   => '1MB',
	'grouplog.buffers'        => '256kB',
	'grouplog.min_free_space' => '0');

# The tests run for each of these, which the environment names; what a test sets
# itself wins.
foreach my $setting (qw(io_method sync_method))
{
	my $value = $ENV{ 'GROUPLOG_' . uc $setting };

	$default_conf{"grouplog.$setting"} = $value if defined $value && $value ne '';
}

# What the environment says of a setting, or undef.
sub configured
{
	my ($setting) = @_;

	return $default_conf{"grouplog.$setting"};
}

# Tests that are worth more when they take longer: GROUPLOG_TEST_LONG=1.
sub long_run
{
	return ($ENV{GROUPLOG_TEST_LONG} // 0) > 0;
}

# The major version of the PostgreSQL under test.
my ($server_version) = `pg_config --version` =~ /^PostgreSQL (\d+)/;

sub server_version
{
	return $server_version;
}

# PostgreSQL 19 writes eight digits behind the slash.
$Ledger::lsn_format = '%X/%08X' if $server_version >= 19;

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
	check_settings($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION grouplog')
	  unless exists $options{extension} && !$options{extension};
	return $node;
}

# A setting that the extension does not take is left at its default, with a warning.
sub check_settings
{
	my ($node) = @_;
	my ($warning) = slurp_file($node->logfile) =~ /^(.*WARNING: .*for (?:configuration )?parameter "grouplog\..*)$/m;

	die "a setting of the test is not taken: $warning" if defined $warning;
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

# Until the log is open, or it is known why it does not open.
sub wait_open
{
	my ($node) = @_;

	$node->poll_query_until('postgres', q(SELECT state <> 'starting' FROM grouplog.status))
	  or die 'the log does not open';
}

# It comes a moment after the server, and after another writer.
sub writer_pid
{
	my ($node) = @_;
	my $pid;

	wait_until(
		sub {
			$pid = $node->safe_psql('postgres',
				q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'grouplog writer'));
			return $pid ne '';
		})
	  or die 'there is no writer';
	return $pid;
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

# Cancel a statement once its session waits in the log: for a record, for room, for
# the writer.  Returns (SQLSTATE, whole stderr).
sub cancelled_in_wait
{
	my ($node, $sql) = @_;
	my ($out, $err) = ('', '');
	my $name = 'waiting' . ++$waiting;
	my $session = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose',
			'-d', $node->connstr('postgres') . " application_name=$name", '-c', $sql ],
		'<', \'', '>', \$out, '2>', \$err);

	my $met = wait_until(
		sub {
			return $node->safe_psql('postgres', qq(
				SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
				WHERE application_name = '$name' AND state = 'active' AND wait_event_type = 'Extension')) > 0;
		});
	# whatever it waits for, it must not wait for us
	$session->kill_kill unless $met;
	$session->finish;
	return ('00000', "no wait: $out$err") unless $met;
	return (($err =~ /(?:ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}):/)[0] // '00000', $err);
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
		write_knobs(0, pack 'q l72', 0, (0) x 72);
		return;
	}
	write_knobs(8 + 32 * $_, pack 'l8', (0) x 8) foreach 0 .. 7;
}

sub fault_hits
{
	my ($slot) = @_;

	return unpack 'l', read_bytes($knobs, 8 + 32 * $slot + 28, 4);
}

# The process that a fault has struck last.
sub struck_pid
{
	my ($slot) = @_;

	return unpack 'l', read_bytes($knobs, 8 + 32 * 8 + 4 * $slot, 4);
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
