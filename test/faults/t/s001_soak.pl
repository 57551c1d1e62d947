# H16, H17, H21 and all else at once: a soak, for as long as GROUPLOG_SOAK_SECONDS says (an hour
# if it says nothing), in rounds of a few seconds.
#
# In each round sessions come and go, and a few stay all the time; they append in
# every mode and by every call, payloads from nothing to the limit.  Meanwhile
# they are cancelled and terminated at random, every setting that a reload can
# change is changed, the writer is terminated (in the last two fifths, so that
# one writer's memory can be watched before), readers read, and records are
# given away by recycling and truncate.  After each round the ledger is
# compared with the log: what was acknowledged and not given away is there, what
# was refused is not.  At the end memory, descriptors and bytes on disk must not
# have grown.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use List::Util qw(max min sum shuffle);
use POSIX qw(:sys_wait_h);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $seconds = $ENV{GROUPLOG_SOAK_SECONDS} || 3600;
my $seed = $ENV{GROUPLOG_SOAK_SEED} || time ^ $$;
srand $seed;
note "seed $seed (GROUPLOG_SOAK_SEED), $seconds seconds";

my $limit = 64 * 1024 - 32;
my @modes = qw(batch group adaptive periodic);
my $node = new_node('soak',
	conf => {
		'grouplog.max_size' => '12MB',
		'grouplog.on_full'  => 'recycle',
		log_error_verbosity => 'terse',
		log_min_messages    => 'log',
		log_min_error_statement => 'panic'
	});
my $ledger = new_ledger();
my $control = $node->background_psql('postgres');
my %figure = map { $_ => 0 } qw(rounds acknowledged refused named cancelled terminated reloads writers reads given);
my @problems;

$control->set_query_timer_restart();
$control->query_safe(q(SET application_name = 'control'));
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION grouplog');

sub figure
{
	my ($name, $value) = @_;

	note "figure: soak-$name $value";
}

sub problem
{
	push @problems, @_;
	diag $_ foreach @problems <= 20 ? @_ : ();
}

# ---- scripts: one statement a line, so that an error's line says which ----

sub payload_sql
{
	my ($client, $number) = @_;

	return sprintf q('%d-%d:' || repeat('%s', %d)), $client, $number, chr(97 + $number % 26),
	  $ledger->{size}{$client}->($number);
}

# Sizes: nothing beside the key, small, some hundreds, now and then thousands or the very limit.
sub sizes_of
{
	my ($client) = @_;

	return sub {
		my ($number) = @_;
		my $dice = ($number * 7919 + $client * 104729) % 1000;

		return $limit - length "$client-$number:" if $dice < 3;
		return $dice * 40 if $dice < 30;
		return 0 if $dice < 80;
		return $dice % 450;
	};
}

my $next_client = 500_000;

# { client, path, lines => [ { kind, first, last } ] }, index: line number
sub write_script
{
	my ($statements, $path) = @_;
	my $client = $next_client++;
	my $number = 0;
	my @lines = ({}, {});

	$ledger->{size}{$client} = sizes_of($client);
	open my $file, '>', $path or die "$path: $!";
	print $file "\\set VERBOSITY verbose\n";
	foreach (1 .. $statements)
	{
		my $mode = $modes[ rand @modes ];
		my $dice = rand 100;
		my $first = $number + 1;
		my ($kind, $sql);

		if ($dice < 4)
		{
			my $count = 1 + int rand 40;

			$kind = 'batch';
			$number += $count;
			my @payloads = map { payload_sql($client, $_) } $first .. $number;
			$sql = "SELECT '$client-$number', grouplog."
			  . (rand() < 0.5
				? 'append_batch_text(ARRAY[' . join(', ', @payloads) . ']'
				: 'append_batch(ARRAY[' . join(', ', map { "convert_to($_, 'UTF8')" } @payloads) . ']')
			  . (rand() < 0.5 ? ", '$mode')" : ')');
		}
		elsif ($dice < 6)
		{
			$kind = 'flush';
			$sql = q(SELECT 'flush', grouplog.flush());
		}
		elsif ($dice < 7)
		{
			# one byte more than a record can have
			$kind = 'large';
			$number++;
			$sql = "SELECT '$client-$number', grouplog.append(rpad('$client-$number:', " . ($limit + 1) . ", 'x'))";
		}
		elsif ($dice < 25)
		{
			$kind = 'async';
			$number++;
			my $payload = payload_sql($client, $number);
			my $wait = rand() < 0.3 ? q(, '1 ms') : '';
			$sql = rand() < 0.5
			  ? "SELECT 'async', '$client-$number', grouplog.append_async($payload)"
			  : "WITH a AS MATERIALIZED (SELECT grouplog.append_async($payload) AS lsn)"
			  . " SELECT '$client-$number', lsn FROM a WHERE grouplog.wait_durable(lsn$wait)";
		}
		else
		{
			$kind = 'append';
			$number++;
			my $payload = payload_sql($client, $number);
			$payload = "convert_to($payload, 'UTF8')" if rand() < 0.3;
			$sql = rand() < 0.6
			  ? "SELECT '$client-$number', grouplog.append($payload, '$mode')"
			  : "SELECT '$client-$number', grouplog.append($payload)";
			$sql = "SET grouplog.sync_mode = '$mode'; $sql" if rand() < 0.1;
			$sql = "SET grouplog.group_window = '" . (50 + int rand 3000) . "us'; $sql" if rand() < 0.05;
			$sql = "BEGIN; $sql; ROLLBACK" if rand() < 0.1;
		}
		print $file "$sql;\n";
		push @lines, { kind => $kind, first => $first, last => $number };
	}
	close $file;
	$ledger->{sent}{$client} = $number;
	return { client => $client, path => $path, lines => \@lines };
}

# ---- sessions ----

sub start_psql
{
	my ($name, $database, @arguments) = @_;
	my $out = scratch("$name.out");
	my $err = scratch("$name.err");

	pipe(my $read, my $write) or die "pipe: $!";
	my $pid = fork // die "fork: $!";
	if ($pid == 0)
	{
		close $write;
		$ENV{PGAPPNAME} = $name;
		open STDIN, '<&', $read;
		open STDOUT, '>', $out;
		open STDERR, '>', $err;
		exec 'psql', '-XAtq', '-F', ' ', '-d', $node->connstr($database), @arguments or POSIX::_exit(1);
	}
	close $read;
	$write->autoflush(1);
	return { pid => $pid, name => $name, out => $out, err => $err, input => $write, out_at => 0, err_at => 0 };
}

sub read_from
{
	my ($session, $what) = @_;
	my $text = slurp_file($session->{$what}, $session->{"${what}_at"});

	# whole lines; a terminated session's last one may be torn
	$text =~ s/[^\n]*\z//;
	$session->{"${what}_at"} += length $text;
	return $text;
}

my @stay = map { start_psql("stay$_", 'postgres') } 1 .. 3;
my $reader = start_psql('reader', 'postgres');

sub run_in
{
	my ($session, $path, $round) = @_;

	print { $session->{input} } "\\i $path\nSELECT 'done', $round;\n";
}

sub wait_done
{
	my ($session, $round) = @_;

	return wait_until(
		sub {
			$session->{text} .= read_from($session, 'out');
			return $session->{text} =~ /^done $round$/m;
		});
}

# ---- what a session was told ----

my %in_batch;    # key => { lsn: of the batch's last record, floor: it lies beyond this LSN }

sub take_in
{
	my ($script, $out, $err) = @_;
	my $client = $script->{client};
	my $floor = 0;
	my (%async, %answered);

	foreach my $line (split /\n/, $out)
	{
		if ($line =~ m{^async \d+-(\d+) (\S+/\S+)$})
		{
			$async{$1} = $2;
		}
		elsif ($line =~ m{^flush (\S+/\S+)$})
		{
			# all that this session had appended before is durable
			foreach (keys %async)
			{
				note_append($ledger, $client, $_, 0, $async{$_});
				$figure{acknowledged}++;
			}
			%async = ();
		}
		elsif ($line =~ m{^(\d+)-(\d+) (\S+/\S+)$} && $1 == $client)
		{
			note_append($ledger, $client, $2, 0, $3);
			$answered{$2} = { lsn => lsn_number($3), floor => $floor };
			$floor = lsn_number($3);
			$figure{acknowledged}++;
		}
		elsif ($line !~ /^done \d+$/)
		{
			problem("client $client was told: $line");
		}
	}

	# the records of an acknowledged batch before its last one
	foreach my $statement (@{ $script->{lines} })
	{
		next unless ($statement->{kind} // '') eq 'batch' && $answered{ $statement->{last} };
		foreach ($statement->{first} .. $statement->{last} - 1)
		{
			$in_batch{"$client-$_"} = $answered{ $statement->{last} };
			$figure{acknowledged}++;
		}
	}

	# errors: "psql:FILE:LINE: ERROR:  SQLSTATE: text", more lines
	foreach my $block (split /^(?=psql:)/m, $err)
	{
		if ($block !~ /^psql:[^:]+:(\d+): (?:ERROR|FATAL):  (\w{5}): /)
		{
			# terminated; or a BEGIN was cancelled, and so its ROLLBACK has nothing to end
			problem("client $client: $block")
			  unless $block =~ /^psql:[^:]+:\d+: (?:server closed the connection|error: connection to server was lost|no connection to the server|fatal:|WARNING:  25P01: )/
			  || $block =~ /^\s*$/;
			next;
		}
		my ($state, $statement) = ($2, $script->{lines}[$1]);
		my @numbers = ($statement->{first} // 1) .. ($statement->{last} // 0);

		if ($state !~ /^(?:57014|57P01|53100|53400|54000)$/
			|| ($state eq '54000') != (($statement->{kind} // '') eq 'large') && $state !~ /^57|^53/)
		{
			problem("client $client: $block");
		}
		elsif ($block =~ m{waiting for the record at LSN ([0-9A-F]+/[0-9A-F]+)})
		{
			# cancelled: "may still become durable", and without a crash it does
			note_append($ledger, $client, $numbers[-1], 0, $1) if @numbers;
			$figure{named}++;
		}
		elsif ($block =~ m{(\d+) records of the batch are in the log, the last one at LSN (\S+)})
		{
			my ($count, $lsn) = ($1, $2);

			note_append($ledger, $client, $numbers[ $count - 1 ], 0, $lsn);
			note_refused($ledger, $client, $_, 0) foreach @numbers[ $count .. $#numbers ];
			$figure{named}++;
		}
		elsif ($state =~ /^5[34]/)
		{
			# refused: nothing was appended
			note_refused($ledger, $client, $_, 0) foreach @numbers;
			$figure{refused}++;
		}
	}
}

# ---- disturbances ----

my %settings = (
	'grouplog.sync_period'           => sub { 5 + int(rand 300) . 'ms' },
	'grouplog.sync_lag_limit'        => sub { 5 + int(rand 600) . 'ms' },
	'grouplog.group_bytes'           => sub { 4 * 2**int(rand 9) . 'kB' },
	'grouplog.max_size'              => sub { 8 + int(rand 17) . 'MB' },
	'grouplog.on_full'               => sub { rand() < 0.3 ? 'refuse' : 'recycle' },
	'grouplog.log_sync_min_duration' => sub { (-1, 0, 1, 1000)[ rand 4 ] },
	'grouplog.group_window'          => sub { 50 + int(rand 5000) . 'us' },
	'grouplog.sync_mode'             => sub { $modes[ rand @modes ] },
	'fsync'                          => sub { rand() < 0.5 ? 'off' : 'on' });
my $largest_budget = 24 * 1024 * 1024;
{
	my @reloadable = split /\n/, $node->safe_psql('postgres',
		q(SELECT name FROM pg_settings WHERE name LIKE 'grouplog.%' AND context = 'sighup' ORDER BY name));
	is(join(' ', grep { !$settings{$_} && $_ ne 'grouplog.min_free_space' } @reloadable), '',
		'every setting that a reload can change is changed');
}

sub set_and_reload
{
	my (%values) = @_;

	$control->query_safe("ALTER SYSTEM SET $_ = '$values{$_}';") foreach keys %values;
	$control->query_safe('SELECT pg_reload_conf();');
	$figure{reloads}++;
}

sub end_writer
{
	$figure{writers} += $control->query_safe(
		q(SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'grouplog writer';));
}

sub disturb
{
	my ($checked, $writers) = @_;
	my $dice = rand 100;
	my $active = q(FROM pg_stat_activity WHERE query ~ 'grouplog[.]' AND state = 'active' AND application_name ~ );

	if ($dice < 40)
	{
		$figure{cancelled} += $control->query_safe(
			"SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) $active '^(stay|short)' AND random() < 0.4;");
	}
	elsif ($dice < 50)
	{
		$figure{terminated} += $control->query_safe(
			"SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) $active '^short' AND random() < 0.2;");
	}
	elsif ($dice < 75)
	{
		my ($name) = shuffle keys %settings;
		set_and_reload($name => $settings{$name}->());
	}
	elsif ($dice < 78)
	{
		set_and_reload('grouplog.min_free_space' => '2147483647MB');
		sleep 0.05;
		set_and_reload('grouplog.min_free_space' => '0');
	}
	elsif ($dice < 80)
	{
		$control->query_safe("SELECT grouplog.truncate('$checked');") if $checked;
	}
	elsif ($dice < 83 && $writers)
	{
		end_writer();
	}
}

# ---- figures of processes and files ----

sub anonymous_kb
{
	my ($pid) = @_;

	return slurp_file("/proc/$pid/smaps_rollup") =~ /^Anonymous:\s+(\d+) kB/m ? $1 : 0;
}

sub descriptors
{
	my ($pid) = @_;

	return scalar(my @files = glob "/proc/$pid/fd/*");
}

sub bytes_on_disk
{
	return sum map { (-s log_directory($node) . "/$_") // 0 } grep { !/^\./ } slurp_dir(log_directory($node));
}

my %series;    # name => [ values ]

sub sample
{
	my ($writer_stays) = @_;
	my $writer = $node->safe_psql('postgres', 'SELECT writer_pid FROM grouplog.status');

	# a new writer begins with few
	if ($writer_stays)
	{
		push @{ $series{'writer: memory, kB'} }, anonymous_kb($writer);
		push @{ $series{'writer: descriptors'} }, descriptors($writer);
	}
	foreach my $session (@stay, $reader)
	{
		push @{ $series{"$session->{name}: memory, kB"} }, anonymous_kb($session->{backend});
		push @{ $series{"$session->{name}: descriptors"} }, descriptors($session->{backend});
	}
	push @{ $series{'bytes on disk, kB'} }, bytes_on_disk() / 1024;
	push @{ $series{'files'} }, scalar(my @files = grep { !/^\./ } slurp_dir(log_directory($node)));
}

foreach my $session (@stay, $reader)
{
	$session->{text} = '';
	print { $session->{input} } "SELECT 'done', pg_backend_pid();\n";
	wait_until(sub { $session->{text} .= read_from($session, 'out'); $session->{text} =~ /^done (\d+)$/m })
	  or BAIL_OUT("session $session->{name} does not start");
	($session->{backend}) = $session->{text} =~ /^done (\d+)$/m;
}

# ---- a round ----

my $checked = '';    # all before this LSN is compared already
my $checked_records = 0;

# The other database: empty payloads, and the largest, both without a key.  In a
# flood, so many of these that records go before they are compared.
sub write_other_script
{
	my ($path, $flood) = @_;

	open my $file, '>', $path or die "$path: $!";
	foreach (1 .. ($flood ? 500 : 60))
	{
		my $mode = $modes[ rand @modes ];
		print $file rand() < ($flood ? 0.05 : 0.8)
		  ? "SELECT 0, grouplog.append('', '$mode');\n"
		  : "SELECT $limit, grouplog.append(decode(repeat('ff', $limit), 'hex'), '$mode');\n";
	}
	close $file;
}

sub compare
{
	my ($round, @told_other) = @_;
	my $oldest = status($node, 'oldest_lsn');
	my $after = $checked && lsn_number($checked) >= lsn_number($oldest) ? $checked : lsn_text(lsn_number($oldest) - 1);
	my @gone = grep { $ledger->{acked}{$_}{lsn} < lsn_number($oldest) } keys %{ $ledger->{acked} };
	my @early = grep { $checked && $ledger->{acked}{$_}{lsn} <= lsn_number($checked) } keys %{ $ledger->{acked} };

	is(scalar @early, 0, 'no LSN at or below one that was there before');
	$figure{given} += @gone;
	delete @{ $ledger->{acked} }{@gone};
	my $start = lsn_number($after);
	foreach (keys %in_batch)
	{
		$ledger->{acked}{$_} = { lsn => $in_batch{$_}{lsn}, time => time, batch => 1 }
		  if $in_batch{$_}{floor} > $start;
	}
	$checked_records += check_ledger($node, $ledger, "round $round", after => $after, dbname => 'postgres');

	# the other database
	my %lengths = map { split / /, $_ } split /\n/, $node->safe_psql('other',
		"SELECT lsn || ' ' || length(payload) FROM grouplog.read('$after')");
	my @wrong = grep { lsn_number($_->[1]) > $start && ($lengths{ $_->[1] } // -1) != $_->[0] } @told_other;
	is(join(' ', map { $_->[1] } @wrong), '', 'the other database: all is there');
	$figure{acknowledged} += @told_other;
	$checked_records += keys %lengths;

	# so that an hour's records need not be remembered
	%in_batch = ();
	$ledger->{$_} = {} foreach qw(acked refused owner size sent);
	$checked = status($node, 'durable_lsn - 1');
}

sub play
{
	my ($round, $writers) = @_;
	my @short;

	set_and_reload('grouplog.on_full' => 'recycle');
	foreach my $session (@stay)
	{
		$session->{text} = '';
		$session->{script} = write_script(400, scratch("$session->{name}.sql"));
		run_in($session, $session->{script}{path}, $round);
	}
	foreach my $i (1 .. 6)
	{
		my $script = write_script(50 + int(rand 800), scratch("short$i.sql"));
		my $session = start_psql("short$i", 'postgres', '-f', $script->{path});

		close $session->{input};
		$session->{script} = $script;
		push @short, $session;
	}
	write_other_script(scratch('other.sql'), $round % 8 == 3);
	my $other = start_psql('shortother', 'other', '-f', scratch('other.sql'));
	close $other->{input};

	# readers: in order, and each payload is one letter again and again
	my $from = $checked || '0/0';
	open my $file, '>', scratch('reader.sql') or die $!;
	print $file qq(\\set VERBOSITY verbose
SELECT 'read', count(*) FILTER (WHERE before >= lsn),
  count(*) FILTER (WHERE replace(substr(payload, strpos(payload, ':') + 1), substr(payload, strpos(payload, ':') + 1, 1), '') <> '')
FROM (SELECT lsn, payload, lag(lsn) OVER () AS before FROM grouplog.read_text('$from')) t;
) x 4 . "SELECT 'verify', count(*) FROM grouplog.verify() WHERE NOT ok;\n";
	close $file;
	$reader->{text} = '';
	run_in($reader, scratch('reader.sql'), $round);

	if ($writers)
	{
		sleep rand;
		end_writer();
	}
	my $end = time + 60;
	while (grep { !process_is_gone($_->{pid}) } @short, $other)
	{
		disturb($checked, $writers);
		sleep 0.01 + rand 0.1;
		last if time > $end && !ok(0, "round $round ends");
	}
	# while the log is compared nothing goes
	set_and_reload('grouplog.min_free_space' => '0', 'grouplog.on_full' => 'refuse', 'fsync' => 'on');
	sleep 0.1;
	foreach my $session (@stay, $reader)
	{
		wait_done($session, $round) or BAIL_OUT("session $session->{name} hangs in round $round");
	}
	waitpid $_->{pid}, 0 foreach @short, $other;

	$node->safe_psql('postgres', q(SET statement_timeout = '120s'; SELECT grouplog.flush()));
	take_in($_->{script}, $_->{text}, read_from($_, 'err')) foreach @stay;
	take_in($_->{script}, read_from($_, 'out'), read_from($_, 'err')) foreach @short;
	foreach my $line (split /\n/, $reader->{text})
	{
		$figure{reads}++;
		problem("a reader was told: $line") unless $line =~ /^(?:read 0 0|verify 0|done \d+)$/;
	}
	foreach my $block (split /^(?=psql:)/m, read_from($reader, 'err'))
	{
		problem("a reader: $block") unless $block =~ /^psql:[^:]+:\d+: ERROR:  55000: records after LSN .* were removed/;
	}
	compare($round, map { [ split / / ] } split /\n/, read_from($other, 'out'));
	return;
}

my $begin = time;
for (my $round = 1; time - $begin < $seconds || $round <= 3; $round++)
{
	my $writer_stays = time - $begin < 0.6 * $seconds;

	$figure{rounds}++;
	subtest "round $round" => sub { play($round, !$writer_stays) };
	sample($writer_stays);
}

# ---- at the end ----

is(join("\n", map { substr $_, 0, 200 } @problems[ 0 .. min(9, $#problems) ]), '', 'sessions were told nothing strange');
cmp_ok($figure{$_}, '>', 0, "there were some: $_") foreach qw(acknowledged cancelled terminated reloads writers reads named given);
is($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.verify() WHERE NOT ok'), 0, 'verify finds nothing wrong');

@figure{qw(recycled removed)} = split /\|/, $node->safe_psql('postgres', 'SELECT segments_recycled, segments_removed FROM grouplog.stat');
cmp_ok($figure{$_}, '>', 0, "there were some: files $_") foreach qw(recycled removed);

# crash; the last round's records were flushed
my $before = $node->safe_psql('postgres', 'SELECT md5(string_agg(lsn || payload, NULL ORDER BY lsn)) FROM grouplog.read_text()');
my $position = log_position($node);
$control->quit;
kill_server($node);
kill 'KILL', $_->{pid} foreach @stay, $reader;
waitpid $_->{pid}, 0 foreach @stay, $reader;
$node->start;
is($node->safe_psql('postgres', 'SELECT md5(string_agg(lsn || payload, NULL ORDER BY lsn)) FROM grouplog.read_text()'), $before,
	'after a crash all is as before');

# flat: the last third beside the first
foreach my $name (sort keys %series)
{
	my @values = @{ $series{$name} };
	my $third = max(1, int(@values / 3));
	my $first = sum(@values[ 0 .. $third - 1 ]) / $third;
	my $last = sum(@values[ @values - $third .. $#values ]) / $third;
	my $allowed =
	    $name =~ /memory/       ? $first * 1.25 + 2048
	  : $name =~ /descriptors/  ? $first + 4
	  : $name =~ /kB/           ? max($largest_budget / 1024 + 2 * 1028, $first * 1.25)
	  :                           $first * 1.25 + 20;

	cmp_ok($last, '<=', $allowed, sprintf '%s is flat: %.0f in the first third, %.0f in the last, %.0f at most',
		$name, $first, $last, max @values);
	if ($name =~ /^(?:writer|stay1|bytes)/)
	{
		my $short = $name =~ s/[:,]? /-/gr;

		figure("$short-first-third", sprintf '%.0f', $first);
		figure("$short-last-third", sprintf '%.0f', $last);
	}
}
cmp_ok(max(@{ $series{'bytes on disk, kB'} }), '<=', $largest_budget / 1024 + 2 * 1028, 'the budget is kept, but for what it allows');

# given: by retention, before they could be compared; named: waits that were cancelled
# or terminated, with the LSN of a record that is in the log
figure('seconds', sprintf '%.0f', time - $begin);
figure($_, $figure{$_}) foreach sort keys %figure;
figure('compared', $checked_records);
figure('lost', 0) if Test::More->builder->is_passing;

$node->stop;
done_testing();
