# Appends inside whatever SQL wraps around them, in each mode: what the manual
# says is there, in order, and nothing leaks.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('constructs', conf => { max_prepared_transactions => 10 });

$node->safe_psql('postgres', 'CREATE DATABASE other');
foreach my $database ('postgres', 'other')
{
	$node->safe_psql($database, q(
		CREATE EXTENSION IF NOT EXISTS grouplog;
		CREATE TABLE account (name text, balance int CHECK (balance >= 0));
		CREATE FUNCTION log_change() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM grouplog.append(format('%s %s %s', TG_NAME, TG_OP, coalesce(NEW.name, '-')));
			RETURN NEW;
		END $$;
		CREATE TRIGGER row BEFORE INSERT OR UPDATE ON account FOR EACH ROW EXECUTE FUNCTION log_change();
		CREATE FUNCTION log_statement() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM grouplog.append(format('%s %s', TG_NAME, TG_OP));
			RETURN NULL;
		END $$;
		CREATE TRIGGER statement AFTER INSERT ON account FOR EACH STATEMENT EXECUTE FUNCTION log_statement();
		CREATE FUNCTION log_late() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM grouplog.append('late ' || NEW.name);
			IF NEW.name = 'bad' THEN RAISE EXCEPTION 'at commit'; END IF;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON account DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION log_late();
		CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
		BEGIN
			FOR i IN 1 .. 4 LOOP
				PERFORM grouplog.append('step ' || i);
				IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF;
			END LOOP;
		END $$;
		CREATE FUNCTION mislabelled(text) RETURNS pg_lsn LANGUAGE plpgsql PARALLEL SAFE
			AS 'BEGIN RETURN grouplog.append($1); END';
		CREATE TABLE many AS SELECT i FROM generate_series(1, 100) AS i;
		ALTER TABLE many SET (parallel_workers = 2);
	));
}

my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; '
  . 'SET min_parallel_table_scan_size = 0; ';

# [ name, statements, SQLSTATE of the error that ends them or '', what is appended ]
my @constructs = (
	[ 'an EXCEPTION block',
		q(DO $$ BEGIN BEGIN PERFORM grouplog.append('inside'); RAISE EXCEPTION 'no'; EXCEPTION WHEN raise_exception THEN PERFORM grouplog.append('handler'); END; PERFORM grouplog.append('after'); END $$),
		'', qw(inside handler after) ],
	[ 'an EXCEPTION block that catches an append that is refused',
		q(DO $$ BEGIN PERFORM grouplog.append('before'); BEGIN PERFORM grouplog.append(repeat('x', 100000)); EXCEPTION WHEN program_limit_exceeded THEN PERFORM grouplog.append('caught'); END; END $$),
		'', qw(before caught) ],
	[ 'an error that nobody catches',
		q(DO $$ BEGIN PERFORM grouplog.append('before'); PERFORM 1 / 0; PERFORM grouplog.append('never'); END $$),
		'22012', qw(before) ],
	[ 'a rolled-back savepoint',
		q(BEGIN; SELECT grouplog.append('outside'); SAVEPOINT s; SELECT grouplog.append('inside'); ROLLBACK TO s; SELECT grouplog.append('after'); COMMIT),
		'', qw(outside inside after) ],
	[ 'savepoints in savepoints, released and rolled back',
		q(BEGIN; SAVEPOINT a; SELECT grouplog.append('a'); SAVEPOINT b; SELECT grouplog.append('b'); RELEASE b; SAVEPOINT c; SELECT grouplog.append('c'); ROLLBACK TO a; ROLLBACK),
		'', qw(a b c) ],
	[ 'a rolled-back transaction',
		q(BEGIN; SELECT grouplog.append('gone? no'); ROLLBACK), '', 'gone? no' ],
	[ 'PREPARE TRANSACTION and ROLLBACK PREPARED',
		q(BEGIN; SELECT grouplog.append('prepared'); PREPARE TRANSACTION 'p'; SELECT grouplog.append('between'); ROLLBACK PREPARED 'p'),
		'', qw(prepared between) ],
	[ 'PREPARE TRANSACTION and COMMIT PREPARED',
		q(BEGIN; INSERT INTO account VALUES ('two-phase', 1); PREPARE TRANSACTION 'q'; COMMIT PREPARED 'q'),
		'', 'row INSERT two-phase', 'statement INSERT', 'late two-phase' ],
	[ 'a parallel query: the planner keeps it out', $parallel . q(SELECT count(grouplog.append(i::text)) FROM many WHERE i <= 3),
		'', 1, 2, 3 ],
	[ 'a parallel query, by a function that lies', $parallel . q(SELECT count(mislabelled(i::text)) FROM many), '25000' ],
	[ 'a read-only transaction', q(BEGIN READ ONLY; SELECT grouplog.append('x')), '25006' ],
	[ 'a read-only transaction that an EXCEPTION block goes on in',
		q(BEGIN READ ONLY; DO $$ BEGIN PERFORM grouplog.append('x'); EXCEPTION WHEN read_only_sql_transaction THEN NULL; END $$; SELECT grouplog.flush(); COMMIT), '' ],
	[ 'triggers', q(INSERT INTO account VALUES ('a', 1), ('b', 1)),
		'', 'row INSERT a', 'row INSERT b', 'statement INSERT', 'late a', 'late b' ],
	[ 'triggers of a statement that fails', q(INSERT INTO account VALUES ('c', 1), ('d', -1)),
		'23514', 'row INSERT c', 'row INSERT d' ],
	[ 'a deferred trigger that fails at commit', q(INSERT INTO account VALUES ('bad', 1)),
		'P0001', 'row INSERT bad', 'statement INSERT', 'late bad' ],
	[ 'a cursor: as far as it is fetched',
		q(BEGIN; DECLARE c CURSOR FOR SELECT grouplog.append('row ' || i) FROM generate_series(1, 100) i; FETCH 2 FROM c; FETCH 1 FROM c; CLOSE c; COMMIT),
		'', 'row 1', 'row 2', 'row 3' ],
	[ 'a cursor that outlives its transaction: to the end',
		q(BEGIN; DECLARE h NO SCROLL CURSOR WITH HOLD FOR SELECT grouplog.append('row ' || i) FROM generate_series(1, 3) i; FETCH 1 FROM h; COMMIT; FETCH ALL FROM h; CLOSE h),
		'', 'row 1', 'row 2', 'row 3' ],
	[ 'the same, when it may scroll: PostgreSQL runs it again from its start',
		q(BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT grouplog.append('row ' || i) FROM generate_series(1, 3) i; FETCH 1 FROM h; COMMIT; FETCH ALL FROM h; CLOSE h),
		'', 'row 1', 'row 1', 'row 2', 'row 3' ],
	[ 'a cursor over the log that a savepoint ends, with appends between',
		q(BEGIN; SELECT grouplog.append('before'); SAVEPOINT s; DECLARE r CURSOR FOR SELECT payload FROM grouplog.read_text(); FETCH 1 FROM r; SELECT grouplog.append('between'); ROLLBACK TO s; SELECT grouplog.append('after'); COMMIT),
		'', qw(before between after) ],
	[ 'DO', q(DO $$ BEGIN FOR i IN 1 .. 3 LOOP PERFORM grouplog.append('do ' || i); END LOOP; END $$),
		'', 'do 1', 'do 2', 'do 3' ],
	[ 'a procedure that commits and rolls back', 'CALL steps()', '', 'step 1', 'step 2', 'step 3', 'step 4' ],
	[ 'a prepared statement', q(PREPARE a(text) AS SELECT grouplog.append($1); EXECUTE a('one'); EXECUTE a('two'); DEALLOCATE a),
		'', qw(one two) ],
	[ 'INSERT ... RETURNING, of which LIMIT takes nothing away',
		q(WITH i AS (INSERT INTO many SELECT 1000 + g FROM generate_series(1, 2) g RETURNING grouplog.append('returning ' || i)) SELECT 1 FROM i LIMIT 1),
		'', 'returning 1001', 'returning 1002' ],
	[ 'a batch in a rolled-back savepoint', q(BEGIN; SAVEPOINT s; SELECT grouplog.append_batch_text('{x,y}'); ROLLBACK TO s; COMMIT), '', qw(x y) ],
	[ 'an asynchronous append that is rolled back', q(BEGIN; SELECT grouplog.append_async('async'); ROLLBACK), '', 'async' ]);

my %start = map { $_ => '0/0' } 'postgres', 'other';
my %all;

# What a database's log holds since the last look, and (marker first) nothing of the other one's.
sub appended
{
	my ($database) = @_;
	my @rows = split /\n/, $node->safe_psql($database,
		"SELECT grouplog.flush(); SELECT lsn, payload FROM grouplog.read_text('$start{$database}') ORDER BY lsn");

	shift @rows;    # the flush
	($start{$database}) = $rows[-1] =~ /^([^|]+)/ if @rows;
	return map { (split /\|/)[1] } @rows;
}

foreach my $mode (qw(adaptive batch group periodic))
{
	foreach my $construct (@constructs)
	{
		my ($name, $sql, $state, @expected) = @$construct;

		# the same in both databases: each sees its own
		foreach my $database ('postgres', 'other')
		{
			my ($got, $message) = sql_error($node, "SET grouplog.sync_mode = '$mode'; $sql", dbname => $database);

			$got = '' if $got eq '00000';
			is("$got: " . join(', ', appended($database)), "$state: " . join(', ', @expected),
				"H23 $mode, in $database: $name")
			  or diag $message;
			push @{ $all{$database} }, @expected;
		}
	}
}

# a prepared transaction that a crash interrupts
$node->safe_psql('postgres', q(BEGIN; SELECT grouplog.append('prepared before a crash', 'batch'); PREPARE TRANSACTION 'crash'));
push @{ $all{postgres} }, 'prepared before a crash';
kill_server($node);
$node->start;
$node->safe_psql('postgres', q(ROLLBACK PREPARED 'crash'));
foreach my $database ('postgres', 'other')
{
	is($node->safe_psql($database, q(SELECT string_agg(payload, ', ' ORDER BY lsn) FROM grouplog.read_text())),
		join(', ', @{ $all{$database} }), "H23 all of it after a crash, in $database");
}

# ---- without leaks ----
sub memory_of
{
	my ($pid) = @_;

	return slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m ? $1 : 0;
}

sub descriptors_of
{
	my ($pid) = @_;

	return scalar(() = glob "/proc/$pid/fd/*");
}

{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $writer = writer_pid($node);
	my $round = sub {
		my ($count) = @_;

		foreach my $mode (qw(periodic adaptive))
		{
			$session->query_safe(qq(SET grouplog.sync_mode = '$mode';
				DO \$\$ BEGIN
				FOR i IN 1 .. $count LOOP
					BEGIN PERFORM grouplog.append('leak'); RAISE EXCEPTION 'no'; EXCEPTION WHEN raise_exception THEN NULL; END;
					BEGIN PERFORM grouplog.append(repeat('x', 100000)); EXCEPTION WHEN program_limit_exceeded THEN NULL; END;
					PERFORM grouplog.append_batch_text('{a,b}');
					PERFORM payload FROM grouplog.read_text() LIMIT 1;
				END LOOP; END \$\$;));
			$session->query_safe('BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR SELECT * FROM grouplog.read(); FETCH 1 FROM c; '
				  . q(SELECT grouplog.append('leak'); ROLLBACK TO s; COMMIT)) foreach 1 .. 20;
		}
	};

	# twice to warm up, then it must stay as it is
	$round->(300) foreach 1 .. 2;
	my @before = (memory_of($pid), descriptors_of($pid), memory_of($writer), descriptors_of($writer));
	$round->(300) foreach 1 .. (long_run() ? 20 : 3);
	# the writer may have its directory or a spare open just now
	wait_until(sub { descriptors_of($writer) <= $before[3] + 1 }, 60);
	my @after = (memory_of($pid), descriptors_of($pid), memory_of($writer), descriptors_of($writer));

	note "H23 kB and descriptors of session and writer: @before, then @after";
	cmp_ok($after[0] - $before[0], '<', 2048, 'H23 no memory of the session leaks');
	cmp_ok($after[1] - $before[1], '<=', 1, 'H23 ... nor a descriptor');
	cmp_ok($after[2] - $before[2], '<', 2048, 'H23 no memory of the writer leaks');
	cmp_ok($after[3] - $before[3], '<=', 1, 'H23 ... nor a descriptor');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_locks WHERE pid IN ($pid, $writer)"), 'H23 no lock is left');
	$session->quit;
	is($node->safe_psql('postgres', 'SELECT grouplog.flush(); SELECT insert_lsn = durable_lsn FROM grouplog.status') =~ /\nt\z/ ? 't' : 'f',
		't', 'H23 nothing is left unpublished');
}

$node->stop;
done_testing();
