# What grouplog takes from newer versions of PostgreSQL where they have it.

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use GrouplogTest;
use IPC::Run qw(start);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = dirname(__FILE__) . '/..';
my $node = new_node('versions', conf => { restart_after_crash => 'on' });
my $ledger = new_ledger();

# for records that no ledger knows
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION grouplog');

# ---- wait events: of our own from 17 on, "Extension" before ----

sub expected_event
{
	my ($name) = @_;

	return 'Extension|' . (server_version() >= 17 ? $name : 'Extension');
}

# Until this is what such processes wait for.
sub waits_for
{
	my ($who, $name) = @_;

	return $node->poll_query_until('postgres',
		"SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE $who", expected_event($name));
}

sub check_wait_events
{
	my ($when) = @_;

	ok(waits_for(q(backend_type = 'grouplog writer'), 'GrouplogWriterMain'), "wait events, $when: the idle writer");

	# nobody else comes, so the group waits for its whole window
	my $output = '';
	my $session = start(
		[
			'psql', '-XAtq', '-d', $node->connstr('other'),
			'-c', q(SET application_name = 'waits'),
			'-c', q(SET grouplog.group_window = '10s'),
			'-c', q(SELECT grouplog.append('x', 'group') IS NOT NULL)
		],
		'<', '/dev/null', '>&', \$output);
	ok(waits_for(q(application_name = 'waits'), 'GrouplogAppendDurable'), "... a session");
	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	$session->finish;
	is($output, "t\n", '... which gets its answer');
}

check_wait_events('after the start');
{
	# shared memory is made anew, and the events in it
	my $writer = writer_pid($node);

	kill 'KILL', $writer;
	wait_until(
		sub {
			my ($status, $out) = $node->psql('postgres', 'SELECT writer_pid FROM grouplog.status');

			return $status == 0 && $out ne '' && $out ne $writer;
		});
	wait_open($node);
}
check_wait_events('after a crash restart');

SKIP:
{
	skip 'there is no view of wait events before PostgreSQL 17', 1 if server_version() < 17;

	is($node->safe_psql('postgres', q(SELECT string_agg(name, ' ' ORDER BY name COLLATE "C")
			FROM pg_wait_events WHERE type = 'Extension' AND name ~ '^Grouplog')),
		'GrouplogAppendDurable GrouplogAppendRoom GrouplogRequest GrouplogWriterIO GrouplogWriterMain',
		'all wait events are known before the first wait');
}

# ---- the library's name and version, from 18 on ----

SKIP:
{
	skip 'a library has no version before PostgreSQL 18', 1 if server_version() < 18;

	my ($version) = slurp_file("$top/META.json") =~ /"version": "([0-9.]+)",\n   "maintainer"/;
	is($node->safe_psql('postgres',
			q(SELECT module_name, version FROM pg_get_loaded_modules() WHERE file_name LIKE 'grouplog%')),
		"grouplog|$version", 'the loaded library says who it is');
}
$node->stop;

# ---- from 18 on the server has I/O of its own through io_uring ----

SKIP:
{
	skip 'the server has no I/O through io_uring before PostgreSQL 18', 1 if server_version() < 18;

	$node->append_conf('postgresql.conf', "io_method = io_uring\nshared_buffers = 1MB");
	skip 'the server cannot use io_uring here', 1 unless $node->start(fail_ok => 1);

	my $load = start_load($node, $ledger, clients => 4, mode => 'adaptive', records => 500);
	$node->safe_psql('other',
		q(CREATE TABLE big AS SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 20000) AS i));
	is($node->safe_psql('other',
			q(SELECT sum(length(t)), bool_and(grouplog.append_async('of a scan') IS NOT NULL) FROM big)),
		'20000000|t', 'beside the server\'s own io_uring: appends in a scan');
	finish_load($load);
	is($load->{errors}, '', '... and from sessions');
	kill_server($node);
	$node->start;
	check_ledger($node, $ledger, '... and after a crash');
	$node->stop;
}

done_testing();
