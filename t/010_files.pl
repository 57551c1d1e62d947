# What recovery says to files that were torn, cut, changed or lost.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A batch is one group because no period ends in it.
my $node = new_node('files', conf => { 'grouplog.sync_period' => '100s', 'grouplog.sync_lag_limit' => '200s' });

# A batch: one group.  Record i of batch b is "b.i:" and letters.
my %lsn;     # "b.i" => LSN

sub append_batch
{
	my ($batch, $count, $size) = @_;
	wait_open($node);
	my $before = status($node, 'insert_lsn - 1');
	my $last = $node->safe_psql('postgres',
		"SELECT grouplog.append_batch_text(array_agg('$batch.' || i || ':' || repeat('x', $size) ORDER BY i), 'batch')"
		  . " FROM generate_series(1, $count) i");
	my $rows = $node->safe_psql('postgres',
		"SELECT split_part(payload, ':', 1), lsn FROM grouplog.read_text('$before') WHERE payload LIKE '$batch.%'");

	foreach my $row (split /\n/, $rows)
	{
		my ($key, $lsn) = split /\|/, $row;
		$lsn{$key} = lsn_number($lsn);
	}
	return lsn_number($last);
}

# What is there: the keys, in order
sub keys_there
{
	my ($out, $err) = ('', '');

	$node->psql('postgres',
		q(SELECT split_part(payload, ':', 1) FROM grouplog.read_text() ORDER BY lsn),
		stdout => \$out, stderr => \$err);
	return $out;
}

# the first so many of them
sub first_keys
{
	my ($count) = @_;

	return $node->safe_psql('postgres',
		"SELECT split_part(payload, ':', 1) FROM grouplog.read_text(max_records => $count)");
}

sub expected
{
	my (@lists) = @_;

	return join "\n", map { my ($b, $n) = @$_; map { "$b.$_" } 1 .. $n } @lists;
}

# ---- H4: the last group torn at every 512 bytes ----
append_batch(1, 5, 300);
append_batch(2, 24, 300);
kill_server($node);
save_log($node, 'base');

my $span = 32 * int((32 + length('2.10:') + 300 + 31) / 32);
my $group_start = $lsn{'2.1'};
my $group_end = $lsn{'2.24'} + $span;
my ($path, $start_offset) = file_at($node, $group_start);
my (undef, $end_offset) = file_at($node, $group_end);
my $whole = -s $path;

# how many records of batch 2 lie before an offset in the file
sub whole_before
{
	my ($offset) = @_;

	return scalar grep { (file_at($node, $lsn{"2.$_"}))[1] + $span <= $offset } 1 .. 24;
}

foreach my $way ('cut', 'zeros', 'garbage', 'one sector lost')
{
	my @wrong;
	my $first = 512 * int($start_offset / 512);

	# the ways take turns beyond the first one, which goes through all sectors
	for (my $offset = $first; $offset < $end_offset; $offset += $way eq 'cut' ? 512 : 1536)
	{
		restore_log($node, 'base');
		if ($way eq 'cut')
		{
			cut_file($path, $offset);
		}
		elsif ($way eq 'zeros')
		{
			write_bytes($path, $offset, "\0" x ($whole - $offset));
		}
		elsif ($way eq 'garbage')
		{
			write_bytes($path, $offset, join '', map { chr int rand 256 } 1 .. 4096);
		}
		else
		{
			write_bytes($path, $offset, "\0" x 512);
		}

		# the sector in which the group begins holds acknowledged bytes, too
		next if $offset < $start_offset;

		$node->start;
		wait_open($node);
		my $expected = expected([ 1, 5 ], [ 2, whole_before($offset) ]);
		my $there = keys_there();
		push @wrong, "at $offset: " . (split /\n/, $there) . ' records, not ' . (split /\n/, $expected)
		  if $there ne $expected;
		push @wrong, "at $offset: state " . status($node, 'state') if status($node, 'state') ne 'open';
		my $recovery = status($node, 'recovery');
		push @wrong, "at $offset: $recovery"
		  unless $recovery =~ /^(torn|unclean) /;
		push @wrong, "at $offset: not torn" if $way eq 'garbage' && $recovery !~ /^torn .* bytes left behind/;
		kill_server($node);
		last if @wrong > 5;
	}
	is(join('; ', @wrong), '', "H4 last group torn at every 512 bytes ($way): ends at the last whole record");
}

# ---- H5: a hole, ghosts after it; two restarts, with an append ----
{
	restore_log($node, 'base');
	write_bytes($path, (file_at($node, $lsn{'2.10'}))[1], "\0" x 512);
	$node->start;
	wait_open($node);
	my $hole = expected([ 1, 5 ], [ 2, 9 ]);
	is(keys_there(), $hole, 'H5 the log ends at the hole');
	kill_server($node);
	$node->start;
	wait_open($node);
	is(keys_there(), $hole, 'H5 ... a second time');
	append_batch(3, 2, 50);
	is(keys_there(), "$hole\n3.1\n3.2", 'H5 appends go on after it');
	kill_server($node);
	$node->start;
	wait_open($node);
	is(keys_there(), "$hole\n3.1\n3.2", 'H5 the ghosts do not come back');
	$node->restart;
	wait_open($node);
	is(keys_there(), "$hole\n3.1\n3.2", 'H5 ... not after a clean start, either');
	is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', 'H5 verify agrees');
	my ($state) = sql_error($node, sprintf "SELECT grouplog.wait_durable('%s')", lsn_text($lsn{'2.11'}));
	is($state, '22000', 'H5 a ghost counts as lost');
	kill_server($node);
}

# ---- a clean log whose last group is damaged: the close record tells ----
{
	restore_log($node, 'base');
	$node->start;
	append_batch(3, 2, 50);
	$node->stop('fast');
	my ($file, $offset) = file_at($node, $lsn{'3.2'});
	write_bytes($file, $offset + 40, 'X');
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'corrupt', 'H7 damage in the last group of a log that was closed is corruption');
	$node->stop('fast');
}

# ---- H7: one bit, in an acknowledged record in mid-log ----
{
	restore_log($node, 'base');
	my ($file, $offset) = file_at($node, $lsn{'1.3'});
	my $bad = lsn_text($lsn{'1.3'});
	my $name = (split m{/}, $file)[-1];

	write_bytes($file, $offset + 100, chr(ord(read_bytes($file, $offset + 100, 1)) ^ 4));
	my @before = map { "$_->{name} $_->{bytes}" } segment_files($node);
	my $position = log_position($node);
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'corrupt', 'H7 bit flipped in the newest file: corrupt');
	my ($state, $message) = sql_error($node, q(SELECT grouplog.append('x')));
	is($state, 'XX001', 'H7 appends fail with data_corrupted');
	like($message, qr/LSN \Q$bad\E in file ".*\Q$name\E"/, 'H7 ... naming LSN and file');
	like(log_since($node, $position), qr/LSN \Q$bad\E in file ".*\Q$name\E"/, 'H7 so does the server log');
	foreach my $mode (qw(periodic group))
	{
		($state) = sql_error($node, "SELECT grouplog.append('x', '$mode')");
		is($state, 'XX001', "H7 ... in mode $mode, too");
	}
	($state, $message) = sql_error($node, 'SELECT * FROM grouplog.read()');
	is($state, 'XX001', 'H7 a read stops there with an error');
	like($message, qr/\Q$bad\E/, '... that names the LSN');
	is(first_keys(2), expected([ 1, 2 ]), 'H7 the records before are read');
	is($node->safe_psql('postgres', "SELECT split_part(payload, ':', 1) FROM grouplog.read_text('$bad')"),
		"1.4\n1.5\n" . expected([ 2, 24 ]), 'H7 the records after are read');
	is($node->safe_psql('postgres', 'SELECT bad_lsn FROM grouplog.verify() WHERE NOT ok'), $bad,
		'H7 verify names the LSN');
	($state) = sql_error($node, q(CREATE DATABASE gone; SET statement_timeout = '180s'; DROP DATABASE gone));
	is($state, '00000', 'H17 a corrupt log does not hold up DROP DATABASE');
	is(join(' ', map { "$_->{name} $_->{bytes}" } segment_files($node)), "@before", 'H7 nothing is removed');

	# restarts change nothing
	$node->restart;
	wait_open($node);
	is(status($node, 'state'), 'corrupt', 'H7 still corrupt after a restart');
	is(join(' ', map { "$_->{name} $_->{bytes}" } segment_files($node)), "@before", 'H7 nothing is removed by that');

	($state) = sql_error($node, sprintf "SELECT grouplog.accept_end('%s')", lsn_text($lsn{'1.3'} + 8));
	is($state, '22023', 'H7 accept_end refuses an LSN inside a record');
	$node->safe_psql('postgres', 'CREATE ROLE nobody_special');
	$node->safe_psql('postgres', 'GRANT USAGE ON SCHEMA grouplog TO nobody_special; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA grouplog TO nobody_special');
	($state) = sql_error($node, "SET ROLE nobody_special; SELECT grouplog.accept_end('$bad')");
	is($state, '42501', 'H7 accept_end is for superusers');

	save_log($node, 'corrupt');
	$node->safe_psql('postgres', "SELECT grouplog.accept_end('$bad')");
	is(status($node, 'state'), 'open', 'H7 accept_end opens the log again');
	is(keys_there(), expected([ 1, 2 ]), 'H7 ... with what was before that LSN');
	append_batch(4, 3, 100);
	my $all = expected([ 1, 2 ], [ 4, 3 ]);
	is(keys_there(), $all, 'H7 appends go on');
	my $given_up = lsn_text($lsn{'2.5'});
	($state, $message) = sql_error($node, "SELECT grouplog.wait_durable('$given_up')");
	is($state, '22000', 'H7 what was given up is known as lost');
	like($message, qr/the record at LSN \Q$given_up\E was lost\n.*given up with grouplog\.accept_end/s, '... and not said to be lost in a crash');
	kill_server($node);
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'open', 'H7 open after a crash');
	is(keys_there(), $all, 'H7 ... with the same records');
	is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', 'H7 ... and verify agrees');
	kill_server($node);

	# accept all: the end that keeps the records on both sides
	restore_log($node, 'corrupt');
	$node->start;
	wait_open($node);
	my $end = lsn_text($group_end);
	$node->safe_psql('postgres', "SELECT grouplog.accept_end('$end')");
	append_batch(4, 3, 100);
	kill_server($node);
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'open', 'H7 accepted with the damage in it: open after a crash');
	is($node->safe_psql('postgres', "SELECT split_part(payload, ':', 1) FROM grouplog.read_text('$bad')"),
		"1.4\n1.5\n" . expected([ 2, 24 ], [ 4, 3 ]), 'H7 ... and nothing more is given up');
	kill_server($node);
}

# accept_end is the writer's work: another writer can do it, too
{
	restore_log($node, 'corrupt');
	$node->start;
	wait_open($node);
	my $pid = writer_pid($node);
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	$node->poll_query_until('postgres', "SELECT writer_pid IS NOT NULL AND writer_pid <> $pid FROM grouplog.status");
	is(status($node, 'state'), 'corrupt', 'H7 another writer: still corrupt');
	my $bad = lsn_text($lsn{'1.3'});
	my ($state, $message) = sql_error($node, "SET statement_timeout = '180s'; SELECT grouplog.accept_end('$bad')");
	is($state, '00000', 'H7 ... accept_end works') or diag $message;
	($state, $message) = sql_error($node, q(SET statement_timeout = '180s'; SELECT grouplog.append('x', 'batch')));
	is($state, '00000', 'H7 ... and appends do') or diag $message;
	kill_server($node);
}

# ---- several files ----
restore_log($node, 'base');
$node->start;
append_batch("f$_", 100, 8000) foreach 1 .. 5;
kill_server($node);
save_log($node, 'many');
my @files = segment_files($node);
cmp_ok(scalar @files, '>=', 5, 'several files');
my @order = map { "f$_" } 1 .. 5;
my @all_keys = (map({ "1.$_" } 1 .. 5), map({ "2.$_" } 1 .. 24), map { my $b = $_; map { "$b.$_" } 1 .. 100 } @order);

# keys of records that begin in [from, to)
sub keys_between
{
	my ($from, $to) = @_;

	return join "\n", grep { $lsn{$_} >= $from && $lsn{$_} < $to } @all_keys;
}

# H7 in an older file
{
	my $middle = $files[ $#files - 2 ];
	my ($key) = grep { $lsn{$_} > $middle->{first} + 100_000 } @all_keys;
	my ($file, $offset) = file_at($node, $lsn{$key});
	my $bad = lsn_text($lsn{$key});

	write_bytes($file, $offset + 1000, 'X');
	$node->start;
	wait_open($node);
	my ($state, $message) = sql_error($node, 'SELECT * FROM grouplog.read()');
	is($state, 'XX001', 'H7 bit flipped in an older file: a read stops there');
	like($message, qr/LSN \Q$bad\E in file ".*\Q$middle->{name}\E"/, '... naming LSN and file');
	is($node->safe_psql('postgres', "SELECT split_part(payload, ':', 1) FROM grouplog.read_text('$bad')"),
		keys_between($lsn{$key} + 1, 2**62), 'H7 the records after it are read');
	is($node->safe_psql('postgres', 'SELECT bad_lsn FROM grouplog.verify() WHERE NOT ok'), $bad,
		'H7 verify names it');
	append_batch(5, 2, 100);
	kill_server($node);
}

# ---- H9: length fields that go nowhere ----
{
	my @lengths = (
		[ 'negative', pack('l<', -1) ], [ 'the smallest', pack('L<', 2**31) ], [ '0', pack('L<', 0) ],
		[ 'below a header', pack('L<', 31) ], [ '2^31 - 1', pack('L<', 2**31 - 1) ],
		[ 'just past the segment', pack('L<', 1024 * 1024 + 1) ], [ 'another, possible one', pack('L<', 64) ]);
	my $middle = $files[ $#files - 2 ];
	my ($key, $after) = grep { $lsn{$_} > $middle->{first} + 100_000 } @all_keys;
	my $bad = lsn_text($lsn{$key});

	# under a running server, in an older file
	restore_log($node, 'many');
	my ($file, $offset) = file_at($node, $lsn{$key});
	my $right = read_bytes($file, $offset, 4);
	$node->start;
	wait_open($node);
	foreach my $case (@lengths)
	{
		my ($name, $bytes) = @$case;

		write_bytes($file, $offset, $bytes);
		my ($state, $message) = sql_error($node, q(SET statement_timeout = '180s'; SELECT * FROM grouplog.read()));
		is($state, 'XX001', "H9 length $name: a read stops there");
		like($message, qr/LSN \Q$bad\E in file/, '... naming the LSN');
		is($node->safe_psql('postgres', "SELECT split_part(payload, ':', 1) FROM grouplog.read_text('$bad', 1)"), $after,
			'... the next record is read');
		is($node->safe_psql('postgres', q(SET statement_timeout = '180s'; SELECT bad_lsn FROM grouplog.verify() WHERE NOT ok)), $bad,
			'... verify names it');
	}
	write_bytes($file, $offset, $right);
	is(keys_there(), join("\n", @all_keys), 'H9 put right, all is read');
	kill_server($node);

	# in the last group, where recovery looks
	($file, $offset) = file_at($node, $lsn{'f5.100'});
	foreach my $case (@lengths)
	{
		my ($name, $bytes) = @$case;

		restore_log($node, 'many');
		write_bytes($file, $offset, $bytes);
		$node->start;
		wait_open($node);
		is(status($node, 'state'), 'open', "H9 length $name in the last record: open");
		is(keys_there(), join("\n", @all_keys[ 0 .. $#all_keys - 1 ]), '... and all before it is read');
		kill_server($node);
	}
}

# ---- H8: a file in the middle is missing, or cut ----
{
	restore_log($node, 'many');
	my $missing = $files[ $#files - 2 ];
	my $next = $files[ $#files - 1 ];
	my $gap = lsn_text($missing->{first});
	unlink $missing->{path};
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'corrupt', 'H8 a missing file: corrupt');
	my ($state, $message) = sql_error($node, q(SELECT grouplog.append('x')));
	is($state, 'XX001', 'H8 appends fail');
	like($message, qr/\Q$gap\E/, 'H8 ... and name the gap');
	like($message, qr/segment missing/, 'H8 ... and what it is');
	($state, $message) = sql_error($node, 'SELECT * FROM grouplog.read()');
	is($state, 'XX001', 'H8 a read stops at the gap');
	my $before = keys_between(0, $missing->{first});
	is(first_keys(scalar(split /\n/, $before)), $before, 'H8 the records before it are read');
	my $bad = $1 if $message =~ /corrupt at LSN ([0-9A-F\/]+)/;
	is($node->safe_psql('postgres', "SELECT split_part(payload, ':', 1) FROM grouplog.read_text('$bad')"),
		keys_between($next->{first}, 2**62), 'H8 the records after it are read');
	is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM grouplog.verify() WHERE NOT ok'), 't', 'H8 verify sees it');
	$node->safe_psql('postgres', "SELECT grouplog.accept_end('$gap')");
	is(keys_there(), $before, 'H8 accept_end at the gap keeps what is before it');
	append_batch(6, 2, 100);
	kill_server($node);
	$node->start;
	wait_open($node);
	is(keys_there(), "$before\n6.1\n6.2", 'H8 ... and appends after it survive');
	kill_server($node);

	# cut at a record's boundary
	restore_log($node, 'many');
	my ($key) = grep { $lsn{$_} > $missing->{first} + 300_000 } @all_keys;
	my ($file, $offset) = file_at($node, $lsn{$key});
	cut_file($file, $offset);
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'corrupt', 'H8 a middle file cut at a record boundary: corrupt');
	($state, $message) = sql_error($node, q(SELECT grouplog.append('x')));
	like($message, qr/\Q$missing->{name}\E/, 'H8 ... the file is named');
	($state, $message) = sql_error($node, 'SELECT * FROM grouplog.read()');
	is($state, 'XX001', 'H8 a read stops there');
	kill_server($node);

	# zeros there, size right
	restore_log($node, 'many');
	write_bytes($file, $offset, "\0" x ($missing->{bytes} - $offset));
	$node->start;
	wait_open($node);
	($state, $message) = sql_error($node, 'SELECT * FROM grouplog.read()');
	is($state, 'XX001', 'H8 zeros in a middle file: a read stops there');
	kill_server($node);

	# the oldest files may be gone: that is what truncate does, too
	restore_log($node, 'many');
	unlink $files[0]{path};
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'open', 'H8 without its oldest file the log opens');
	is(keys_there(), keys_between($files[1]{first}, 2**62), 'H8 ... and the rest is read');
	kill_server($node);
}

# ---- H3: the newest file is header only, empty, garbage ----
{
	my $newest = $files[-1];
	my $before = keys_between(0, $newest->{first});

	restore_log($node, 'many');
	cut_file($newest->{path}, 4096);
	$node->start;
	wait_open($node);
	is(status($node, 'state'), 'open', 'H3 newest file header only: open');
	is(keys_there(), $before, 'H3 ... with the records before it');
	append_batch(7, 2, 100);
	kill_server($node);
	$node->start;
	wait_open($node);
	is(keys_there(), "$before\n7.1\n7.2", 'H3 ... and appends go on');
	kill_server($node);

	restore_log($node, 'many');
	write_bytes($newest->{path}, 4096, join '', map { chr int rand 256 } 1 .. 8192);
	$node->start;
	wait_open($node);
	is(keys_there(), $before, 'H3 garbage after the header: torn') if status($node, 'state') eq 'open';
	like(status($node, 'recovery'), qr/^(torn|corrupt)/, 'H3 garbage after the header: said');
	kill_server($node);

	foreach my $case ([ 'empty', sub { cut_file($_[0], 0) } ],
		[ 'cut in the header', sub { cut_file($_[0], 1000) } ],
		[ 'garbage', sub { write_bytes($_[0], 0, join '', map { chr int rand 256 } 1 .. 4096) } ],
		[ 'zeros', sub { write_bytes($_[0], 0, "\0" x 4096) } ])
	{
		restore_log($node, 'many');
		$case->[1]->($newest->{path});
		$node->start;
		wait_open($node);
		is(status($node, 'state'), 'corrupt', "H3 newest file $case->[0]: corrupt");
		my ($state, $message) = sql_error($node, q(SELECT grouplog.append('x')));
		like($message, qr/\Q$newest->{name}\E/, '... and it is named');
		is(first_keys(scalar(split /\n/, $before)), $before, '... the records before it are read');
		my $lsn = lsn_text($newest->{first});
		$node->safe_psql('postgres', "SELECT grouplog.accept_end('$lsn')");
		append_batch(7, 2, 100);
		kill_server($node);
		$node->start;
		wait_open($node);
		is(status($node, 'state'), 'open', '... accept_end opens it, for good');
		is(keys_there(), "$before\n7.1\n7.2", '... appends go on');
		kill_server($node);
	}
}

done_testing();
