# Reading streams: bounded memory, nothing on disk, from any place.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $count = 300_000;
my $node = new_node('reader',
	conf => {
		'grouplog.segment_size' => '16MB',
		'grouplog.buffers'      => '4MB',
		work_mem                => '1MB',
		shared_buffers          => '16MB',
		jit                     => 'off',
		log_temp_files          => 0
	});

$node->safe_psql('postgres', qq(
	DO \$\$ BEGIN FOR i IN 0 .. @{[ $count / 1000 - 1 ]} LOOP
		PERFORM grouplog.append_batch_text(ARRAY(SELECT (i * 1000 + j) || ':' || repeat('x', 200) FROM generate_series(1, 1000) j), 'periodic');
	END LOOP; END \$\$;
	SELECT grouplog.flush();));

# resident memory that is the backend's own, in kB
sub memory_of
{
	my ($pid) = @_;

	return $1 if slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m;
	return 0;
}

my $position = log_position($node);
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');

$session->query_safe('SELECT * FROM grouplog.read(max_records => 1)');
my $start = memory_of($pid);

# ---- the whole log ----
is($session->query_safe('SELECT count(*), sum(length(payload)) > 0 FROM grouplog.read()'), "$count|t", 'all records are counted');
cmp_ok(memory_of($pid) - $start, '<', 50 * 1024, '... in bounded memory');
is($session->query_safe(q(SELECT count(*) FROM grouplog.read_text() WHERE payload LIKE '%7:x%')), $count / 10, 'a filter over all');
is($session->query_safe(q(SELECT string_agg(split_part(payload, ':', 1), ' ') FROM (SELECT payload FROM grouplog.read_text() LIMIT 3) t)),
	'1 2 3', 'LIMIT');
is($session->query_safe(q(SELECT max(split_part(payload, ':', 1)::int) FROM grouplog.read_text(max_records => 12345))), 12345, 'max_records');
is($session->query_safe('SELECT count(*) FROM grouplog.read(max_records => 0)'), 0, 'max_records 0');
cmp_ok(memory_of($pid) - $start, '<', 50 * 1024, '... all that in bounded memory');

# LIMIT 1 reads one record: no scan of millions of calls stands in its plan
like($session->query_safe('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM grouplog.read() LIMIT 1'),
	qr/ProjectSet \(actual rows=1(?:\.00)? /, 'LIMIT 1 asks for one record');

# ---- cursors ----
$session->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT lsn, payload FROM grouplog.read_text()');
is($session->query_safe(q(FETCH 1000 FROM c)) =~ tr/\n//, 999, 'a cursor');
like($session->query_safe(q(FETCH 1 FROM c)), qr/\|1001:x/, '... goes on where it was');
$session->query_safe('MOVE 200000 IN c');
like($session->query_safe(q(FETCH 1 FROM c)), qr/\|201002:x/, '... far ahead');
$session->query_safe(q(SELECT grouplog.append('later:')));
$session->query_safe('CLOSE c; COMMIT');
my $descriptors = () = glob "/proc/$pid/fd/*";
foreach (1 .. 20)
{
	$session->query_safe('SELECT * FROM grouplog.read() LIMIT 1');
	$session->query_safe('BEGIN; DECLARE d CURSOR FOR SELECT * FROM grouplog.read(); FETCH 1 FROM d; ROLLBACK');
	$session->query('SELECT 1 / (length(payload) - 202) FROM grouplog.read()');
	$session->{stderr} = '';
}
my $descriptors_then = () = glob "/proc/$pid/fd/*";
cmp_ok($descriptors_then, '<=', $descriptors + 2, 'no file is left open');
cmp_ok(memory_of($pid) - $start, '<', 50 * 1024, '... no memory, either');

# ---- a read in a function, in a join, in a subselect, repeated ----
is($session->query_safe(q(SELECT count(*) FROM generate_series(1, 50) i, LATERAL (SELECT * FROM grouplog.read(max_records => i)) r)),
	50 * 51 / 2, 'LATERAL');
is($session->query_safe(q(SELECT count(*) FROM (SELECT * FROM grouplog.read() LIMIT 100) a JOIN (SELECT * FROM grouplog.read() LIMIT 50) b USING (lsn))),
	50, 'a join of two reads');

unlike(log_since($node, $position), qr/temporary file/, 'no temporary file was written by any of this');

# ---- cancel ----
{
	my ($state) = sql_error($node, q(SET statement_timeout = '100ms'; SELECT count(*) FROM grouplog.read() a, grouplog.read() b));
	is($state, '57014', 'a read can be cancelled');
	($state) = sql_error($node, q(SET statement_timeout = '20ms'; SELECT count(*) FROM grouplog.verify(), grouplog.verify() v, grouplog.verify() w, grouplog.verify() x, generate_series(1, 100000)));
	is($state, '57014', 'so can verify');

	# records of another database are passed over, and that can be cancelled, too
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	$node->safe_psql('other', 'CREATE EXTENSION grouplog');
	is($node->safe_psql('other', 'SELECT count(*) FROM grouplog.read()'), 0, 'a database without records reads none');
	($state) = sql_error($node, q(SET statement_timeout = '10ms'; SELECT count(*) FROM generate_series(1, 100), LATERAL (SELECT * FROM grouplog.read(max_records => 1 + generate_series)) r),
		dbname => 'other');
	is($state, '57014', '... which can be cancelled');
}

# ---- where a read begins ----
{
	my @lsns = split /\n/, $node->safe_psql('postgres', 'SELECT lsn FROM grouplog.read(max_records => 5)');
	my $first_after = sub { $node->safe_psql('postgres', "SELECT lsn FROM grouplog.read($_[0], 1)") };

	is($first_after->('NULL'), $lsns[0], 'after NULL: the first record');
	is($first_after->(q('0/0')), $lsns[0], 'after 0/0: the first record');
	is($first_after->(q('0/1')), $lsns[0], 'after an LSN before the log: the first record');
	is($first_after->("'$lsns[1]'"), $lsns[2], 'after a record: the next one');
	is($first_after->(sprintf "'%s'", lsn_text(lsn_number($lsns[1]) + $_)), $lsns[2], "after an LSN $_ bytes into a record: the next one")
	  foreach 1, 31, 32, 33, 64, 100;
	is($first_after->(sprintf "'%s'", lsn_text(lsn_number($lsns[1]) - $_)), $lsns[1], "after an LSN $_ bytes before a record: that one")
	  foreach 1, 32;

	my $last = $node->safe_psql('postgres', 'SELECT max(lsn) FROM grouplog.read()');
	is($first_after->("'$last'"), '', 'after the last record: none');
	my $end = status($node, 'insert_lsn');
	is($first_after->("'$end'"), '', 'after the end: none');
	my ($state, $message) = sql_error($node, sprintf "SELECT * FROM grouplog.read('%s')", lsn_text(lsn_number($end) + 1));
	is($state, '22023', 'past the end: an error');
	like($message, qr/past the end.*HINT/s, '... with a hint');
	foreach my $bad ('-1', '-9223372036854775808')
	{
		($state) = sql_error($node, "SELECT * FROM grouplog.read(NULL, $bad)");
		is($state, '22023', "max_records $bad: an error");
	}

	# removed
	my $middle = $node->safe_psql('postgres', 'SELECT first_lsn FROM grouplog.segments ORDER BY number OFFSET 2 LIMIT 1');
	$session->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT lsn, payload FROM grouplog.read_text(); FETCH 10 FROM c');
	cmp_ok($node->safe_psql('postgres', "SELECT grouplog.truncate('$middle')"), '>', 0, 'truncate frees bytes');
	my ($out, $failed) = $session->query('FETCH ALL FROM c');
	ok($failed, 'a cursor whose files were removed beneath it ends in an error');
	like($session->{stderr}, qr/were removed from the log/, '... a clear one');
	$session->{stderr} = '';
	$session->query('ROLLBACK');
	($state, $message) = sql_error($node, "SELECT * FROM grouplog.read('$lsns[0]')");
	is($state, '55000', 'after a removed record: an error');
	like($message, qr/removed.*HINT/s, '... with a hint');
	cmp_ok(lsn_number($first_after->('NULL')), '>=', lsn_number($middle), 'after NULL: the oldest there is');
	is($node->safe_psql('postgres', "SELECT grouplog.truncate('$middle')"), 0, 'truncate once more: nothing left to free');
	is($node->safe_psql('postgres', "SELECT grouplog.wait_durable('$lsns[0]')"), 't', 'a removed record was durable');
}

$session->quit;

# ---- text that is not valid ----
{
	my $lsn = $node->safe_psql('postgres', q(SELECT grouplog.append('\xff00'::bytea)));
	my ($state, $message) = sql_error($node, 'SELECT count(*) FROM grouplog.read_text()');
	is($state, '22021', 'read_text of bytes that are no text: an error');
	like($message, qr/\Q$lsn\E/, '... that names the LSN');
	is($node->safe_psql('postgres', "SELECT payload FROM grouplog.read() WHERE lsn = '$lsn'"), '\xff00', 'read shows them');
	is($node->safe_psql('postgres', "SELECT count(*) FROM grouplog.read_text('$lsn')"), 0, '... and one goes on after them');
}

$node->stop;
done_testing();
