# A device that fails while files are recycled.

use strict;
use warnings FATAL => 'all';

use Errno qw(EIO);
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Faults of renames and directories reach every server; those of writes, only one
# that uses plain system calls.
plan skip_all => 'these faults do not reach io_uring' if (configured('io_method') // '') eq 'io_uring';
use_faults() or plan skip_all => 'there is no C compiler';

my $node = new_node('recycle', start => 0,
	conf => {
		'grouplog.io_method' => 'sync',
		'grouplog.max_size'  => '5MB',
		'grouplog.on_full'   => 'recycle'
	});
my $ledger = new_ledger();

# What was recycled is no longer expected.
my $recycled = sub {
	my $oldest = lsn_number(status($node, 'oldest_lsn'));

	forget_before($ledger, $oldest);
};

start_with_faults($node);
$node->safe_psql('postgres', 'CREATE EXTENSION grouplog');
append_some($node, $ledger, 'the budget is used up', size => sub { 8000 }, records => 400);
cmp_ok($node->safe_psql('postgres', 'SELECT segments_recycled FROM grouplog.stat'), '>', 0, '... files are recycled');

foreach my $case (
	[ 'sync of the file',      { calls => ['fsync'],  files => ['spare'] } ],
	[ 'write of the file',     { calls => ['write'],  files => ['spare'] } ],
	[ 'rename',                { calls => ['rename'], files => ['spare'] } ],
	[ 'sync of the directory', { calls => ['fsync'],  files => ['directory'] } ])
{
	my ($what, $fault) = @$case;

	foreach my $skip (0, 1)
	{
		my $name = "H11 recycling, EIO at a $what" . ($skip ? ', the second one' : '');

		# before the load, which needs four files more
		set_fault(0, %$fault, error => EIO, skip => $skip, count => 1);
		my $load = start_load($node, $ledger, clients => 2, mode => 'batch', records => 250,
			size => sub { 8000 }, keep_going => 1);

		ok(wait_until(sub { fault_hits(0) > 0 }), "$name: it has struck");
		finish_load($load);
		clear_faults();
		ok(wait_until(sub { status($node, 'refusal') eq '' }), "$name: over")
		  or diag status($node, 'problem');
		append_some($node, $ledger, "$name: appends go on", size => sub { 8000 }, records => 50);
	}
}
$recycled->();
check_ledger($node, $ledger, 'H11 faults while recycling');
kill_server($node);
$node->start;
wait_open($node);
$recycled->();
check_ledger($node, $ledger, 'H11 faults while recycling, after a crash');

# ---- H20: a crash at each step of a file's making and recycling ----
my $crashes = 0;
$node->stop;
start_with_faults($node);
foreach my $case (
	[ 'a header is written',            { calls => ['write'],  files => ['spare'] } ],
	[ 'a spare is synced',              { calls => [ 'fsync', 'fdatasync' ], files => ['spare'] } ],
	[ 'a segment gets its name',        { calls => ['rename'], files => ['segment'] } ],
	[ 'a spare or old file is renamed', { calls => ['rename'], files => ['spare'] } ],
	[ 'the directory is synced',        { calls => ['fsync'],  files => ['directory'] } ],
	[ 'the control file is written',    { calls => [ 'write', 'rename', 'fsync' ], files => ['control'] } ],
	[ 'its first group is written',     { calls => ['write'],  files => ['segment'] } ])
{
	my ($what, $fault) = @$case;

	foreach my $skip (0 .. (long_run() ? 9 : 1))
	{
		my $name = "H20 crash when $what, time $skip";
		my $mode = (qw(batch group adaptive periodic))[ $crashes++ % 4 ];
		my $load = start_load($node, $ledger, clients => 2, mode => $mode, endless => 1, size => sub { 8000 });

		set_fault(0, %$fault, delay => 600_000, skip => $skip, count => 1);
		ok(wait_until(sub { fault_hits(0) > 0 }), "$name: it has come so far");
		kill_server($node);
		finish_load($load);
		clear_faults();
		start_with_faults($node);
		wait_open($node);
		is(status($node, 'state'), 'open', "$name: the log opens");
		$recycled->();
		check_ledger($node, $ledger, $name, $mode eq 'periodic' ? (lossy => only_the_end($load)) : ());
		append_some($node, $ledger, "$name: appends go on");
	}
}
is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', 'H20 verify agrees');

$node->stop;
done_testing();
