# Each database has records of its own.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('databases');

sub records
{
	my ($database) = @_;

	return $node->safe_psql($database, q(SELECT string_agg(payload, ' ' ORDER BY lsn) FROM grouplog.read_text()));
}

# PostgreSQL gives sessions that are just ending five seconds.
sub nobody_in
{
	my ($database) = @_;

	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = '$database'")
	  or die "sessions in database $database do not end";
}

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(a b);
$node->safe_psql($_, 'CREATE EXTENSION grouplog') foreach qw(a b);

foreach my $i (1 .. 3)
{
	$node->safe_psql('a', "SELECT grouplog.append('a$i')");
	$node->safe_psql('b', "SELECT grouplog.append('b$i')");
}
is(records('a'), 'a1 a2 a3', 'database a reads its own');
is(records('b'), 'b1 b2 b3', 'database b reads its own');
is(records('postgres'), '', 'a third one reads nothing');

# an LSN of another database is a place like any other
my $lsn = $node->safe_psql('a', q(SELECT lsn FROM grouplog.read_text() WHERE payload = 'a2'));
is($node->safe_psql('b', "SELECT string_agg(payload, ' ' ORDER BY lsn) FROM grouplog.read_text('$lsn')"),
	'b2 b3', 'a read after an LSN of another database');

# a copy
nobody_in('a');
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE a');
is(records('copy'), '', 'a copy of a database does not see the records of the original');
$node->safe_psql('copy', q(SELECT grouplog.append('copy1')));
is(records('copy'), 'copy1', '... but its own');
is(records('a'), 'a1 a2 a3', '... which the original does not see');

# in this session, too: the stream is not cached from the original
nobody_in('a');
$node->safe_psql('postgres', 'ALTER DATABASE a RENAME TO renamed');
is(records('renamed'), 'a1 a2 a3', 'a renamed database keeps its records');

# drop and create the extension: a new stream, even within a session
{
	my $session = $node->background_psql('b', on_error_stop => 0);

	is($session->query_safe(q(SELECT string_agg(payload, ' ' ORDER BY lsn) FROM grouplog.read_text())),
		'b1 b2 b3', 'a session has read');
	$node->safe_psql('b', 'DROP EXTENSION grouplog');
	my ($out, $failed) = $session->query(q(SELECT grouplog.append('x')));
	ok($failed, 'without the extension there is nothing to call');
	$session->{stderr} = '';
	$node->safe_psql('b', 'CREATE EXTENSION grouplog');
	is($session->query_safe(q(SELECT count(*) FROM grouplog.read_text())), 0, 'DROP and CREATE EXTENSION: a new stream, empty');
	$session->query_safe(q(SELECT grouplog.append('new')));
	is($session->query_safe(q(SELECT payload FROM grouplog.read_text())), 'new', '... in use');
	$session->quit;
}
is(records('b'), 'new', '... for every session');

# a function of one database does not help in another
my ($state, $message) = sql_error($node, q(SELECT grouplog.append('x')), dbname => 'template1');
is($state, '3F000', 'a database without the extension: no such schema');

# dump and restore make a new stream, and restore no record
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'pg_dump', '-f', scratch('dump.sql'), $node->connstr('renamed') ], 'pg_dump');
$node->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', scratch('dump.sql'), $node->connstr('restored') ], 'restore');
is(records('restored'), '', 'a restored dump is a new stream');

# dropped, made again under its name
nobody_in('copy');
$node->safe_psql('postgres', 'DROP DATABASE copy');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->safe_psql('copy', 'CREATE EXTENSION grouplog');
is(records('copy'), '', 'a database of the same name does not inherit records');

# the table is not for users
$node->safe_psql('renamed', 'CREATE ROLE someone');
($state) = sql_error($node, 'SET ROLE someone; SELECT * FROM grouplog.main_stream', dbname => 'renamed');
is($state, '42501', 'the stream id is not for users');

# after a crash
kill_server($node);
$node->start;
is(records('renamed'), 'a1 a2 a3', 'after a crash: as before');
is(records('b'), 'new', '... in every database');

# extension made in a transaction, rolled back
$node->safe_psql('restored', q(BEGIN; DROP EXTENSION grouplog; CREATE EXTENSION grouplog; SELECT grouplog.append('lost stream'); ROLLBACK; SELECT grouplog.append('kept')));
is(records('restored'), 'kept', 'the stream of an extension that was rolled back is out of sight');

$node->stop;
done_testing();
