# A server under valgrind: every SQL function in every mode, errors and cancels,
# the writer stopped and started, a damaged log ended by request.
#
# PostgreSQL built without knowledge of valgrind gives noise of its own; what counts
# here is an error with a frame of grouplog's in its stack.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use GrouplogTest;
use IPC::Run qw(start);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

plan skip_all => 'valgrind is not installed' if system('valgrind --version >/dev/null 2>&1') != 0;

my $source = abs_path(dirname(__FILE__) . '/../../..');
my $logs = scratch('valgrind');
my $timeout = $PostgreSQL::Test::Utils::timeout_default;
my ($server, $server_output);

mkdir $logs or die "$logs: $!" unless -d $logs;

sub start_under_valgrind
{
	my ($node) = @_;
	my $out = '';

	$server_output = \$out;
	$server = start(
		[
			'valgrind', '--quiet', '--trace-children=yes', '--child-silent-after-fork=no',
			'--error-markers=BEGIN,END', '--fullpath-after=', '--num-callers=40',
			"--suppressions=$source/test/faults/valgrind.supp",
			'--vgdb=no', "--log-file=$logs/%p.log",
			$node->config_data('--bindir') . '/postgres', '-D', $node->data_dir
		],
		'<', \undef, '>', $server_output, '2>&1');
	wait_for_server($node) or die "no start: $$server_output";
	$node->_update_pid(1);
	wait_until(sub { ($node->psql('postgres', q(SELECT state <> 'starting' FROM grouplog.status)))[1] eq 't' })
	  or die 'the log does not open';
}

# Like pg_ctl stop, which does not know how slow this server is.
sub stop_under_valgrind
{
	my ($node, $signal) = @_;

	kill $signal, $node->{_pid} or die "kill: $!";
	$server->finish;
	$node->_update_pid(0);
	return $server->result(0);
}

# Statements that must succeed, in one session.
sub works
{
	my ($node, $name, $sql) = @_;
	my ($status, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 1);

	is($status, 0, $name) or diag("$err\n$out");
	return $out;
}

# Statements of which each must fail.
sub fails
{
	my ($node, $name, @statements) = @_;
	my ($status, $out, $err) = $node->psql('postgres', join("\n", map { "$_;" } @statements), on_error_stop => 0);
	my $errors = () = $err =~ /ERROR:/g;

	is($errors, scalar @statements, $name) or diag("$err\n$out");
}

sub every_call
{
	my ($node) = @_;

	foreach my $mode (qw(periodic batch group adaptive))
	{
		works($node, "$mode: appends of every kind", <<"SQL");
SET grouplog.sync_mode = '$mode';
SELECT grouplog.sync_mode();
SELECT grouplog.append('text'), grouplog.append('\\x0001ff'::bytea), grouplog.append('');
SELECT grouplog.append(repeat('x', 5000) || 1, '$mode'), grouplog.append('\\x00'::bytea, '$mode');
SELECT grouplog.append_batch(ARRAY['\\x01', '\\x0203']::bytea[]), grouplog.append_batch(ARRAY['\\x01']::bytea[], '$mode');
SELECT grouplog.append_batch_text(array_agg(repeat('y', i))) FROM generate_series(0, 300) i;
SELECT grouplog.append_batch_text(ARRAY['one', 'two'], '$mode');
SELECT grouplog.append_async('later'), grouplog.append_async('\\x77'::bytea);
SELECT grouplog.wait_durable(grouplog.append_async('waited for')), grouplog.wait_durable(grouplog.append_async('or not'), interval '1 ms');
SELECT grouplog.flush();
SELECT grouplog.set_sync_mode('batch', 'transaction');
SELECT grouplog.set_sync_mode('$mode');
BEGIN;
SELECT grouplog.append('rolled back');
SAVEPOINT a;
SELECT grouplog.append('twice');
ROLLBACK TO a;
ROLLBACK;
SQL
	}
	works($node, 'reads', <<'SQL');
SELECT count(*), sum(length(payload)) FROM grouplog.read();
SELECT * FROM grouplog.read(NULL, 3);
SELECT count(*) FROM grouplog.read((SELECT min(lsn) FROM grouplog.read()), 10);
SELECT lsn FROM grouplog.read() LIMIT 1;
SELECT payload FROM grouplog.read_text() LIMIT 1;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM grouplog.read();
FETCH 5 FROM c;
COMMIT;
SELECT * FROM grouplog.verify();
SQL
	works($node, 'views', join("\n", map { "SELECT * FROM grouplog.$_;" }
			qw(stat stat_latency stat_latency_histogram stat_group stat_sync_mode status segments)));
	works($node, 'statistics are reset', 'SELECT grouplog.stat_reset()');
}

sub errors
{
	my ($node) = @_;

	fails($node, 'errors of every kind', <<'SQL' =~ /^(.+);$/mg);
SELECT grouplog.append(NULL::text);
SELECT grouplog.append('x', 'no such mode');
SELECT grouplog.append(repeat('x', 200000));
SELECT grouplog.append_batch(NULL);
SELECT grouplog.append_batch('{}'::bytea[]);
SELECT grouplog.append_batch_text(ARRAY['a', NULL]);
SELECT grouplog.append_batch_text(ARRAY['a', repeat('x', 200000)]);
SELECT grouplog.append_async(NULL::bytea);
SELECT grouplog.wait_durable('FFFF/0');
SELECT grouplog.wait_durable('0/0');
SELECT * FROM grouplog.read('FFFF/0');
SELECT * FROM grouplog.read_text() WHERE payload = '';
SELECT grouplog.set_sync_mode('no such mode');
SELECT grouplog.set_sync_mode('batch', 'database');
SELECT grouplog.truncate('FFFF/0');
SELECT grouplog.accept_end('0/100000');
SET grouplog.sync_mode = 'x';
SQL
	fails($node, 'cancelled while it waits',
		q(SET statement_timeout = '300ms'; SET grouplog.group_window = '10s'; SELECT grouplog.append('x', 'group')));
	fails($node, 'no write in a read-only transaction',
		q(SET default_transaction_read_only = on; SELECT grouplog.append('x')));

	my ($out, $err) = ('', '');
	my $waiting = start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres'),
			'-c', q(SET grouplog.group_window = '10s'),
			'-c', q(SELECT grouplog.append('terminated', 'group'))
		],
		'<', \undef, '>', \$out, '2>', \$err);
	my $found = $node->poll_query_until('postgres',
		q(SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE query LIKE '%terminated%' AND pid <> pg_backend_pid() AND wait_event_type = 'Extension'));
	ok($found, 'a waiting session was terminated');
	$waiting->finish;
}

# Error blocks with a frame of ours
sub findings
{
	my @found;
	my $processes = 0;

	foreach my $log (glob "$logs/*.log")
	{
		my $text = slurp_file($log);

		$processes++;
		while ($text =~ /BEGIN\n(.*?)END\n/gs)
		{
			my $block = $1;

			push @found, "$log:\n$block"
			  if $block =~ m{(?:at|by) 0x[0-9A-F]+: (?:gl_|grouplog_)} || $block =~ m{\Q$source\E/|grouplog\.so};
		}
	}
	return ($processes, @found);
}

foreach my $method (qw(io_uring sync))
{
	my $node = new_node(
		"valgrind_$method",
		conf => {
			'grouplog.io_method'    => $method,
			'grouplog.sync_method'  => $method eq 'sync' ? 'fdatasync' : 'open_datasync',
			'grouplog.segment_size' => '1MB',
			'grouplog.max_size'     => '5MB',
			'grouplog.on_full'      => 'recycle',
			max_parallel_workers    => 0
		});

	$node->stop;
	start_under_valgrind($node);
	note 'io_method: ' . status($node, 'io_method');
	every_call($node);
	errors($node);

	# files come and go
	works($node, 'several files', <<'SQL');
SELECT grouplog.append(repeat('z', 40000) || i, 'periodic') FROM generate_series(1, 170) i;
SELECT grouplog.flush();
SELECT grouplog.truncate((SELECT max(first_lsn) FROM grouplog.segments)) > 0;
SELECT count(*) FROM grouplog.read();
SQL
	works($node, 'settings are read again', q(SELECT pg_reload_conf()));

	# another writer carries on
	my $pid = writer_pid($node);
	works($node, 'the writer is asked to end', "SELECT pg_terminate_backend($pid)");
	wait_until(sub { my $now = writer_pid($node); defined $now && $now ne '' && $now ne $pid });
	works($node, '... and another one carries on', q(SELECT grouplog.append('after')));
	ok(stop_under_valgrind($node, 'INT') == 0, 'fast shutdown');

	# recovery of a killed log, then of a damaged one
	start_under_valgrind($node);
	works($node, 'appends after a restart', <<'SQL');
SELECT grouplog.append(repeat('d', 3000), 'batch') FROM generate_series(1, 30);
SQL
	stop_under_valgrind($node, 'QUIT');
	my ($file) = reverse segment_files($node);
	write_bytes($file->{path}, 4096 + 6200, 'damage');
	start_under_valgrind($node);
	is(status($node, 'state'), 'corrupt', 'damage is found');
	fails($node, 'a corrupt log takes nothing, and says where it is read', q(SELECT grouplog.append('x')));
	works($node, 'verify a damaged log', 'SELECT * FROM grouplog.verify()');
	my ($lsn) = status($node, 'problem') =~ /at LSN ([0-9A-F]+\/[0-9A-F]+)/;
	works($node, 'it is ended by request', "SELECT grouplog.accept_end('$lsn')");
	works($node, '... and goes on', q(SELECT grouplog.append('on')));
	ok(stop_under_valgrind($node, 'INT') == 0, 'fast shutdown');

	my ($processes, @found) = findings();
	cmp_ok($processes, '>', 10, "$method: processes under valgrind");
	is(scalar @found, 0, "$method: no error of grouplog's") or diag(join "\n", @found[0 .. ($#found < 5 ? $#found : 5)]);
	note "figure: valgrind processes $processes";
}

done_testing();
