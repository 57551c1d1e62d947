# The checker that all the other tests trust: fed with right answers it is
# content, fed with wrong ones it names each.

use strict;
use warnings FATAL => 'all';

use Digest::MD5 qw(md5_hex);
use Ledger qw(:DEFAULT payload_of script_of numbers_at read_answers read_errors settle plain_errors);
use Test::More;

my $size = sub { $_[0] % 3 };

# A ledger of two clients in one database and one in another, whose records the
# server acknowledged by turns; and the rows that a right log gives.
sub honest
{
	my $ledger = new_ledger();
	my @rows;
	my $lsn = 0x100000;

	foreach my $client (1 .. 3)
	{
		$ledger->{size}{$client} = $size;
		$ledger->{sent}{$client} = 10;
		$ledger->{database}{$client} = $client < 3 ? 'one' : 'two';
	}
	foreach my $number (1 .. 10)
	{
		foreach my $client (1 .. 3)
		{
			my $payload = payload_of($client, $number, $size->($number));
			my $key = "$client-$number";

			$ledger->{acked}{$key} = { lsn => $lsn, time => 1000 + $number };
			Ledger::note_owner($ledger, $lsn, $key);
			push @rows, [ $ledger->{database}{$client}, $lsn, $key, length $payload, md5_hex($payload) ];
			$lsn += 64;
		}
	}
	return ($ledger, \@rows);
}

# missing, wrong and disorder, in one text
sub verdict
{
	my ($ledger, $rows, %options) = @_;
	my $verdict = judge_records($ledger, $rows, databases => [ 'one', 'two' ], %options);

	return join "\n", (map { "missing: $_" } @{ $verdict->{missing} }),
	  (map { "wrong: $_" } @{ $verdict->{wrong} }),
	  (map { "disorder: $_" } @{ $verdict->{disorder} }),
	  (map { "reused: $_" } @{ $ledger->{reused} });
}

# judge NAME, what is expected (a pattern; '' for nothing), what is done to
# ledger and rows before
sub judge
{
	my ($name, $expected, $change, %options) = @_;
	my ($ledger, $rows) = honest();

	$change->($ledger, $rows);
	my $text = verdict($ledger, $rows, %options);

	ref $expected ? like($text, $expected, $name) : is($text, $expected, $name);
	return ($ledger, $rows);
}

# row 13 is 2-5, in the middle of database one
judge('a right log', '', sub { });
judge('a record lost', qr/^missing: 2-5 at 0\/100340$/, sub { splice @{ $_[1] }, 13, 1 });
judge('the first one lost', qr/^missing: 1-1 at 0\/100000$/, sub { splice @{ $_[1] }, 0, 1 });
judge('the last one lost', qr/^missing: 3-10 at /, sub { pop @{ $_[1] } });
judge('all lost', qr/^(missing: .*\n?){30}\z/, sub { @{ $_[1] } = () });
judge('a record twice, further on', qr/disorder: 2-5 is there twice/,
	sub { push @{ $_[1] }, [ @{ $_[1][13] } ]; $_[1][-1][1] = 0x200000 });
judge('a record twice, in place', qr/disorder: 2-5 is there twice/,
	sub { splice @{ $_[1] }, 13, 0, [ @{ $_[1][13] } ] });
judge('two records swapped', qr/wrong: 1-5 was acknowledged at 0\/100300, is at 0\/100340/,
	sub { ($_[1][12][1], $_[1][13][1]) = ($_[1][13][1], $_[1][12][1]) });
judge('two rows read in the wrong order', qr/disorder: 0\/100300 after 0\/100340/,
	sub { @{ $_[1] }[ 12, 13 ] = @{ $_[1] }[ 13, 12 ] });
judge('a byte changed', qr/^wrong: 2-5 at 0\/100340 is not what was sent/,
	sub { $_[1][13][4] = md5_hex('2-5:gg') });
judge('a record of nobody', qr/^wrong: 77-1 at 0\/200000 was never sent$/,
	sub { push @{ $_[1] }, [ 'one', 0x200000, '77-1', 5, 'x' ] });
judge('no record of ours at all', qr/^wrong: \\x00ff at 0\/200000 was never sent$/,
	sub { push @{ $_[1] }, [ 'one', 0x200000, '\x00ff', 5, 'x' ] });
judge('a record that was not sent yet', qr/^wrong: 1-11 at 0\/200000 was never sent$/,
	sub { push @{ $_[1] }, [ 'one', 0x200000, '1-11', 5, 'x' ] });
judge('a record in another database', qr/^wrong: 2-5 at 0\/100340 is in database two, not one$/,
	sub { $_[1][13][0] = 'two' });
judge('a record elsewhere than acknowledged', qr/wrong: 2-10 was acknowledged at 0\/100700, is at 0\/200000/,
	sub { $_[1][28][1] = 0x200000 });
judge('a record within another one', qr/disorder: 77-1 at 0\/100350 lies within the record before it/,
	sub { splice @{ $_[1] }, 14, 0, [ 'one', 0x100350, '77-1', 5, 'x' ] });

# LSNs, over restarts: the first check was content
{
	my ($ledger, $rows) = judge('before a restart', '', sub { });

	$ledger->{acked}{'1-11'} = { lsn => 0x100340, time => 2000 };
	$ledger->{sent}{1} = 11;
	Ledger::note_owner($ledger, 0x100340, '1-11');
	like(verdict($ledger, $rows), qr/reused: 0\/100340: 2-5, then 1-11/, 'an LSN acknowledged twice');

	# read before, never acknowledged, gone; then another one is there
	($ledger, $rows) = honest();
	push @$rows, [ 'one', 0x200000, '1-11', 5, md5_hex(payload_of(1, 11, 2)) ];
	$ledger->{sent}{1} = 12;
	is(verdict($ledger, $rows), '', 'a record on its way, read');
	$rows->[-1] = [ 'one', 0x200000, '1-12', 5, md5_hex(payload_of(1, 12, 0)) ];
	like(verdict($ledger, $rows), qr/reused: 0\/200000: 1-11, then 1-12/, 'an LSN read twice, with other records');

	# lost in periodic mode, then overwritten or back again
	($ledger, $rows) = honest();
	my $lost = pop @$rows;
	my @seen;
	is(verdict($ledger, $rows, lossy => sub { @seen = @{ $_[0] }; '' }), '', 'a suffix may be lost where that is allowed');
	is("$seen[0]{key} @seen[1 .. $#seen]", '3-10 ', '... and is told');
	is(verdict($ledger, $rows), '', '... and is no longer expected');
	push @$rows, $lost;
	like(verdict($ledger, $rows), qr/wrong: 3-10 was refused \(lost in a crash\)/, '... and must not come back');
	$rows->[-1] = [ 'one', $lost->[1] + 32, '1-11', 5, md5_hex(payload_of(1, 11, 2)) ];
	$ledger->{sent}{1} = 11;
	like(verdict($ledger, $rows), qr/reused: 0\/100760: 1-11, where a record was lost/, '... nor may its bytes be used again');
}
judge('what the caller says of a loss', qr/^missing: too much$/, sub { pop @{ $_[1] } }, lossy => sub { 'too much' });
judge('a loss in the middle, where a suffix may be lost', qr/missing: 2-5 at 0\/100340: a hole, 0\/100700 is there/,
	sub { splice @{ $_[1] }, 13, 1 }, lossy => sub { '' });

foreach my $case (
	[ 'the newest record is lost', '', 3, sub { pop @{ $_[1] } } ],
	[ 'the newest record of somebody else is lost', qr/^missing: 3-10 at 0\/\S+, which may not be lost$/, 1, sub { pop @{ $_[1] } } ],
	[ 'one that is not the newest is lost', qr/missing: lost 0\/100340, but 0\/\S+ is there/, 2, sub { splice @{ $_[1] }, 13, 1 } ])
{
	my ($what, $verdict, $client, $change) = @$case;

	judge("only_the_end: $what", $verdict, $change, lossy => only_the_end({ clients => { $client => {} } }));
}

# ---- errors' promises ----
judge('a refused record is absent', '', sub { note_refused($_[0], 4, 1, 0) });
judge('a refused record is there', qr/^wrong: 4-1 was refused \(noted\), is at 0\/200000$/,
	sub { note_refused($_[0], 4, 1, 0); push @{ $_[1] }, [ 'one', 0x200000, '4-1', 4, md5_hex('4-1:') ] });
judge('an unsure record is absent', '', sub { note_unsure($_[0], 4, 1, 0, '0/200000') });
judge('an unsure record is absent although nothing has crashed', qr/^missing: 4-1 at 0\/200000, noted$/,
	sub { note_unsure($_[0], 4, 1, 0, '0/200000') }, uncrashed => 1);
judge('an unsure record is there', '',
	sub { note_unsure($_[0], 4, 1, 0, '0/200000'); push @{ $_[1] }, [ 'one', 0x200000, '4-1', 4, md5_hex('4-1:') ] });
judge('an unsure record is there, but not whole', qr/^wrong: 4-1 at 0\/200000 is not what was sent/,
	sub { note_unsure($_[0], 4, 1, 0, '0/200000'); push @{ $_[1] }, [ 'one', 0x200000, '4-1', 4, md5_hex('4-1') ] });
judge('an unsure record is not where it was said to be', qr/wrong: 4-1 was said to be at 0\/200000, is at 0\/200020/,
	sub { note_unsure($_[0], 4, 1, 0, '0/200000'); push @{ $_[1] }, [ 'one', 0x200020, '4-1', 4, md5_hex('4-1:') ] });
judge('an unsure record is absent, a later one of its session there', qr/^missing: 4-1 at 0\/200000: a hole, 0\/200020 is there$/,
	sub {
		note_unsure($_[0], 4, 1, 0, '0/200000');
		note_append($_[0], 4, 2, 0, '0/200020');
		push @{ $_[1] }, [ 'one', 0x200020, '4-2', 4, md5_hex(payload_of(4, 2, 0)) ];
	});
judge('... unless it was removed since', '',
	sub {
		note_unsure($_[0], 4, 1, 0, '0/200000');
		note_append($_[0], 4, 2, 0, '0/200020');
		push @{ $_[1] }, [ 'one', 0x200020, '4-2', 4, md5_hex(payload_of(4, 2, 0)) ];
	}, oldest => 0x200020);
judge('the order of a session', qr/^disorder: 4-1 at 0\/200040 comes after 4-2$/,
	sub {
		note_unsure($_[0], 4, 2, 0);
		push @{ $_[1] }, [ 'one', 0x200000, '4-2', 4, md5_hex('4-2:') ], [ 'one', 0x200040, '4-1', 4, md5_hex('4-1:') ];
	});
judge('a batch without its beginning', qr/^missing: 4-2 of the batch of 4-3 at 0\/200040$/,
	sub {
		$_[0]{batch}{4} = 3;
		note_unsure($_[0], 4, 6, 0);
		push @{ $_[1] }, [ 'one', 0x200000, '4-1', 4, md5_hex('4-1:') ], [ 'one', 0x200040, '4-3', 4, md5_hex('4-3:') ];
	});
judge('a batch that ends early, and the next one', '',
	sub {
		$_[0]{batch}{4} = 3;
		note_unsure($_[0], 4, 6, 0);
		push @{ $_[1] }, [ 'one', 0x200000, '4-1', 4, md5_hex('4-1:') ], [ 'one', 0x200040, '4-4', 4, md5_hex('4-4:') ];
	});
judge('removed by request', '', sub { forget_before($_[0], 0x100040); shift @{ $_[1] } });
judge('more was removed than by request', qr/^missing: 2-1 at 0\/100040$/,
	sub { forget_before($_[0], 0x100040); splice @{ $_[1] }, 0, 2 });

# ---- what clients are told ----
my %append = (kind => 'append', batch => 5, records => 7, size => sub { 0 });
my %batch = (%append, kind => 'batch', batch => 3);
my %async = (%append, kind => 'async', batch => 3);

is(scalar(() = script_of(9, %append) =~ /grouplog\.append\('9-\d:' \|\| repeat\('[a-h]', 0\)\)/g), 7, 'a script of appends');
is(scalar(() = script_of(9, %batch) =~ /grouplog\.append_batch_text\(ARRAY\[[^\]]*\]\)/g), 3, '... of batches');
is(join(' ', script_of(9, %async) =~ /'9-(\d)', l,/g), '3 6 7', '... of asynchronous appends, with a wait after so many and at the end');
is(join(' ', numbers_at(3, %batch)), '7', 'the last batch is smaller');
is(join(' ', map { (() = numbers_at($_, %append)) ? 'some' : 'none' } 7, 8), 'some none', 'the last line');

# what became of each record of client 9, after what psql printed and said
sub fates
{
	my ($load, $out, $err, %options) = @_;
	my $ledger = new_ledger();
	my ($acked, $answered) = read_answers($ledger, 9, $out, %$load);
	my ($failed, $gone, $states) = read_errors($ledger, 9, $err, %$load);
	my @list;

	settle($ledger, 9, $answered, $failed, $gone || $options{killed}, %$load, %options);
	foreach my $fate (qw(acked unsure refused))
	{
		foreach my $key (sort keys %{ $ledger->{$fate} })
		{
			my $entry = $ledger->{$fate}{$key};

			push @list, $key =~ s/^9-//r . " $fate" . (ref $entry && defined $entry->{lsn} ? ' ' . lsn_text($entry->{lsn}) : '');
		}
	}
	return join('; ', @list) . "; sent $ledger->{sent}{9}" . join('', map { "; $_" } @{ $ledger->{strange} });
}

my $refused = 'ERROR:  53400: the log has reached "grouplog.max_size"';
my $cancelled = 'ERROR:  57014: canceling statement due to user request';
my $waiting = 'CONTEXT:  waiting for the record at LSN %s, which is in the log and may still become durable';
my $unknown = 'ERROR:  58030: the outcome of the record at LSN %s is unknown';
my $in_log = 'CONTEXT:  %d records of the batch are in the log, the last one at LSN %s';
my $gone = "psql:x.sql:%d: server closed the connection unexpectedly\n\tThis probably means\npsql:x.sql:%d: error: connection to server was lost\n";

is(fates(\%append, "acked 9-1 0/40 1.5\nacked 9-2 0/80 1.6\nacked 9-3 0/C", '', killed => 1),
	'1 acked 0/40; 2 acked 0/80; sent 3', 'acknowledged, then a line torn by a kill');
is(fates(\%append, "acked 9-1 0/40 1.5\n", sprintf($gone, 2, 2)), '1 acked 0/40; sent 2', 'the connection was lost');
is(fates(\%append, "acked 9-1 0/40 1.5\n", "psql:x.sql:2: $refused\n"), '1 acked 0/40; 2 refused; sent 2', 'refused');
is(fates(\%append, "acked 9-1 0/40 1.5\n", "psql:x.sql:2: $cancelled\n" . sprintf("$waiting\n", '0/80')),
	'1 acked 0/40; 2 unsure 0/80; sent 2', 'cancelled in the wait');
is(fates(\%append, "acked 9-1 0/40 1.5\n", "psql:x.sql:2: $cancelled\n"), '1 acked 0/40; 2 unsure; sent 2', 'cancelled elsewhere');
is(fates(\%append, "acked 9-1 0/40 1.5\n", 'psql:x.sql:2: ' . sprintf("$unknown\n", '0/80')),
	'1 acked 0/40; 2 unsure 0/80; sent 2', 'the outcome is unknown');
is(fates(\%append, "acked 9-1 0/40 1.5\n", "psql:x.sql:2: FATAL:  57P01: terminating connection due to administrator command\n" . sprintf($gone, 2, 2)),
	'1 acked 0/40; 2 unsure; sent 3', 'terminated');
is(fates(\%append, '', "psql: error: connection to server on socket \"x\" failed: FATAL:  sorry\n"), '; sent 1', 'never connected');
is(fates(\%append, join('', map { "acked 9-$_ 0/${_}00 1.5\n" } 1, 2, 4 .. 7), "psql:x.sql:3: $refused\n", keep_going => 1),
	'1 acked 0/100; 2 acked 0/200; 4 acked 0/400; 5 acked 0/500; 6 acked 0/600; 7 acked 0/700; 3 refused; sent 7', 'refused, and gone on');
like(fates(\%append, join('', map { "acked 9-$_ 0/${_}00 1.5\n" } 1, 2, 4 .. 7), '', keep_going => 1),
	qr/; client 9 had no answer for 3$/, 'no answer at all');
like(fates(\%append, "acked 9-1 0/80 1.5\nacked 9-2 0/40 1.5\n", '', killed => 1), qr/client 9: 2 at 0\/40 after 0\/80/, 'acknowledged out of order');
like(fates(\%append, "acked 9-1 0/80 1.5\nnonsense\n", '', killed => 1), qr/client 9 was told: nonsense/, 'an answer of another kind');
is(fates(\%batch, "acked 9-3 0/100 1.5\n", "psql:x.sql:2: $cancelled\n" . sprintf("$waiting\n", '0/200') . sprintf("$in_log\n", 3, '0/200')),
	'1 acked 0/100; 2 acked 0/100; 3 acked 0/100; 4 unsure; 5 unsure; 6 unsure 0/200; sent 6', 'a batch cancelled in the wait');
is(fates(\%batch, "acked 9-3 0/100 1.5\n", "psql:x.sql:2: $refused\n" . sprintf("$in_log\n", 1, '0/180')),
	'1 acked 0/100; 2 acked 0/100; 3 acked 0/100; 4 unsure 0/180; 5 refused; 6 refused; sent 6', 'a batch refused in its middle');
is(fates(\%batch, "acked 9-3 0/100 1.5\n", sprintf($gone, 2, 2)), '1 acked 0/100; 2 acked 0/100; 3 acked 0/100; sent 6', 'the connection lost in a batch');
is(fates(\%async, "told 9-1 0/40 1\ntold 9-2 0/80 1\nacked 9-3 0/C0 2\ntold 9-4 0/100 3\n", sprintf($gone, 5, 5)),
	'1 acked 0/40; 2 acked 0/80; 3 acked 0/C0; 4 unsure 0/100; sent 5', 'told without waiting, then waited for');
is(plain_errors("psql:x.sql:2: $refused\nLOCATION:  raise_problem, gate.c:80\n"), "psql:x.sql:2: ERROR:  the log has reached \"grouplog.max_size\"\n",
	'an error as psql prints it');
{
	my $ledger = new_ledger();
	my ($last, $lost, $states) = read_errors($ledger, 9, "psql:x.sql:2: $refused\npsql:x.sql:3: $refused\npsql:x.sql:4: $cancelled\n", %append);

	is(join(' ', map { "$_=$states->{$_}" } sort keys %$states), '53400=2 57014=1', 'each SQLSTATE is counted');
}

# a batch's LSNs are known once they were read
{
	my $ledger = new_ledger();
	my @rows = map { [ 'one', 0x100 * $_, "9-$_", 4, md5_hex("9-$_:") ] } 1 .. 3;

	$ledger->{size}{9} = sub { 0 };
	$ledger->{batch}{9} = 3;
	read_answers($ledger, 9, "acked 9-3 0/300 1.5\n", %batch);
	settle($ledger, 9, 3, 0, 1, %batch);
	is(verdict($ledger, \@rows), '', 'a batch is read');
	$rows[1][1] = 0x280;
	like(verdict($ledger, \@rows), qr/wrong: 9-2 was acknowledged at 0\/200, is at 0\/280/, '... and its records stay where they are');
	shift @rows;
	like(verdict($ledger, \@rows), qr/missing: 9-1 at 0\/100/, '... all of them');
}

done_testing();
