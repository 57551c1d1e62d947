# The ring full on a slow device, records at each limit, batches beyond the ring.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $have_faults = use_faults();
my $uring = (configured('io_method') // '') eq 'io_uring';
my $node = new_node('limits', start => 0,
	conf => {
		'grouplog.buffers'        => '128kB',
		'grouplog.io_method'      => configured('io_method') // 'sync',
		'grouplog.sync_period'    => '100ms',
		'grouplog.sync_lag_limit' => '10s',
		max_connections           => 45
	});
my $ledger = new_ledger();
my $limit = 32 * 1024 - 32;    # a quarter of the ring, less the record's header

$have_faults ? start_with_faults($node) : $node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION grouplog');

# A process that stops another one for 10 ms at a time.
sub brake
{
	my ($pid) = @_;
	my $child = fork // die "fork: $!";

	return $child if $child != 0;
	my $ended = 0;
	local $SIG{TERM} = sub { $ended = 1 };
	while (!$ended && kill 'STOP', $pid)
	{
		sleep 0.01;
		kill 'CONT', $pid;
		sleep 0.003;
	}
	kill 'CONT', $pid;
	POSIX::_exit(0);
}

# ---- H19: everybody appends, small and large at once, on a slow device ----
{
	# a sync takes 10 ms; where that can't be had, the writer stops for as long, again and again
	my $brake = $uring || !$have_faults ? brake(writer_pid($node)) : undef;
	set_fault(0, calls => ['write'], delay => 10) if $have_faults;

	# all connections but those that the tests need, and those kept for superusers
	my $small = start_load($node, $ledger, clients => 29, mode => 'periodic', records => 6000, size => sub { 10 + $_[0] % 100 });
	my $large = start_load($node, $ledger, clients => 3, mode => 'periodic', records => 60, size => sub { $limit - 100 + $_[0] % 50 });
	my @waiting = map { start_load($node, $ledger, clients => 2, mode => $_, records => 60, size => sub { 20000 }) }
	  qw(batch group adaptive);

	# the large ones come through although small ones never cease
	my $large_acked = finish_load($large);
	is($large_acked, 3 * 60, 'H19 large records are not starved by small ones') or diag $large->{errors};
	foreach my $waiting (@waiting)
	{
		is(finish_load($waiting), 2 * 60, 'H19 ... nor those who wait') or diag $waiting->{errors};
	}
	# whoever is starved now stays so: none of the small ones ceases yet
	ok(wait_until(sub { !grep { -z $_->{out} } values %{ $small->{clients} } }), 'H19 no session is starved');
	finish_load($small, stop => 1);
	unlike($small->{errors}, qr/ERROR|FATAL/, 'H19 no session was refused');
	kill 'TERM', $brake if defined $brake;
	cmp_ok($node->safe_psql('postgres', 'SELECT buffers_full FROM grouplog.stat'), '>', 0, 'H19 the ring was full');
	my %acked;
	foreach my $key (keys %{ $ledger->{acked} })
	{
		$acked{$1}++ if $key =~ /^(\d+)-/ && exists $small->{clients}{$1};
	}
	my ($least, $most) = (sort { $a <=> $b } map { $acked{$_} // 0 } keys %{ $small->{clients} })[ 0, -1 ];
	note "H19 small records of a session: $least to $most";
	cmp_ok($least, '>', 0, 'H19 ... not one');
	clear_faults() if $have_faults;
	$node->safe_psql('postgres', q(SET statement_timeout = '180s'; SELECT grouplog.flush()));
	check_ledger($node, $ledger, 'H19 after it');
}

# ---- H22: payloads at each limit ----
{
	my @sizes = (0, 1, 31, 32, 33, 4064, 4065, 4096, 8159, 8160, 8161, $limit - 33, $limit - 1, $limit);

	$node->safe_psql('postgres', 'CREATE TABLE sent (lsn pg_lsn PRIMARY KEY, what text, payload bytea)');
	foreach my $size (@sizes)
	{
		foreach my $byte ('00', 'ff', '41')
		{
			$node->safe_psql('postgres', qq(
				WITH p AS (SELECT coalesce(decode(repeat('$byte', $size), 'hex'), '') AS payload)
				INSERT INTO sent SELECT grouplog.append(payload, mode), mode || ': $size of $byte', payload
				FROM p, unnest(ARRAY['adaptive', 'batch', 'group', 'periodic']) AS mode));
		}
	}
	my ($state, $message) = sql_error($node, 'SELECT grouplog.append(convert_to(repeat(\'x\', ' . ($limit + 1) . '), \'UTF8\'))');
	is($state, '54000', 'H22 one byte over the limit: program_limit_exceeded');
	like($message, qr/$limit bytes.*HINT.*grouplog\.buffers/s, '... with the limit, and the setting that raises it');
	($state) = sql_error($node, 'SELECT grouplog.append(repeat(\'x\', 100000000))');
	is($state, '54000', 'H22 100 MB: the same');
	($state, $message) = sql_error($node,
		"SELECT grouplog.append_batch_text(ARRAY['before', repeat('x', $limit + 1), 'after'])");
	is($state, '54000', 'H22 in a batch, too');
	is($node->safe_psql('postgres', q(SELECT count(*) FROM grouplog.read() WHERE payload = 'before')), 0,
		'... before anything of it is appended');

	# bytes that look like records: whole blocks of this very log
	my $file = $node->safe_psql('postgres', 'SELECT file FROM grouplog.segments ORDER BY number LIMIT 1');
	foreach my $offset (0, 4096, 4128, 8192)
	{
		$node->safe_psql('postgres', qq(
			WITH p AS (SELECT pg_read_binary_file('grouplog/$file', $offset, 8192) AS payload)
			INSERT INTO sent SELECT grouplog.append(payload), 'log bytes at $offset', payload FROM p));
	}

	# toasted: compressed, external, both; short header
	$node->safe_psql('postgres', q(
		CREATE TABLE stored (what text, payload text);
		ALTER TABLE stored ALTER payload SET STORAGE external;
		INSERT INTO stored VALUES ('external', repeat('e', 20000)), ('short', 'short');
		CREATE TABLE packed (what text, payload text);
		INSERT INTO packed VALUES ('compressed', repeat('c', 30000)),
		  ('both', (SELECT string_agg(md5(i::text), '') || repeat('b', 4000) FROM generate_series(1, 800) i));
		INSERT INTO sent SELECT grouplog.append(payload), what, convert_to(payload, 'UTF8') FROM stored;
		INSERT INTO sent SELECT grouplog.append(payload), what, convert_to(payload, 'UTF8') FROM packed;
		INSERT INTO sent SELECT grouplog.append(left(payload, 7)), 'slice', convert_to(left(payload, 7), 'UTF8') FROM packed WHERE what = 'both';
	));

	# a thousand payloads at once
	$node->safe_psql('postgres', q(
		SELECT grouplog.append_batch(array_agg(decode(md5(i::text), 'hex') ORDER BY i)) FROM generate_series(1, 1000) i;
		INSERT INTO sent SELECT lsn, 'one of a thousand', decode(md5(n::text), 'hex')
		FROM (SELECT lsn, row_number() OVER (ORDER BY lsn) AS n FROM grouplog.read() WHERE length(payload) = 16
			AND lsn > (SELECT max(lsn) FROM sent)) r));
	is($node->safe_psql('postgres', q(SELECT count(*) FROM sent WHERE what = 'one of a thousand')), 1000, 'H22 1,000 at once');

	my $differing = q(SELECT coalesce(string_agg(what, ', '), 'none') FROM sent LEFT JOIN grouplog.read() r USING (lsn) WHERE r.payload IS DISTINCT FROM sent.payload);
	is($node->safe_psql('postgres', $differing), 'none', 'H22 every payload is read back as it was');
	kill_server($node);
	$node->start;
	is($node->safe_psql('postgres', $differing), 'none', 'H22 ... after a crash, too');
	is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', 'H22 verify agrees');
}

# ---- batches ----
{
	foreach my $case ([ 1000, 10 ], [ 1000, 1500 ], [ 50, $limit ], [ 20000, 0 ])
	{
		my ($count, $size) = @$case;

		foreach my $mode (qw(batch periodic adaptive group))
		{
			my $start = status($node, 'insert_lsn - 1');
			my $last = $node->safe_psql('postgres',
				"SELECT grouplog.append_batch_text(array_agg(left(i || ':' || repeat('x', $size), greatest($size, 7)) ORDER BY i), '$mode') FROM generate_series(1, $count) i");
			$node->safe_psql('postgres', 'SELECT grouplog.flush()');
			is($node->safe_psql('postgres', qq(
					SELECT count(*), max(lsn) = '$last', bool_and(n = number)
					FROM (SELECT lsn, row_number() OVER (ORDER BY lsn) AS n, split_part(payload, ':', 1)::int AS number
						FROM grouplog.read_text('$start')) t)),
				"$count|t|t", "H22 a batch of $count records of $size bytes, $mode: all, in order, the last LSN returned");
		}
	}

	my @loads = map {
		start_load($node, $ledger, clients => 2, mode => $_, records => 200, size => sub { 500 })
	} qw(batch periodic);
	my $size = $limit - 32;
	my $session = $node->background_psql('postgres');
	$session->query_safe("SELECT grouplog.append_batch_text(array_agg('b:' || i || repeat('x', $size)), 'batch') FROM generate_series(1, 30) i");
	$session->quit;
	finish_load($_) foreach @loads;
	is(join('', map { $_->{errors} } @loads), '', 'H19 a batch larger than the ring beside other sessions');
}

$node->stop;
done_testing();
