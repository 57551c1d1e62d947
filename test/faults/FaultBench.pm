# FaultBench.pm: disks that fail on purpose, for the scripts in test/faults/t.
#
# To be used before GrouplogTest.  Started as root, the script leaves a helper
# process behind that stays root, and goes on as the user who may run a server
# (FAULTS_USER, or else postgres).  The helper mounts and unmounts for it.  It
# cleans up when the script ends, however that happens: its end of a socket then
# says so.  Run by test/faults/run, each script has its own mount name space, too.
#
# FAULTS_BUILD names the folder with the programs faultfs and logcheck.

package FaultBench;

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);
use IO::Handle;
use IO::Socket::UNIX;
use POSIX qw(:sys_wait_h);
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC);

our @EXPORT = qw(
  as_root as_root_fails fault_mount fault_unmount knob fault_hits_of
  fault_node start_up power_cut_node each_configuration configurations figure
  check_log acked_at
  loop_mount loop_unmount loop_shutdown loop_image log_of check_images ack_marks
);

my ($helper, $helper_pid, $user);
my $checked = 0;    # records that were read and judged

# ---- the helper: what it does as root ----

my (@mounted, %daemon);

# Reads one command a line, its words separated by \x1f; answers "STATUS OUTPUT".
sub serve_as_root
{
	my ($socket) = @_;

	$SIG{$_} = 'IGNORE' foreach qw(INT TERM HUP PIPE);
	open STDIN, '<', '/dev/null';
	open STDOUT, '>', '/dev/null';
	open STDERR, '>&', \*STDOUT;
	chdir '/';
	$socket->autoflush(1);
	while (my $line = <$socket>)
	{
		chomp $line;
		my @words = split /\x1f/, $line;
		my ($status, $output) = obey(@words);

		$output =~ tr/\n/\x1e/;
		print $socket "$status $output\n";
	}
	foreach my $mount (reverse @mounted)
	{
		unmount($mount);
	}
}

sub run_command
{
	my (@words) = @_;

	# as one word each: nothing here is the shell's
	my $pid = open(my $pipe, '-|') // return (1, "fork: $!");
	if ($pid == 0)
	{
		open STDERR, '>&', \*STDOUT;
		exec @words or POSIX::_exit(127);
	}
	my $output = do { local $/; <$pipe> } // '';
	close $pipe;
	return ($? >> 8 || $? & 127, $output);
}

sub mounted_here
{
	my ($mount) = @_;

	open my $mounts, '<', '/proc/self/mounts' or return 0;
	return scalar grep { (split ' ')[1] eq $mount } <$mounts>;
}

sub obey
{
	my ($command, @words) = @_;

	return run_command(@words) if $command eq 'run';
	if ($command eq 'mounted')
	{
		push @mounted, $words[0];
		return (0, '');
	}
	return unmount(@words) if $command eq 'unmount';
	if ($command eq 'faultfs')
	{
		my ($program, $backing, $mount, $socket) = @words;
		my $pid = fork // return (1, "fork: $!");

		if ($pid == 0)
		{
			open STDERR, '>', "$socket.log";
			exec $program, $backing, $mount, $socket or POSIX::_exit(127);
		}
		push @mounted, $mount;
		$daemon{$mount} = $pid;
		foreach (1 .. 500)
		{
			return (0, '') if -S $socket && mounted_here($mount);
			last if waitpid($pid, WNOHANG) == $pid;
			select undef, undef, undef, 0.02;
		}
		return (1, 'faultfs does not mount');
	}
	return (1, "unknown command $command");
}

# A server that was killed may take a moment to let go.
sub unmount
{
	my ($mount) = @_;
	my ($status, $output) = (0, '');

	foreach my $attempt (1 .. 100)
	{
		last if !mounted_here($mount);
		($status, $output) = run_command('umount', $mount);
		last if $status == 0;
		select undef, undef, undef, 0.05;
	}
	if (mounted_here($mount))
	{
		kill 'KILL', $daemon{$mount} if $daemon{$mount};
		run_command('umount', '-l', $mount);
	}
	if (my $pid = delete $daemon{$mount})
	{
		waitpid $pid, 0;
	}
	@mounted = grep { $_ ne $mount } @mounted;
	return ($status, $output);
}

# ---- the script: what it asks for ----

sub ask
{
	print $helper join("\x1f", @_), "\n";
	my $answer = <$helper> // die 'the helper is gone';
	my ($status, $output) = $answer =~ /^(\d+) (.*)$/;

	$output =~ tr/\x1e/\n/;
	return ($status, $output);
}

sub as_root_fails
{
	my ($status, $output) = ask('run', @_);

	return $status == 0 ? '' : $output || "status $status";
}

sub as_root
{
	my ($status, $output) = ask('run', @_);

	$status == 0 or die "@_: $output";
	return $output;
}

# Which figure each script has to tell, in any case.
END
{
	figure('records-checked', $checked) if $checked > 0;
}

sub program
{
	my ($name) = @_;
	my $path = ($ENV{FAULTS_BUILD} // abs_path(dirname(__FILE__)) . '/../../build/faults') . "/$name";

	-x $path or die "$path is not built";
	return $path;
}

# A line that test/faults/run collects.
sub figure
{
	my ($name, $value) = @_;

	Test::More::note("figure: $name $value");
}

# ---- the failing file system ----

sub fault_mount
{
	my ($name) = @_;
	my $root = GrouplogTest::scratch($name);
	my %fs = (
		name    => $name,
		backing => "$root/backing",
		mount   => "$root/mount",
		# a socket's path must be short
		socket => PostgreSQL::Test::Utils::tempdir_short() . '/s');

	$root = abs_path($PostgreSQL::Test::Utils::tmp_check) . "/$name";
	($fs{backing}, $fs{mount}) = ("$root/backing", "$root/mount");
	mkdir $_ or die "$_: $!" foreach $root, $fs{backing}, $fs{mount};
	my ($status, $output) = ask('faultfs', program('faultfs'), $fs{backing}, $fs{mount}, $fs{socket});
	$status == 0 or die "faultfs: $output " . PostgreSQL::Test::Utils::slurp_file("$fs{socket}.log");
	as_root('chown', $user, $fs{mount});
	return \%fs;
}

sub fault_unmount
{
	my ($fs) = @_;
	my ($status, $output) = ask('unmount', $fs->{mount});

	$status == 0 or die "umount: $output";
}

# What the file system answers to a command (knobs.h).
sub knob
{
	my ($fs, $command) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $fs->{socket}) or die "$fs->{socket}: $!";

	print $socket "$command\n";
	my $answer = <$socket> // '';
	chomp $answer;
	$answer =~ s/^ok ?// or die "$command: $answer";
	return $answer;
}

sub fault_hits_of
{
	my ($fs, $slot) = @_;

	return knob($fs, "hits $slot");
}

# ---- servers on them ----

# ([name, { settings }], ...): both I/O methods with both sync methods, or those
# that FAULTS_CONFIGURATIONS names ("io_uring,fdatasync sync,open_datasync").
sub configurations
{
	my @all;

	foreach my $io (qw(io_uring sync))
	{
		foreach my $sync (qw(open_datasync fdatasync))
		{
			next if $ENV{FAULTS_CONFIGURATIONS}
			  && index(" $ENV{FAULTS_CONFIGURATIONS} ", " $io,$sync ") < 0;
			push @all,
			  [ "$io, $sync", { 'grouplog.io_method' => $io, 'grouplog.sync_method' => $sync } ];
		}
	}
	return @all;
}

# each_configuration(NAME, CODE, mount => 0): CODE->(name, node, fs, ledger) with
# a server and a failing file system of their own.
sub each_configuration
{
	my ($name, $code, %conf) = @_;

	foreach my $configuration (configurations())
	{
		my ($title, $settings) = @$configuration;
		my $unique = $name . '_' . $title =~ s/\W+/_/gr;
		my $fs = fault_mount("fs_$unique");
		my $node = fault_node($unique, $fs, %$settings, %conf);

		$code->($title, $node, $fs, GrouplogTest::new_ledger());
		knob($fs, 'clear');
		knob($fs, 'power');
		knob($fs, 'readonly 0');
		knob($fs, 'space -1 ENOSPC');
		$node->stop('immediate', fail_ok => 1);
		fault_unmount($fs);
		$node->clean_node;
	}
}

sub fault_node
{
	my ($name, $fs, %conf) = @_;

	return GrouplogTest::new_node($name,
		conf => {
			'grouplog.directory'      => "$fs->{mount}/log",
			'grouplog.sync_period'    => '100ms',
			'grouplog.sync_lag_limit' => '200ms',
			%conf
		});
}

# The ledger, and every byte of the files.
sub check_log
{
	my ($node, $ledger, $name, %options) = @_;
	my $found = GrouplogTest::check_ledger($node, $ledger, $name, %options);

	$checked += $found;
	Test::More::is($node->safe_psql('postgres', q(SELECT string_agg(file || ' ' || reason, ', ') FROM grouplog.verify() WHERE NOT ok)),
		'', "$name: verify finds nothing wrong");
	return $found;
}

sub log_of
{
	my ($fs) = @_;

	return "$fs->{mount}/log";
}

# Until recovery has said something.
sub start_up
{
	my ($node) = @_;

	$node->start;
	Test::More::ok(GrouplogTest::wait_until(sub { GrouplogTest::status($node, 'state') ne 'starting' }),
		'recovery ends');
}

# The power goes (unless it has gone already), and comes back.
sub power_cut_node
{
	my ($node, $fs, $keep, $unit) = @_;

	knob($fs, "cut $keep $unit") if defined $keep;
	GrouplogTest::kill_server($node);
	knob($fs, 'power');
	knob($fs, 'clear');
	start_up($node);
}

# ---- real file systems on loop devices ----

my %mkfs = (
	ext4 => [qw(mkfs.ext4 -q -F)],
	xfs  => [qw(mkfs.xfs -q -f -m reflink=1)]);

# loop_mount(NAME, type => 'xfs', megabytes => N, in => FOLDER, image => FILE)
sub loop_mount
{
	my ($name, %options) = @_;
	my $root = abs_path($PostgreSQL::Test::Utils::tmp_check) . "/$name";
	my $type = $options{type} // 'ext4';
	my %fs = (name => $name, type => $type, mount => "$root.mount",
		image => $options{image} // ($options{in} // dirname($root)) . "/$name.img");

	if (!$options{image})
	{
		as_root('truncate', '-s', ($options{megabytes} // 320) . 'M', $fs{image});
		as_root(@{ $mkfs{$type} }, $fs{image});
	}
	as_root('mkdir', '-p', $fs{mount});
	loop_remount(\%fs);
	as_root('chown', $user, $fs{mount}) unless $options{image};
	return \%fs;
}

# The mount command detaches the loop device itself, when it is unmounted.
sub loop_remount
{
	my ($fs) = @_;

	# told first: should we end within the mount, the helper undoes it
	ask('mounted', $fs->{mount});
	# a clone has the identity of its original
	as_root('mount', '-t', $fs->{type}, '-o', $fs->{type} eq 'xfs' ? 'loop,nouuid' : 'loop',
		$fs->{image}, $fs->{mount});
}

sub loop_unmount
{
	my ($fs) = @_;
	my ($status, $output) = ask('unmount', $fs->{mount});

	$status == 0 or die "umount: $output";
}

# A power cut for real: the file system stops, with what the disk has by now.
sub loop_shutdown
{
	my ($node, $fs) = @_;

	as_root('xfs_io', '-x', '-c', 'shutdown', $fs->{mount});
	GrouplogTest::kill_server($node);
	loop_unmount($fs);
	loop_remount($fs);
	start_up($node);
}

# What the disk has at this moment.
sub loop_image
{
	my ($fs, $copy) = @_;

	as_root('cp', '--reflink=always', $fs->{image}, $copy);
}

# ---- crash images ----

# How much each client of the loads has been told by now.
sub ack_marks
{
	my (@loads) = @_;
	my %marks;

	foreach my $load (@loads)
	{
		foreach my $client (keys %{ $load->{clients} })
		{
			$marks{$client} = -s $load->{clients}{$client}{out} // 0;
		}
	}
	return \%marks;
}

# What those marks stand for: key => LSN.
sub acked_at
{
	my ($loads, $marks) = @_;
	my %acked;

	foreach my $load (@$loads)
	{
		foreach my $client (keys %{ $load->{clients} })
		{
			my $text = PostgreSQL::Test::Utils::slurp_file($load->{clients}{$client}{out});

			$text = substr $text, 0, $marks->{$client} // 0;
			$acked{$1} = $2 while $text =~ /^acked (\d+-\d+) ([0-9A-F]+\/[0-9A-F]+) [0-9.]+\n/mg;
		}
	}
	return \%acked;
}

# check_images(LEDGER, LOADS, [ [ folder, marks ], ... ]): what is wrong with
# them, as a list of texts; how many acknowledged records were looked for; and how
# many records each image has.
sub check_images
{
	my ($ledger, $loads, @images) = @_;
	my (@wrong, @counts);
	my $looked_for = 0;

	foreach my $image (@images)
	{
		my ($folder, $marks) = @$image;
		my $acked = acked_at($loads, $marks);
		my ($verdict, %found, $last);

		open my $pipe, '-|', program('logcheck'), $folder or die "logcheck: $!";
		while (my $line = <$pipe>)
		{
			if ($line =~ /^verdict (.*)$/)
			{
				$verdict = $1;
				next;
			}
			# LSN, key, length of the rest, whether that is all the same letter
			my ($lsn, $key, $size, $letter) = split ' ', $line;
			my ($client, $number) = $key =~ /^(\d+)-(\d+)$/ or do { push @wrong, "$folder: $line"; next };

			push @wrong, "$folder: $key is there twice" if exists $found{$key};
			push @wrong, "$folder: $key is not what was sent"
			  if !$ledger->{size}{$client}
			  || $size != $ledger->{size}{$client}->($number)
			  || ($size > 0 && $letter ne chr(97 + $number % 26));
			push @wrong, "$folder: $key is out of order"
			  if defined $last && GrouplogTest::lsn_number($lsn) <= $last;
			$last = GrouplogTest::lsn_number($lsn);
			$found{$key} = $lsn;
		}
		close $pipe or push @wrong, "$folder: logcheck says $?";
		push @wrong, "$folder: recovery says " . ($verdict // 'nothing')
		  if !defined $verdict || $verdict !~ /^(new|clean|unclean|torn)\b/;
		foreach my $key (sort keys %$acked)
		{
			$looked_for++;
			push @wrong, "$folder: $key at $acked->{$key} is lost" if ($found{$key} // '') ne $acked->{$key};
		}
		push @counts, scalar keys %found;
	}
	return (\@wrong, $looked_for, @counts);
}

# ---- when the script begins, and is still root ----

{
	$> == 0 or die "the fault bench needs root: run test/faults/run\n";
	$user = $ENV{FAULTS_USER} // 'postgres';
	my ($uid, $gid) = (getpwnam $user)[ 2, 3 ];
	defined $uid or die "there is no user $user\n";

	socketpair($helper, my $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "socketpair: $!";
	$helper_pid = fork // die "fork: $!";
	if ($helper_pid == 0)
	{
		close $helper;
		serve_as_root($other);
		POSIX::_exit(0);
	}
	close $other;
	$helper->autoflush(1);

	$( = $gid;
	$) = "$gid $gid";
	($<, $>) = ($uid, $uid);
	$ENV{HOME} = (getpwnam $user)[7];

	# so that END blocks run, which stop the servers
	$SIG{$_} = sub { exit 1 } foreach qw(INT TERM HUP);
}

1;
