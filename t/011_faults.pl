# Devices that fail, fill up, or write less than they were given.

use strict;
use warnings FATAL => 'all';

use Errno qw(EIO ENOSPC);
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

# Faults of io_uring's own: test/faults.
plan skip_all => 'these faults do not reach io_uring' if (configured('io_method') // '') eq 'io_uring';
use_faults() or plan skip_all => 'there is no C compiler';

my $node = new_node('faults',
	start => 0,
	conf  => {
		'grouplog.io_method'      => 'sync',
		'grouplog.sync_period'    => '100ms',
		'grouplog.sync_lag_limit' => '200ms'
	});
my $ledger = new_ledger();

start_with_faults($node);
$node->safe_psql('postgres', 'CREATE EXTENSION grouplog');

sub crash_and_check
{
	my ($name, %options) = @_;

	$node->safe_psql('postgres', 'SELECT grouplog.flush()') unless $options{broken};
	check_ledger($node, $ledger, "$name, before a crash", %options) unless $options{broken};
	kill_server($node);
	clear_faults();
	start_with_faults($node);
	check_ledger($node, $ledger, "$name, after a crash", %options);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.verify() WHERE NOT ok'),
		0, "$name: verify finds nothing wrong");
}

sub stat_of
{
	my ($column) = @_;

	return $node->safe_psql('postgres', "SELECT $column FROM grouplog.stat");
}

# Clients of each kind under a fault that strikes once, or a few times.
sub under_load
{
	my ($name, %fault) = @_;
	my @loads = map { start_load($node, $ledger, clients => 2, mode => $_,
		records => 1500, endless => $_ ne 'periodic', size => sub { ($_[0] * 7919) % 3000 }) }
	  qw(batch periodic adaptive);

	wait_for_acks($loads[0], 100);
	set_fault($_, %{ $fault{$_} }) foreach keys %fault;
	ok(wait_until(sub { fault_hits(0) > 0 }), "$name: it has struck");
	wait_for_acks($loads[0], 200 + answers_to($loads[0]));
	finish_load($_, stop => 1) foreach @loads;
	is(join('', map { $_->{errors} =~ /ERROR/ ? $_->{errors} : '' } @loads), '', "$name: no append failed");
	is(status($node, 'state'), 'open', "$name: the log stays open");
	clear_faults();
}

# ---- H11: once ----
{
	my $position = log_position($node);

	under_load('H11 write: EIO once', 0 => { calls => ['write'], files => ['segment'], error => EIO, count => 1 });
	cmp_ok(stat_of('write_errors'), '>=', 1, 'H11 the error is counted');
	cmp_ok(stat_of('continuations'), '>=', 1, 'H11 a continuation file took over');
	like(status($node, 'last_error'), qr/could not write to file ".*\.seg": Input\/output error/,
		'H11 the error is shown in status');
	like(log_since($node, $position), qr/grouplog leaves the file/, 'H11 ... and said in the log');
	crash_and_check('H11 write: EIO once');

	under_load('H11 write: EIO once of three', 0 => { calls => ['write'], error => EIO, skip => 3, count => 1 });
	crash_and_check('H11 write: EIO once of three');
}

# ---- H11: the first write into a file, which is left as empty as it was begun ----
{
	my $segment = 1024 * 1024;
	my $size = 40_000;
	my $number = 0;
	my $left = sub {
		$segment - lsn_number(status($node, 'durable_lsn')) % $segment;
	};
	my $append = sub {
		my $payload = Ledger::payload_of(9200, ++$number, $size);

		note_append($ledger, 9200, $number, $size,
			$node->safe_psql('postgres', "SELECT grouplog.append('$payload', 'batch')"));
	};

	$append->() while $left->() > 36_000;
	my $position = log_position($node);
	my $before = stat_of('continuations');
	set_fault(0, calls => ['write'], files => ['segment'], error => EIO, skip => 1, count => 1);
	$append->();
	clear_faults();
	like(log_since($node, $position), qr/grouplog leaves the file .* from LSN [0-9A-F]+\/[0-9A-F]*00000 on/,
		'H11 EIO at the first write into a file: it is left');
	is(stat_of('continuations'), $before + 1, 'H11 ... and the one that took over is counted');
	crash_and_check('H11 EIO at the first write into a file');
}

# ---- H14: short writes ----
{
	under_load('H14 short writes', 0 => { calls => ['write'], bytes => 4096, count => 300 });
	crash_and_check('H14 short writes');

	under_load('H14 short write, then EIO',
		0 => { calls => ['write'], bytes => 4096, count => 1 },
		1 => { calls => ['write'], error => EIO, count => 1 });
	crash_and_check('H14 short write, then EIO');
}

# ---- H12: for good ----
{
	my $load = start_load($node, $ledger, clients => 4, mode => 'batch');

	wait_for_acks($load, 100);
	set_fault(0, calls => ['write'], files => [ 'segment', 'spare' ], error => EIO);
	ok(wait_until(sub { status($node, 'refusal') eq 'device' }), 'H12 EIO for good: appends are refused');
	finish_load($load);
	like($load->{errors}, qr/outcome of the record at LSN [0-9A-F\/]+ is unknown/, 'H12 those who waited are told: unknown');
	is(scalar(() = $load->{errors} =~ /ERROR: /g), 4, 'H12 every waiter was answered');

	my ($state, $message) = sql_error($node, q(SELECT grouplog.append('9100-1:')));
	is($state, '58000', 'H12 further appends fail at once');
	like($message, qr/HINT/, '... with a hint');
	($state) = sql_error($node, q(SELECT grouplog.append('9100-1:', 'periodic')));
	is($state, '58000', '... in periodic mode, too');
	check_ledger($node, $ledger, 'H12 reads go on');
	is($node->safe_psql('postgres', 'SELECT 1'), 1, 'H12 the server lives');
	($state) = sql_error($node, q(SET statement_timeout = '180s'; SELECT grouplog.flush()));
	is($state, '58030', 'H12 flush fails');

	# a new writer does not help, and does no harm
	($state) = sql_error($node, q(CREATE DATABASE gone; SET statement_timeout = '180s'; DROP DATABASE gone));
	is($state, '00000', 'H17 a device that fails does not hold up DROP DATABASE');
	my $pid = writer_pid($node);
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	ok(wait_for_writer($node, $pid), 'H12 the writer can be terminated meanwhile');
	($state) = sql_error($node, q(SET statement_timeout = '180s'; SELECT grouplog.append('9100-1:', 'batch')));
	is($state, '58000', 'H12 ... and then they still fail');

	clear_faults();
	ok(wait_until(sub { status($node, 'refusal') eq '' }), 'H12 the device is back: appends are taken again');
	append_some($node, $ledger, 'H12 ... and work');
	$ledger->{size}{9100} = sub { 0 };
	$ledger->{sent}{9100} = 1;
	crash_and_check('H12 EIO for a while');
}

# The same, but the server crashes while it lasts.
{
	my $load = start_load($node, $ledger, clients => 4, mode => 'adaptive');

	wait_for_acks($load, 100);
	set_fault(0, calls => ['write'], files => [ 'segment', 'spare' ], error => EIO);
	finish_load($load);
	crash_and_check('H12 crash while it lasts', broken => 1);
	append_some($node, $ledger, 'H12 ... appends go on');
}

# ... or is shut down.
{
	my $load = start_load($node, $ledger, clients => 4, mode => 'group', options => '-c grouplog.group_window=3ms');

	wait_for_acks($load, 100);
	set_fault(0, calls => ['write'], files => [ 'segment', 'spare' ], error => EIO);
	finish_load($load);
	my $position = log_position($node);
	ok($node->stop('fast', fail_ok => 1), 'H12 shutdown is not held up');
	like(log_since($node, $position), qr/could not make the last records durable/, '... and says what it could not do');
	clear_faults();
	start_with_faults($node);
	check_ledger($node, $ledger, 'H12 shut down while it lasts');
	append_some($node, $ledger, 'H12 ... appends go on');
}

# ---- failures between files ----
foreach my $case (
	[ 'header write', { calls => ['write'], files => ['spare'], error => EIO } ],
	[ 'rename',       { calls => ['rename'], files => ['segment'], error => EIO } ],
	[ 'directory sync', { calls => ['fsync'], files => ['directory'], error => EIO } ])
{
	my ($what, $fault) = @$case;

	foreach my $count (1, 3)
	{
		my $name = "H11 $what: EIO " . ($count == 1 ? 'once' : 'thrice');

		# before the load, which needs two files more
		set_fault(0, %$fault, count => $count);
		my $load = start_load($node, $ledger, clients => 3, mode => 'batch',
			records => 250, size => sub { 3000 }, keep_going => 1);

		finish_load($load);
		ok(fault_hits(0) > 0, "$name: it has struck");
		clear_faults();
		ok(wait_until(sub { status($node, 'refusal') eq '' }), "$name: over");
		append_some($node, $ledger, "$name: appends go on");
		crash_and_check($name);
	}
}

# ---- a device that is slow: every process must still answer ----
{
	set_fault(0, calls => ['write'], delay => 300);
	my @loads = map { start_load($node, $ledger, clients => 2, mode => $_, keep_going => 1, records => 20,
			options => '-c statement_timeout=250ms') } qw(batch group adaptive);
	my ($state) = sql_error($node, q(CREATE DATABASE gone; SET statement_timeout = '180s'; DROP DATABASE gone));
	is($state, '00000', 'H17 a slow device does not hold up DROP DATABASE');
	finish_load($_) foreach @loads;
	cmp_ok($loads[0]{states}{57014} // 0, '>', 0, 'H17 ... nor a cancel');
	clear_faults();
	crash_and_check('H17 slow device');
}

# ---- H13: no space for a file ----
{
	set_fault(0, calls => ['write'], files => ['spare'], error => ENOSPC);
	my $load = start_load($node, $ledger, clients => 2, mode => 'batch', size => sub { 8000 });
	finish_load($load);
	like($load->{errors}, qr/ERROR: .*could not write to file ".*spare-.*": No space left on device/,
		'H13 no space for a new file: appends fail');
	unlike($load->{errors}, qr/unknown/, 'H13 ... before they claim');
	my ($state, $message) = sql_error($node, q(SELECT grouplog.append(repeat('x', 8000))));
	is($state, '53100', 'H13 disk_full');
	like($message, qr/HINT/, '... with a hint');
	like(status($node, 'refusal'), qr/no_space/, 'H13 shown in status');
	check_ledger($node, $ledger, 'H13 reads go on');

	# a start needs no space
	kill_server($node);
	start_with_faults($node);
	check_ledger($node, $ledger, 'H13 a start needs no space');

	clear_faults();
	ok(wait_until(sub { status($node, 'refusal') eq '' }), 'H13 space comes back: appends are taken again');
	append_some($node, $ledger, 'H13 ... without a restart', size => sub { 8000 });
	crash_and_check('H13 no space for a while');

	# a spare may have been ready at that start: use up what there is
	set_fault(0, calls => ['write'], files => ['spare'], error => ENOSPC);
	$load = start_load($node, $ledger, clients => 2, mode => 'batch', size => sub { 8000 });
	finish_load($load);
	kill_server($node);
	unlink glob(log_directory($node) . '/spare-*');
	start_with_faults($node);
	check_ledger($node, $ledger, 'H13 a start without space or spare');
	($state) = sql_error($node, q(SET statement_timeout = '180s'; SELECT grouplog.append('9101-1:')));
	is($state, '53100', 'H13 ... and appends are refused');
	$node->stop('fast');
	start_with_faults($node);
	check_ledger($node, $ledger, 'H13 a stop without space or spare');
	clear_faults();
	ok(wait_until(sub { status($node, 'refusal') eq '' }), 'H13 space comes back after such a start');
	append_some($node, $ledger, 'H13 ... appends go on');
}

# ---- a read error at the start is neither a torn tail nor corruption ----
{
	kill_server($node);
	set_fault(0, calls => ['read'], files => ['segment'], error => EIO, skip => 2);
	start_with_faults($node);
	ok(wait_until(sub { status($node, 'state') ne 'starting' }), 'read error at the start: an answer');
	is(status($node, 'state'), 'unavailable', '... the log does not open');
	my ($state, $message) = sql_error($node, q(SELECT grouplog.append('9101-1:')));
	is($state, '58000', '... appends say why');
	($state, $message) = sql_error($node, q(SELECT * FROM grouplog.read()));
	is($state, '58030', '... so do reads');
	clear_faults();
	ok(wait_until(sub { status($node, 'state') eq 'open' }), '... it opens when the device is back');
	check_ledger($node, $ledger, 'read error at the start: over');
}

# ---- direct I/O that fails is not taken for a file system without: the page cache may
# hold what the disk never got ----
{
	kill_server($node);
	set_fault(0, calls => ['direct'], files => ['segment'], error => EIO);
	start_with_faults($node);
	ok(wait_until(sub { status($node, 'state') ne 'starting' }), 'no direct open at the start: an answer');
	is(status($node, 'state'), 'unavailable', '... the log does not open');
	clear_faults();
	ok(wait_until(sub { status($node, 'state') eq 'open' }), '... it opens when that works again');
	check_ledger($node, $ledger, 'no direct open at the start: over');
}

# ---- buffered files, fdatasync ----
{
	$node->stop;
	$node->append_conf('postgresql.conf', q(grouplog.sync_method = 'fdatasync'));
	start_with_faults($node);
	under_load('H11 fdatasync: EIO once', 0 => { calls => ['fdatasync'], error => EIO, count => 1 });
	cmp_ok(stat_of('sync_errors'), '>=', 1, 'H11 fdatasync: the error is counted');
	crash_and_check('H11 fdatasync: EIO once');
	under_load('H14 short buffered writes', 0 => { calls => ['write'], bytes => 1000, count => 500 });
	crash_and_check('H14 short buffered writes');

	my $load = start_load($node, $ledger, clients => 4, mode => 'batch');
	wait_for_acks($load, 100);
	set_fault(0, calls => [ 'fdatasync', 'fsync' ], files => [ 'segment', 'spare' ], error => EIO);
	finish_load($load);
	is(scalar(() = $load->{errors} =~ /ERROR: /g), 4, 'H12 fdatasync: every waiter was answered');
	clear_faults();
	ok(wait_until(sub { status($node, 'refusal') eq '' }), 'H12 fdatasync: over');
	append_some($node, $ledger, 'H12 fdatasync: appends go on');
	crash_and_check('H12 fdatasync: EIO for a while');
}

$node->stop;
done_testing();
