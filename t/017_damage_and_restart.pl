# Damage at the ends of the log, accept_end, and what a later start makes of it.

use strict;
use warnings FATAL => 'all';

use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %handed_out;

sub files
{
	my ($node) = @_;

	return sort glob $node->data_dir . '/grouplog/*.seg';
}

sub flip
{
	my ($path, $offset) = @_;

	open my $file, '+<:raw', $path or die "$path: $!";
	seek $file, $offset, 0;
	read $file, my $byte, 1;
	seek $file, $offset, 0;
	print $file chr(ord($byte) ^ 0x40);
	close $file;
}

sub opened
{
	my ($node) = @_;

	wait_open($node);
	return status($node, 'state');
}

# Append, and see that no LSN comes twice.
sub append
{
	my ($node, $count) = @_;
	my @lsns = map { $node->safe_psql('postgres', "SELECT grouplog.append('record $_')") } 1 .. $count;
	my @twice = grep { $handed_out{$_}++ } @lsns;

	is("@twice", '', "... $count appends, no LSN twice");
	return @lsns;
}

sub accept_and_restart
{
	my ($node, $what) = @_;
	my $problem = status($node, 'problem');
	my ($lsn) = $problem =~ /can be ended at ([0-9A-F]+\/[0-9A-F]+)/;

	($lsn) = $problem =~ /corrupt at LSN ([0-9A-F]+\/[0-9A-F]+)/ unless defined $lsn;
	ok(defined $lsn, "$what: the message says where the log can be ended");
	$node->safe_psql('postgres', "SELECT grouplog.accept_end('$lsn')");
	is(status($node, 'state'), 'open', '... accept_end opens it');
	append($node, 3);
	$node->restart;
	is(opened($node), 'open', '... for good');
	append($node, 2);
	is($node->safe_psql('postgres', q(SELECT count(*) FROM (SELECT * FROM grouplog.read_text(NULL, 1000)) AS r
		WHERE payload LIKE 'record%') ) >= 5, 1, '... and what was appended since is there');
}

foreach my $case (
	[ 'the only file has a bad header',   1, sub { flip($_[0], 100) } ],
	[ 'the only file is gone',            1, sub { unlink $_[0] } ],
	[ 'the oldest of two has a bad header', 2, sub { flip($_[0], 100) } ],
	[ 'the newest of two has a bad header', 2, sub { flip($_[1], 100) } ],
	[ 'the newest of two is gone',        2, sub { unlink $_[1] } ],
	[ 'a bad record, then a bad header',  2, sub { flip($_[0], 4096 + 164); flip($_[1], 100) } ])
{
	my ($what, $runs, $damage) = @$case;
	(my $name = $what) =~ s/\W+/_/g;
	my $node = new_node($name);

	%handed_out = ();
	foreach my $run (1 .. $runs)
	{
		append($node, 10);
		$node->restart if $run < $runs;
		opened($node);
	}
	$node->stop;
	$damage->(files($node));
	$node->start;
	is(opened($node), 'corrupt', "$what: it is noticed");
	my ($state) = sql_error($node, q(SELECT grouplog.append('x')));
	is($state, 'XX001', '... appends are refused');
	accept_and_restart($node, $what);

	# nor is the damage found again when the file that ended the log there has gone
	$node->safe_psql('postgres',
		'SELECT grouplog.truncate((SELECT max(first_lsn) FROM grouplog.segments))');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.segments'), 1, '... all before the last file goes');
	$node->restart;
	is(opened($node), 'open', '... and the log stays open');
	append($node, 1);
	$node->stop;
}

# A run that crashed before its first record was durable leaves a file without one, which
# the next run's file cuts to its header.  Then that one's header goes bad.
{
	my $node = new_node('cut_to_its_header');

	%handed_out = ();
	append($node, 1);
	kill_server($node);
	my ($empty) = files($node);
	write_bytes($empty, 4096, "\0" x 4096);
	$node->start;
	append($node, 1);
	$node->stop;
	is(-s $empty, 4096, 'a file without a record is cut to its header');
	flip((files($node))[1], 100);
	$node->start;
	is(opened($node), 'corrupt', '... and the one after it has a bad header: it is noticed');
	accept_and_restart($node, '... and the one after it has a bad header');
	$node->stop;
}

# Two files are missing: whoever passes over the first gap hears of the second one.
{
	my $node = new_node('two_gaps');

	%handed_out = ();
	my @first;
	foreach my $run (1 .. 5)
	{
		push @first, (append($node, 5))[0];
		$node->restart if $run < 5;
		opened($node);
	}
	$node->stop;
	unlink((files($node))[1, 3]);
	$node->start;
	is(opened($node), 'corrupt', 'two files are missing: it is noticed');
	my $after;
	foreach my $gap ('the first', 'the second')
	{
		my ($state, $message) = sql_error($node, sprintf(
			'SELECT count(*) FROM (SELECT lsn FROM grouplog.read(%s)) AS r', defined $after ? "'$after'" : 'NULL'));
		is($state, 'XX001', "... $gap gap ends a read");
		($after) = $message =~ /corrupt at LSN ([0-9A-F]+\/[0-9A-F]+)/;
	}
	is($node->safe_psql('postgres', "SELECT count(*), min(lsn) FROM grouplog.read('$after')"), "5|$first[4]",
		'... who passes over both reads the rest');
	my ($state) = sql_error($node, "SELECT count(*) FROM (SELECT lsn FROM grouplog.read('$first[2]')) AS r");
	is($state, 'XX001', '... who begins between them hears of the second');
	$node->stop;
}

# Holes were accepted in a file.  That does not excuse what it holds beyond them.
{
	my $node = new_node('accepted_within');

	%handed_out = ();
	my @lsns = append($node, 10);
	kill_server($node);
	flip((files($node))[0], 4096 + 164);
	$node->start;
	is(opened($node), 'corrupt', 'a bad record: it is noticed');
	$node->safe_psql('postgres', "SELECT grouplog.accept_end('$lsns[8]')");
	append($node, 2);
	$node->restart;
	is(opened($node), 'open', '... the log is ended behind it');
	append($node, 2);
	$node->stop;
	my @three = files($node);
	is(scalar @three, 3, '... two files more');
	flip($three[0], 100);
	unlink $three[1];
	$node->start;
	is(opened($node), 'corrupt', '... its header goes bad, and what says that it matters no more is missing: it is noticed');
	$node->stop;
}

done_testing();
