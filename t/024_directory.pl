# What the log says to what lies in its directory and is not its own: other names,
# another control file, another cluster's log, another server.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('directory');
my $directory = log_directory($node);

sub append_many
{
	foreach (1 .. $_[0])
	{
		$node->safe_psql('postgres',
			q(SELECT grouplog.append_batch_text(array_agg(i || repeat('x', 8000) ORDER BY i), 'batch') FROM generate_series(1, 100) i));
	}
}

# What is there, or nothing where that cannot be read
sub records
{
	my ($out, $err) = ('', '');

	$node->psql('postgres',
		q(SELECT count(*), md5(string_agg(lsn || payload, NULL ORDER BY lsn)) FROM grouplog.read_text()),
		stdout => \$out, stderr => \$err);
	return $out;
}

append_many(5);
my $all = records();
like($all, qr/^500\|/, 'there are records');
kill_server($node);
save_log($node, 'many');
my @files = segment_files($node);

# ---- H11: what a failed write of the control file has left is no part of the next ----
{
	append_to_file("$directory/control.tmp", 'x' x 512);
	link "$directory/control.tmp", "$directory/left" or die;
	$node->start;
	is(records(), $all, 'H11 what was left of a control file is not in the way');
	append_many(1);
	is(read_bytes("$directory/left", 0, 512), 'x' x 512, '... and not written again: its last write may land late');
	is((stat "$directory/control")[3], 1, '... the control file is another');
	kill_server($node);
	unlink "$directory/left";
}

# ---- H10: a segment's name on something that is no file ----
foreach my $kind ('symbolic link', 'directory')
{
	my $path = "$directory/0000FFFF-0000000000100000.seg";

	restore_log($node, 'many');
	if ($kind eq 'directory') { mkdir $path or die; }
	else                      { symlink $files[0]{path}, $path or die; }
	$node->start;
	ok($node->poll_query_until('postgres', q(SELECT state = 'unavailable' FROM grouplog.status)),
		"H10 $kind with the name of a segment: the log does not open");
	my ($state, $message) = sql_error($node, q(SELECT grouplog.append('x')));
	is($state, '42809', '... appends fail');
	like($message, qr/0000FFFF-0000000000100000\.seg" is not a regular file/, '... it is named');
	if ($kind eq 'directory') { rmdir $path or die; }
	else                      { unlink $path or die; }
	ok($node->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status)),
		'... once it is gone the log opens');
	kill_server($node);
}

# ---- H10: what is not ours ----
{
	restore_log($node, 'many');
	my %strangers = (
		'README'                              => 'text',
		'pgsql_tmp123'                        => 'x',
		'00000001-0000000000100000.seg.bak'   => 'x' x 5000,
		'0000000a-0000000000100000.seg'       => 'lower case',
		'00000000-0000000000100000.seg'       => 'number 0',
		'spare-1'                             => 'x',
		'spare-0000000G'                      => 'x',
		'control.old'                         => 'x',
		'.hidden'                             => '');
	foreach my $name (keys %strangers)
	{
		append_to_file("$directory/$name", $strangers{$name});
	}
	mkdir "$directory/folder" or die;
	append_to_file("$directory/folder/file", 'x');
	mkdir "$directory/spare-00000FFF" or die;
	symlink '/nowhere', "$directory/dangling" or die;
	append_to_file("$directory/spare-00000FF0", 'too short');
	append_to_file("$directory/spare-00000FF1.tmp", 'left over');
	append_to_file("$directory/control.tmp", 'left over');

	my $position = log_position($node);
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'open', 'H10 strangers in the directory: open');
	is(records(), $all, 'H10 ... every record is read');
	like(log_since($node, $position), qr/files in log directory "grouplog" are not grouplog's/, 'H10 ... they are mentioned');
	append_many(2);
	$node->safe_psql('postgres', 'SELECT grouplog.truncate(durable_lsn) FROM grouplog.status');
	$node->restart;
	wait_open($node);
	my @gone = grep { !-e "$directory/$_" && !-l "$directory/$_" } keys %strangers,
	  'folder/file', 'spare-00000FFF', 'dangling';
	is("@gone", '', 'H10 ... none is removed');
	ok(!-e "$directory/spare-00000FF0" && !-e "$directory/spare-00000FF1.tmp", 'H10 our own leftovers are');
	is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', 'H10 verify agrees');
	$node->stop;
}

# A segment's name on a directory or a link is not passed over in silence: the
# next number is taken, so the log would go on without it.
{
	restore_log($node, 'many');
	my $newest = $files[-1];
	rename $newest->{path}, scratch('moved.seg') or die;
	symlink scratch('moved.seg'), $newest->{path} or die;
	$node->start;
	wait_open($node);
	my $answer = status($node, 'state') eq 'open' ? 'open, without its records' : 'refused';
	$answer = 'open' if $answer ne 'refused' && records() eq $all;
	isnt($answer, 'open, without its records',
		'H10 a link in place of the newest file: its records are not dropped in silence');
	kill_server($node);
}

# ---- the control file ----
{
	restore_log($node, 'many');
	unlink "$directory/control" or die;
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'unavailable', 'control file missing: the log does not open');
	my ($state, $message) = sql_error($node, q(SELECT grouplog.append('x')));
	is($state, 'XX001', '... appends say why');
	like($message, qr/no control file.*HINT/s, '... with a hint');
	($state) = sql_error($node, 'SELECT * FROM grouplog.read()');
	is($state, 'XX001', '... reads, too');
	is($node->safe_psql('postgres', 'SELECT 1'), 1, '... the server is up');
	$node->stop;

	foreach my $case ([ 'damaged', sub { write_bytes("$directory/control", 20, 'X') } ],
		[ 'empty', sub { cut_file("$directory/control", 0) } ],
		[ 'short', sub { cut_file("$directory/control", 4095) } ])
	{
		restore_log($node, 'many');
		$case->[1]->();
		$node->start;
		wait_open($node);
		is(status($node, 'state'), 'unavailable', "control file $case->[0]: the log does not open");
		($state, $message) = sql_error($node, q(SELECT grouplog.append('x')));
		like($message, qr/control file ".*control" is damaged/, '... and says so');
		$node->stop;
	}

	# it is tried again: put right, the log opens without a restart
	restore_log($node, 'many');
	rename "$directory/control", scratch('control') or die;
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'unavailable', 'control file away');
	rename scratch('control'), "$directory/control" or die;
	ok($node->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status)), '... and back: the log opens');
	is(records(), $all, '... with every record');
	$node->stop;
}

# ---- another cluster ----
{
	my $other = new_node('other', start => 0);

	restore_log($node, 'many');
	system('cp', '-a', $directory, log_directory($other)) == 0 or die;
	$other->start;
	$other->safe_psql('postgres', 'CREATE EXTENSION grouplog');
	wait_open($other);
	is(status($other, 'state'), 'unavailable', "another cluster's log does not open");
	my ($state, $message) = sql_error($other, q(SELECT grouplog.append('x')));
	is($state, '55000', '... appends say why');
	like($message, qr/another cluster.*adopt/s, '... with a hint');

	$other->append_conf('postgresql.conf', 'grouplog.adopt = on');
	$other->restart;
	$other->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status));
	like($other->safe_psql('postgres', q(SELECT grouplog.append('mine'))), qr{/}, 'adopted: appends work');
	is($other->safe_psql('postgres', 'SELECT count(*) FROM grouplog.read()'), 1,
		'adopted: records of another database stay out of sight');
	is($other->safe_psql('postgres', 'SELECT sum(records) FROM grouplog.verify()'), 501,
		'adopted: but are there');
	$other->adjust_conf('postgresql.conf', 'grouplog.adopt', 'off');
	$other->restart;
	wait_open($other);
	is(status($other, 'state'), 'open', 'adopted once, it is ours');

	# a file of another log
	$other->stop;
	system('rm', '-rf', log_directory($other)) == 0 or die;
	$other->start;
	$other->safe_psql('postgres', q(SELECT grouplog.append('other')));
	$other->stop;
	restore_log($node, 'many');
	my ($foreign) = segment_files($other);
	is($foreign->{name}, $files[0]{name}, 'a file of another log has the same name');
	system('cp', '-a', $foreign->{path}, $files[0]{path}) == 0 or die;
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'unavailable', '... but is not taken for one of this log');
	($state, $message) = sql_error($node, q(SELECT grouplog.append('x')));
	like($message, qr/another log/, '... appends say why');
	$node->stop;

	# two servers, one directory
	my $shared = scratch('shared_log');
	restore_log($node, 'many');
	foreach my $server ($node, $other)
	{
		$server->append_conf('postgresql.conf', "grouplog.directory = '$shared'");
		$server->append_conf('postgresql.conf', 'grouplog.adopt = on');
	}
	$node->start;
	$node->safe_psql('postgres', q(SELECT grouplog.append('first')));
	$other->start;
	wait_open($other);
	is(status($other, 'state'), 'unavailable', 'two servers on one directory: the second one does not open it');
	($state, $message) = sql_error($other, q(SELECT grouplog.append('x')));
	is($state, '55006', '... appends say why');
	like($message, qr/in use by another server/, '... in words');
	$node->safe_psql('postgres', q(SELECT grouplog.append('second')));
	kill_server($node);
	ok($other->poll_query_until('postgres', q(SELECT state = 'open' FROM grouplog.status)),
		'... and opens it when the first one is gone');
	$other->stop;
}

done_testing();
