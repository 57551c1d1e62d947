# Settings: reload, windows below a millisecond, settings of roles and databases.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_node('settings');
my $ledger = new_ledger();

sub reload_with
{
	my ($name, $value) = @_;

	$node->append_conf('postgresql.conf', "$name = '$value'");
	$node->reload;
	return $node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'");
}

sub counter
{
	my ($column) = @_;

	return $node->safe_psql('postgres', "SELECT $column FROM grouplog.stat");
}

append_some($node, $ledger, 'as it comes');

# ---- every setting that a reload changes, under load ----
{
	my $load = start_load($node, $ledger, clients => 3, mode => 'periodic', records => 30000);
	my $other = start_load($node, $ledger, clients => 3, mode => 'group', records => 30000);

	foreach my $setting (
		[ 'grouplog.group_bytes',    '64kB' ],  [ 'grouplog.group_bytes',    '512kB' ],
		[ 'grouplog.sync_period',    '20ms' ],  [ 'grouplog.sync_period',    '300ms' ],
		[ 'grouplog.sync_lag_limit', '10ms' ],  [ 'grouplog.sync_lag_limit', '400ms' ],
		[ 'grouplog.group_window',   '1ms' ],   [ 'grouplog.group_window',   '15ms' ],
		[ 'grouplog.max_size',       '100MB' ], [ 'grouplog.max_size',       '-1' ],
		[ 'grouplog.on_full',        'recycle' ], [ 'grouplog.on_full',      'refuse' ],
		[ 'grouplog.min_free_space', '1MB' ],   [ 'grouplog.min_free_space', '0' ],
		[ 'grouplog.sync_mode',      'batch' ], [ 'grouplog.sync_mode',      'adaptive' ])
	{
		ok(reload_with(@$setting), "reload: $setting->[0] = $setting->[1]");
		sleep 0.05;
	}
	finish_load($_, stop => 1) foreach $load, $other;
	unlike($load->{errors} . $other->{errors}, qr/ERROR/, 'reloads under load: no append failed');
	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	check_ledger($node, $ledger, 'reloads under load');
}

# What needs a restart is refused politely by a reload.
{
	my $position = log_position($node);

	$node->append_conf('postgresql.conf', q(grouplog.buffers = '512kB'));
	$node->reload;
	ok(wait_until(sub { log_since($node, $position) =~ /"grouplog.buffers" cannot be changed without restarting/ }),
		'grouplog.buffers needs a restart');
	is(status($node, 'buffer_bytes'), 256 * 1024, '... and keeps its value');
	$node->restart;
	is(status($node, 'buffer_bytes'), 512 * 1024, '... until then');
	append_some($node, $ledger, '... appends go on with another ring');

	$node->stop;
	$node->append_conf('postgresql.conf', q(grouplog.segment_size = '2MB'));
	$node->start;
	append_some($node, $ledger, '... and with other segments', size => sub { 30000 }, records => 100);
	kill_server($node);
	$node->append_conf('postgresql.conf', q(grouplog.segment_size = '1MB'));
	$node->append_conf('postgresql.conf', q(grouplog.buffers = '128kB'));
	$node->start;
	check_ledger($node, $ledger, 'segment and ring changed, after a crash');
	append_some($node, $ledger, '... appends go on with smaller ones');
	check_ledger($node, $ledger, 'segment and ring changed, in use');
	is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', '... verify agrees');
}

# Values out of place
foreach my $bad (
	[ 'grouplog.sync_mode', 'sometimes' ], [ 'grouplog.group_window', '0' ], [ 'grouplog.group_window', '1h' ],
	[ 'grouplog.group_window', '-1ms' ])
{
	my ($state) = sql_error($node, "SET $bad->[0] = '$bad->[1]'");
	is($state, '22023', "$bad->[0] = $bad->[1] is refused");
}
foreach my $bad (
	[ 'grouplog.buffers', '300kB' ], [ 'grouplog.buffers', '64kB' ], [ 'grouplog.segment_size', '3MB' ],
	[ 'grouplog.group_bytes', '1kB' ], [ 'grouplog.max_size', '-2' ], [ 'grouplog.directory', '' ],
	[ 'grouplog.on_full', 'panic' ], [ 'grouplog.no_such_setting', '1' ])
{
	my ($state) = sql_error($node, "ALTER SYSTEM SET $bad->[0] = '$bad->[1]'");
	like($state, qr/^(22023|42704|42602)$/, "ALTER SYSTEM SET $bad->[0] = '$bad->[1]' is refused");
}
{
	my ($state) = sql_error($node, q(SET grouplog.sync_period = '1s'));
	is($state, '55P02', 'a session does not set the period');
}

# ---- windows ----
{
	foreach my $window ('200us', '0.5ms', '10us')
	{
		my ($value) = $node->safe_psql('postgres', "SET grouplog.group_window = '$window'; SHOW grouplog.group_window");
		is($value, { '200us' => '200us', '0.5ms' => '500us', '10us' => '10us' }->{$window}, "group_window = $window is kept");
	}
}

# ---- H1: one client, and what a record of its costs: by the counters ----
{
	my @columns = ('groups', 'syncs', map { "flushes_$_" } qw(request bytes batch window period joined patience lone));

	# how much each counter grew; those that did not are left out.  A group is
	# counted after those who waited for it have gone on: when the writer answers a
	# request, all before it are.
	my $cost = sub {
		my ($mode, $count, $settings) = @_;
		my @values = split /\|/, (split /\n/, $node->safe_psql('postgres', qq(
			$settings
			SELECT grouplog.truncate('0/1');
			CREATE TEMP TABLE before AS SELECT * FROM grouplog.stat;
			DO 'BEGIN FOR i IN 1 .. $count LOOP PERFORM grouplog.append(''h1:'', ''$mode''); END LOOP; END';
			SELECT grouplog.truncate('0/1');
			SELECT ) . join(', ', map { "s.$_ - b.$_" } @columns) . ' FROM grouplog.stat s, before b'))[-1];

		return join ' ', map { "$columns[$_]=$values[$_]" } grep { $values[$_] != 0 } 0 .. $#columns;
	};

	# a file of its own, which has room for all that follows; and no period that a slow
	# machine lets end before a group has begun
	$node->append_conf('postgresql.conf', "grouplog.sync_period = '100s'\ngrouplog.sync_lag_limit = '200s'");
	$node->restart;
	$node->safe_psql('postgres', q(SELECT grouplog.append('h1:', 'batch')));

	foreach my $window ('10us', '200us', '20ms')
	{
		is($cost->('group', 10, "SET grouplog.group_window = '$window';"),
			'groups=10 syncs=10 flushes_window=10',
			"H1 group mode, alone, window $window: each record costs one window and one sync");
	}
	# the writer flushes until it has seen that nobody else is there, and that syncs are fast
	like($cost->('adaptive', 50, ''), qr/^groups=50 syncs=50( flushes_joined=\d+)?( flushes_lone=\d+)?$/,
		'H1 adaptive, alone: each record costs one sync, and no wait');
	like($cost->('batch', 10, ''), qr/^groups=10 syncs=10( flushes_batch=\d+)?( flushes_lone=\d+)?$/,
		'H1 batch, alone: each record costs one sync');

	# a window is a window: so long, at least, by the server's own measure
	$node->safe_psql('postgres', q(SELECT grouplog.stat_reset(); SET grouplog.group_window = '40ms';
		DO 'BEGIN FOR i IN 1 .. 5 LOOP PERFORM grouplog.append(''w:'', ''group''); END LOOP; END'));
	is($node->safe_psql('postgres', q(SELECT waits, wait_time >= 5 * 40 FROM grouplog.stat_sync_mode WHERE sync_mode = 'group')),
		'5|t', 'H1 group mode: a lone record waits for its window');
}

# ---- roles, databases, transactions, functions ----
{
	$node->safe_psql('postgres', q(
		CREATE ROLE quick LOGIN; CREATE ROLE slow LOGIN;
		GRANT USAGE ON SCHEMA grouplog TO quick, slow;
		GRANT EXECUTE ON FUNCTION grouplog.append(text), grouplog.sync_mode() TO quick, slow;
		ALTER ROLE quick SET grouplog.sync_mode = 'periodic';
		ALTER DATABASE postgres SET grouplog.sync_mode = 'group';
		CREATE DATABASE elsewhere;
		ALTER ROLE slow IN DATABASE elsewhere SET grouplog.sync_mode = 'batch';
	));
	$node->safe_psql('elsewhere', q(CREATE EXTENSION grouplog; GRANT USAGE ON SCHEMA grouplog TO slow;
		GRANT EXECUTE ON FUNCTION grouplog.append(text), grouplog.sync_mode() TO slow));
	is($node->safe_psql('postgres', 'SELECT grouplog.sync_mode()', extra_params => [ '-U', 'quick' ]),
		'periodic', 'ALTER ROLE SET');
	is($node->safe_psql('postgres', 'SELECT grouplog.sync_mode()', extra_params => [ '-U', 'slow' ]),
		'group', 'ALTER DATABASE SET');
	is($node->safe_psql('elsewhere', 'SELECT grouplog.sync_mode()', extra_params => [ '-U', 'slow' ]),
		'batch', 'ALTER ROLE IN DATABASE SET');
	my $appends = sub {
		return $node->safe_psql('postgres', q(SELECT string_agg(sync_mode || '=' || appends, ' ' ORDER BY sync_mode) FROM grouplog.stat_sync_mode));
	};
	$node->safe_psql('postgres', 'SELECT grouplog.stat_reset()');
	$node->safe_psql('postgres', q(SELECT grouplog.append('r:')), extra_params => [ '-U', 'quick' ]);
	$node->safe_psql('postgres', q(SELECT grouplog.append('r:')), extra_params => [ '-U', 'slow' ]);
	$node->safe_psql('elsewhere', q(SELECT grouplog.append('r:')), extra_params => [ '-U', 'slow' ]);
	is($appends->(), 'adaptive=0 batch=1 group=1 periodic=1', '... each append in its own mode');
	$node->safe_psql('postgres', q(ALTER DATABASE postgres RESET grouplog.sync_mode));
}

$node->stop;
done_testing();
