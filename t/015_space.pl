# Budgets: max_size with refuse and recycle, min_free_space, truncate.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_node('space', conf => { 'grouplog.max_size' => '6MB' });
my $ledger = new_ledger();
my $budget = 6 * 1024 * 1024;

sub bytes_on_disk
{
	my $bytes = 0;

	# a file may go meanwhile
	$bytes += (-s log_directory($node) . "/$_") // 0 foreach grep { !/^\./ } slurp_dir(log_directory($node));
	return $bytes;
}

sub set_conf
{
	my ($name, $value) = @_;

	$node->append_conf('postgresql.conf', "$name = '$value'");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'");
}

# What was recycled or removed is no longer expected.
my $recycled = sub {
	my $oldest = lsn_number(status($node, 'oldest_lsn'));

	forget_before($ledger, $oldest);
};

# ---- refuse ----
{
	my $load = start_load($node, $ledger, clients => 3, mode => 'batch', size => sub { 6000 });

	finish_load($load);
	like($load->{errors}, qr/ERROR:  the log has reached "grouplog.max_size"/, 'max_size, refuse: appends fail');
	my ($state, $message) = sql_error($node, q(SELECT grouplog.append(repeat('x', 6000))));
	is($state, '53400', '... with configuration_limit_exceeded');
	like($message, qr/HINT.*truncate/, '... and a hint');
	cmp_ok(bytes_on_disk(), '<=', $budget, '... the budget is kept');
	is(status($node, 'refusal'), 'max_size', '... status says why');
	check_ledger($node, $ledger, 'max_size, refuse');

	# the last file is full to its last byte: the close record has a file of its own
	is(lsn_number(status($node, 'insert_lsn')) % (1024 * 1024), 0, 'H24 max_size: the last file is full');
	my $position = log_position($node);
	$node->stop('fast');
	like(log_since($node, $position), qr/grouplog closed at LSN [0-9A-F]+\/[0-9A-F]+$/m, 'H24 ... closed');
	cmp_ok(bytes_on_disk(), '<=', $budget + 1024 * 1024 + 4096, 'H24 ... one file beyond the budget at most');
	$node->start;
	check_ledger($node, $ledger, 'H24 max_size, refuse, after a stop');
	like(status($node, 'recovery'), qr/^clean at/, 'H24 ... and found closed');
	kill_server($node);
	$node->start;
	check_ledger($node, $ledger, 'max_size, refuse, after a crash');

	set_conf('grouplog.max_size', '9MB');
	$budget = 9 * 1024 * 1024;
	ok($node->poll_query_until('postgres', 'SELECT refusal IS NULL FROM grouplog.status'), 'max_size raised: appends are taken again');
	append_some($node, $ledger, '... without a restart', size => sub { 6000 });
	finish_load(start_load($node, $ledger, clients => 3, mode => 'batch', size => sub { 6000 }));
	check_ledger($node, $ledger, 'max_size raised');

	# truncate
	($state) = sql_error($node, q(SELECT grouplog.truncate(insert_lsn + 1) FROM grouplog.status));
	is($state, '22023', 'truncate beyond the end is refused');
	$node->safe_psql('postgres', 'CREATE ROLE plain; GRANT USAGE ON SCHEMA grouplog TO plain; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA grouplog TO plain');
	($state) = sql_error($node, q(SET ROLE plain; SELECT grouplog.truncate('0/200000')));
	is($state, '42501', 'truncate is for superusers');
	my $lsn = $node->safe_psql('postgres', 'SELECT first_lsn + 1000 FROM grouplog.segments ORDER BY number OFFSET 3 LIMIT 1');
	my $before = bytes_on_disk();
	my $freed = $node->safe_psql('postgres', "SELECT grouplog.truncate('$lsn')");
	cmp_ok($freed, '>', 0, 'truncate frees bytes');
	cmp_ok($node->safe_psql('postgres', 'SELECT oldest_lsn FROM grouplog.status') && lsn_number(status($node, 'oldest_lsn')),
		'<=', lsn_number($lsn), '... but no record at or after the LSN');
	$recycled->();
	check_ledger($node, $ledger, 'after truncate');
	ok($node->poll_query_until('postgres', 'SELECT refusal IS NULL FROM grouplog.status'), 'truncate: appends are taken again');
	append_some($node, $ledger, '... they work');
	$node->restart;
	check_ledger($node, $ledger, 'after truncate and a restart');
}

# ---- recycle, with a reader beneath ----
{
	set_conf('grouplog.on_full', 'recycle');
	my @loads = map {
		start_load($node, $ledger, clients => 1, mode => $_, endless => 1, size => sub { 3000 + $_[0] % 1000 })
	} qw(batch periodic group adaptive);
	my ($reads, $removed, $largest, @wrong) = (0, 0, 0);
	my $files = sub { $node->safe_psql('postgres', 'SELECT segments_recycled FROM grouplog.stat') };

	while (($reads < 12 || $files->() < 30) && !@wrong
		&& !grep { process_is_gone($_->{pid}) } map { values %{ $_->{clients} } } @loads)
	{
		my ($out, $err) = ('', '');

		# plainly, or by a cursor that other files are recycled beneath
		my $status = $node->psql('postgres', $reads % 3 == 0 ?
			q(BEGIN; DECLARE c CURSOR FOR SELECT lsn, payload FROM grouplog.read_text();
			  CREATE TEMP TABLE t (lsn pg_lsn, payload text, before pg_lsn);
			  DO $$ DECLARE c refcursor := 'c'; l pg_lsn; p text; b pg_lsn; n int := 0; BEGIN LOOP FETCH c INTO l, p; EXIT WHEN NOT FOUND;
				INSERT INTO t VALUES (l, p, b); b := l; n := n + 1; IF n % 200 = 0 THEN PERFORM pg_sleep(0.01); END IF; END LOOP; END $$;
			  SELECT count(*), bool_and(before IS NULL OR before < lsn), bool_and(payload ~ '^\d+-\d+:([a-z]?)\1*$') FROM t; COMMIT) :
			q(SELECT count(*), bool_and(before IS NULL OR before < lsn), bool_and(payload ~ '^\d+-\d+:([a-z]?)\1*$')
			  FROM (SELECT lsn, payload, lag(lsn) OVER () AS before FROM grouplog.read_text()) t),
			stdout => \$out, stderr => \$err);

		$reads++;
		if ($status == 0)
		{
			push @wrong, $out unless $out =~ /^\d+\|t\|t$/;
		}
		elsif ($err =~ /were removed from the log/)
		{
			$removed++;
		}
		else
		{
			push @wrong, $err;
		}
		my $bytes = bytes_on_disk();
		$largest = $bytes if $bytes > $largest;
		sleep 0.05;
	}
	cmp_ok($reads, '>=', 12, 'H21 it was read beneath recycling');
	cmp_ok($files->(), '>=', 30, 'H6 files were recycled');
	finish_load($_, stop => 1) foreach @loads;
	note "H21 $reads reads, $removed of them too late; at most $largest bytes on disk";
	is(join('', map { $_->{errors} } @loads), '', 'H6 max_size, recycle: appends go on');
	is(join("\n", splice @wrong, 0, 3), '', 'H21 reads beneath recycling: complete, or a clear error');
	cmp_ok($largest, '<=', $budget, 'H6 the budget is kept');

	$node->safe_psql('postgres', 'SELECT grouplog.flush()');
	$recycled->();
	check_ledger($node, $ledger, 'H6 after recycling');
	my ($state, $message) = sql_error($node, q(SELECT * FROM grouplog.read('0/100020')));
	is($state, '55000', 'H6 a read below the oldest LSN is an error');
	like($message, qr/removed.*HINT/s, '... a clear one');

	# crashes in the middle of it: what old files held does not come back
	foreach my $round (1 .. 3)
	{
		my ($mode, $kind) = @{ [ [ 'batch', 'append' ], [ 'adaptive', 'batch' ], [ 'group', 'async' ] ]->[ $round - 1 ] };
		my $load = start_load($node, $ledger, clients => 4, mode => $mode, kind => $kind, batch => 4, records => 3000,
			size => sub { 8000 });
		wait_for_acks($load, $kind eq 'batch' ? 100 : 400);
		kill_server($node);
		finish_load($load);
		$node->start;
		wait_open($node);
		$recycled->();
		check_ledger($node, $ledger, "H6 crash $round while recycling");
		is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', '... verify agrees');
		cmp_ok(bytes_on_disk(), '<=', $budget, '... the budget is kept');
	}

	# a lower budget by a reload
	set_conf('grouplog.max_size', '5MB');
	append_some($node, $ledger, 'max_size lowered: appends go on', size => sub { 8000 }, records => 100);
	ok(wait_until(sub { bytes_on_disk() <= 5 * 1024 * 1024 }), '... and the budget is kept again') or diag bytes_on_disk();
	$recycled->();
	check_ledger($node, $ledger, 'max_size lowered');
}

# ---- min_free_space ----
{
	set_conf('grouplog.max_size', '-1');
	$node->append_conf('postgresql.conf', 'grouplog.min_free_space = 2147483647');
	$node->reload;
	ok($node->poll_query_until('postgres', q(SELECT refusal = 'min_free_space' FROM grouplog.status)), 'min_free_space: appends are refused');
	foreach my $mode (qw(batch periodic group adaptive))
	{
		my ($state, $message) = sql_error($node, "SELECT grouplog.append('x', '$mode')");
		is($state, '53100', "min_free_space, $mode: disk_full");
		like($message, qr/HINT/, '... with a hint');
	}
	check_ledger($node, $ledger, 'min_free_space: reads go on');
	kill_server($node);
	$node->start;
	check_ledger($node, $ledger, 'min_free_space: a start needs none');
	ok($node->poll_query_until('postgres', q(SELECT refusal = 'min_free_space' FROM grouplog.status)), 'min_free_space: seen after a start');
	my ($state) = sql_error($node, q(SELECT grouplog.append('x')));
	is($state, '53100', 'min_free_space: still refused after a start');
	$node->append_conf('postgresql.conf', 'grouplog.min_free_space = 0');
	$node->reload;
	ok($node->poll_query_until('postgres', 'SELECT refusal IS NULL FROM grouplog.status'), 'min_free_space lowered: taken again');
	append_some($node, $ledger, '... they work');

	# the log ends with its file, and there is no room for another: closed without a record
	my $segment = 1024 * 1024;
	my @size = (0);
	$ledger->{size}{9300} = sub { $size[ $_[0] ] };
	while ((my $left = $segment - lsn_number(status($node, 'insert_lsn')) % $segment) != $segment)
	{
		my $key = '9300-' . @size . ':';
		my $letter = chr(97 + @size % 26);
		my $span = $left < 96 ? 4096 : $left < 33_000 ? $left : 32_768;

		push @size, $span - 32 - length $key;
		note_append($ledger, 9300, $#size, 0,
			$node->safe_psql('postgres', "SELECT grouplog.append('$key' || repeat('$letter', $size[-1]), 'batch')"));
	}
	$node->append_conf('postgresql.conf', 'grouplog.min_free_space = 2147483647');
	$node->reload;
	ok($node->poll_query_until('postgres', q(SELECT refusal = 'min_free_space' FROM grouplog.status)), 'H24 the last file full, no room for another');
	unlink glob(log_directory($node) . '/spare-*');
	my $position = log_position($node);
	$node->stop('fast');
	like(log_since($node, $position), qr/grouplog closed at LSN [0-9A-F]+\/[0-9A-F]+, without a close record/, '... closed without a close record');
	unlike(log_since($node, $position), qr/could not make the last records durable/, '... but all is durable');
	$node->append_conf('postgresql.conf', 'grouplog.min_free_space = 0');
	$node->start;
	check_ledger($node, $ledger, 'H24 closed without a close record');
	like(status($node, 'recovery'), qr/^unclean at/, 'H24 ... and the start says what it found');
	append_some($node, $ledger, 'H24 ... appends go on');
	check_ledger($node, $ledger, 'at last');
}

$node->stop;
done_testing();
