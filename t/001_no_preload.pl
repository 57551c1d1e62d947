# Without the library in shared_preload_libraries nothing works, and nothing breaks.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('bare', conf => {
	map({ $_ => undef } qw(shared_preload_libraries grouplog.segment_size grouplog.buffers grouplog.min_free_space)) });

is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_extension WHERE extname = 'grouplog')),
	1, 'CREATE EXTENSION works without preloading');

foreach my $call (
	q(SELECT grouplog.append('x')),
	q(SELECT grouplog.append('\x00'::bytea)),
	q(SELECT grouplog.append('x', 'batch')),
	q(SELECT grouplog.append('\x00'::bytea, 'batch')),
	q(SELECT grouplog.append_batch('{a,b}'::bytea[])),
	q(SELECT grouplog.append_batch('{a,b}'::bytea[], 'group')),
	q(SELECT grouplog.append_batch_text('{a,b}')),
	q(SELECT grouplog.append_batch_text('{a,b}', 'group')),
	q(SELECT grouplog.append_async('x')),
	q(SELECT grouplog.append_async('x'::bytea)),
	q(SELECT grouplog.wait_durable('0/1')),
	q(SELECT grouplog.wait_durable('0/1', '1s')),
	q(SELECT grouplog.flush()),
	q(SELECT * FROM grouplog.read()),
	q(SELECT * FROM grouplog.read_text('0/1', 1)),
	q(SELECT * FROM grouplog.read_records(NULL, NULL)),
	q(SELECT * FROM grouplog.read_text_records(NULL, NULL)),
	q(SELECT grouplog.sync_mode()),
	q(SELECT grouplog.set_sync_mode('batch')),
	q(SELECT grouplog.truncate('0/1')),
	q(SELECT * FROM grouplog.verify()),
	q(SELECT grouplog.accept_end('0/1')),
	q(SELECT grouplog.stat_reset()),
	map({ "SELECT * FROM grouplog.$_" }
		qw(stat stat_latency stat_latency_histogram stat_group stat_sync_mode status segments)))
{
	my ($state, $message) = sql_error($node, $call);

	is($state, '55000', "not preloaded: $call");
	like($message, qr/HINT:.*shared_preload_libraries/, '... with a hint') or diag $message;
}

# every function of the extension was called above
is( $node->safe_psql('postgres', q(
	SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc
	WHERE pronamespace = 'grouplog'::regnamespace
	  AND proname !~ '^(stat_get|get_)'
	  AND proname NOT IN ('append', 'append_batch', 'append_batch_text', 'append_async', 'wait_durable', 'flush',
		'read', 'read_text', 'read_records', 'read_text_records', 'sync_mode', 'set_sync_mode', 'truncate', 'verify',
		'accept_end', 'stat_reset'))), '', 'no function was forgotten here');

# LOAD by a session
my ($out, $err);
is($node->psql('postgres', q(LOAD 'grouplog'; SELECT 1; SELECT count(*) FROM pg_class), stdout => \$out, stderr => \$err),
	0, 'LOAD by a session does no harm') or diag $err;
my ($state, $message) = sql_error($node, q(LOAD 'grouplog'; SELECT grouplog.append('x')));
is($state, '55000', '... and does not help');
is($node->psql('postgres', q(SET grouplog.sync_mode = 'batch'; LOAD 'grouplog'; SELECT 1), stdout => \$out, stderr => \$err),
	0, 'a setting of the prefix before LOAD does no harm') or diag $err;
is($node->psql('postgres', q(SET grouplog.group_window = 'nonsense'; LOAD 'grouplog'; SELECT 1), stdout => \$out, stderr => \$err),
	0, '... whatever its value') or diag $err;
ok(!-e log_directory($node), 'no log directory was made');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'grouplog%')),
	0, 'no worker runs');

# dump and restore, drop
$node->command_ok([ 'pg_dump', '-f', scratch('dump.sql'), $node->connstr('postgres') ], 'pg_dump works');
$node->safe_psql('postgres', 'DROP EXTENSION grouplog');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_namespace WHERE nspname = 'grouplog')),
	0, 'DROP EXTENSION leaves no schema behind');

# preloaded after all
$node->append_conf('postgresql.conf', q(shared_preload_libraries = 'grouplog'));
$node->append_conf('postgresql.conf', q(grouplog.min_free_space = 0));
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION grouplog');
like($node->safe_psql('postgres', q(SELECT grouplog.append('x'))), qr{/}, 'preloaded after all, it works');
is($node->psql('postgres', q(LOAD 'grouplog'; SELECT 1), stdout => \$out, stderr => \$err), 0, 'LOAD does no harm then, either');

# and away again: the files stay
$node->append_conf('postgresql.conf', q(shared_preload_libraries = ''));
$node->restart;
($state) = sql_error($node, q(SELECT * FROM grouplog.read()));
is($state, '55000', 'not preloaded again: an error');
$node->append_conf('postgresql.conf', q(shared_preload_libraries = 'grouplog'));
$node->restart;
is($node->safe_psql('postgres', q(SELECT payload FROM grouplog.read_text())), 'x', 'preloaded again: the record is there');

$node->stop;
done_testing();
