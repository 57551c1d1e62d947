# Recovery with reads ahead of need finds what it finds without them: the same
# end, the same damage, wherever it lies.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $mb = 1024 * 1024;
my $node = new_node('ahead', conf => { 'grouplog.segment_size' => '8MB', 'grouplog.buffers' => '8MB' });

# Records of many sizes, some longer than what is read at once, in many groups.
sub append_records
{
	my ($from, $to) = @_;
	my $end;

	for (my $first = $from; $first <= $to; $first += 300)
	{
		$node->safe_psql('postgres',
			"SELECT count(grouplog.append_async(i || ':' || repeat('x', CASE WHEN i % 4000 = 0 THEN 1500000 WHEN i % 400 = 0 THEN 250000 ELSE i % 50 * 37 END)))
			FROM generate_series($first, $first + 299) AS i");
		$end = $node->safe_psql('postgres', 'SELECT grouplog.flush()');
	}
	return $end;
}

# What a start finds: state, recovery, problem, and what can be read.
sub found
{
	my ($method) = @_;

	$node->append_conf('postgresql.conf', "grouplog.io_method = '$method'");
	$node->start;
	wait_open($node);
	my $found = join ' | ', $node->safe_psql('postgres', 'SELECT state, recovery, problem FROM grouplog.status'),
	  ($node->psql('postgres', 'SELECT count(*), md5(string_agg(md5(payload), lsn::text)) FROM grouplog.read_text()'))[1] // 'no';
	my $used = $node->safe_psql('postgres', 'SELECT io_method FROM grouplog.status');
	kill_server($node);
	return ($found, $used);
}

sub same
{
	my ($name, $expected, $damage) = @_;
	my @found;

	foreach my $method ('sync', 'io_uring')
	{
		restore_log($node, 'saved');
		$damage->() if $damage;
		my ($found, $used) = found($method);
		push @found, $found;
		note "$name: $method is refused here" if $used ne $method;
	}
	is($found[1], $found[0], "$name: found the same");
	like($found[0], $expected, "... namely $expected");
}

my $end = lsn_number(append_records(1, 8100));
kill_server($node);
save_log($node, 'saved');

my @files = segment_files($node);
my $file = $files[-1];
my $used = 4096 + $end - $file->{first};
cmp_ok($used, '>', 4 * $mb, 'the newest file is read in many pieces');
cmp_ok($used, '<', 7 * $mb, '... and is not full');

same('the end', qr/^open\|unclean at /);
foreach my $place (4096 + $mb - 10, 4096 + $mb + 10, 4096 + 2 * $mb + 2000, $used - 2 * $mb, $used - 3 * $mb + 77)
{
	same("damage at offset $place", qr/^corrupt\|corrupt at /,
		sub { write_bytes($file->{path}, $place, '?' x 64) });
}
same('bytes behind the end', qr/^open\|torn at /,
	sub { write_bytes($file->{path}, $used + 5000, '?' x 64) });
same('bytes at the end of the file', qr/^open\|torn at /,
	sub { write_bytes($file->{path}, 8 * $mb + 4096 - 64, '?' x 64) });
same('a short file', qr/^open\|torn at /, sub { cut_file($file->{path}, $used - $mb + 100) });

# files of one run that continue each other are read in one go
restore_log($node, 'saved');
$node->start;
wait_open($node);
my $writer = writer_pid($node);
append_records(3901, 4800);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($writer)");
wait_for_writer($node, $writer);
append_records(1, 900);
kill_server($node);
system('rm', '-rf', scratch('saved')) == 0 or die;
save_log($node, 'saved');
same('a continuation', qr/^open\|unclean at /);
@files = segment_files($node);
same('damage before a continuation', qr/^corrupt\|corrupt at /,
	sub { write_bytes($files[-2]{path}, $files[-2]{bytes} - 5000, '?' x 64) });

done_testing();
