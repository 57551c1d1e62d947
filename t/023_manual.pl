# doc/operations.md and the sources agree: every message that the sources can
# give stands there with its detail, hint and SQLSTATE (or level), and nothing
# else does.  (Only elog, for what cannot happen, is not looked at.)

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use Test::More;

my $top = dirname(__FILE__) . '/..';

# ---- the sources ----

my $literal = qr/"(?:[^"\\]|\\.)*"/;

# The text of a call from its opening parenthesis on, without the outer ones.
sub arguments_text
{
	my ($text, $start) = @_;

	pos($text) = $start;
	my $depth = 0;
	while ($text =~ /\G(?:$literal|'(?:[^'\\]|\\.)*'|[^"'()]|([()]))/gc)
	{
		$depth += $1 eq '(' ? 1 : -1 if defined $1;
		return substr($text, $start + 1, pos($text) - $start - 2) if $depth == 0;
	}
	die "no end of the call at $start";
}

# Its arguments.
sub arguments
{
	my ($text) = @_;
	my @arguments = ('');
	my $depth = 0;

	while ($text =~ /\G($literal|'(?:[^'\\]|\\.)*'|.)/gcs)
	{
		my $token = $1;

		$depth++ if $token eq '(';
		$depth-- if $token eq ')';
		if ($token eq ',' && $depth == 0)
		{
			push @arguments, '';
			next;
		}
		$arguments[-1] .= $token;
	}
	return map { s/^\s+|\s+$//gr } @arguments;
}

# The strings in an expression; adjacent ones are one.
sub strings
{
	my ($text) = @_;
	my @strings;

	while ($text =~ /($literal(?:\s*$literal)*)/g)
	{
		my $string = join '', map { substr $_, 1, -1 } $1 =~ /($literal)/g;

		$string =~ s/\\"/"/g;
		push @strings, $string;
	}
	return @strings;
}

# A format as a person reads it.
sub readable
{
	my ($format) = @_;

	$format =~ s{%X/%X}{…}g;
	$format =~ s/%02x/…/g;
	$format =~ s/%(?:m|\.\d+s|s)/…/g;
	$format =~ s/%(?:ll|z)?[dui]/N/g;
	return $format;
}

# The texts of a function, or of its _plural, which has two.
sub texts_in
{
	my ($text, $function) = @_;
	my @texts;

	while ($text =~ /\b$function(_plural)?\(/g)
	{
		my $last = $1 ? 1 : 0;
		my @arguments = arguments(arguments_text($text, pos($text) - 1));

		push @texts, map { readable($_) } grep { $_ ne '%s' } map { strings($_) } @arguments[ 0 .. $last ];
	}
	return @texts;
}

my %sqlstate;
{
	my ($directory) = run_command([ 'pg_config', '--includedir-server' ]);
	my $file = "$directory/utils/errcodes.h";

	# the installation under test may be a copy, beneath another root, without headers
	while (!-e $file && $file =~ s{^/[^/]+(?=/)}{})
	{
	}
	foreach (split /\n/, slurp_file($file))
	{
		$sqlstate{$1} = "$2$3$4$5$6"
		  if /^#define (ERRCODE_\w+) MAKE_SQLSTATE\('(.)','(.)','(.)','(.)','(.)'\)/;
	}
}

# What calls a message with words of its own: function, which argument has them,
# format, SQLSTATE, hint
my $promote = 'Use the primary server, or promote this one.';
my @wrappers = (
	[ 'gl_file_error',          2, 'could not %s "…": …',                           'by the system' ],
	[ 'fill_failed',            1, 'could not %s file "…": …',                      'by the system' ],
	[ 'require_not_null',       2, '%s must not be null',                           '22004' ],
	[ 'require_superuser',      0, 'must be superuser to call %s',                  '42501' ],
	[ 'gl_gate_check_allowed',  0, 'cannot %s the log during recovery',             '25006', $promote ],
	[ 'gl_gate_check_allowed',  0, 'cannot %s the log in a read-only transaction',  '25006' ],
	[ 'gl_gate_check_allowed',  0, 'cannot %s the log during a parallel operation', '25000' ],
	[ 'gl_gate_check_readable', 0, 'cannot %s the log during recovery',             '55000', $promote ],
	[ 'raise_problem',          1, '%s',                                            undef ]);
my %wrapped = map { readable($_->[2]) => 1 } @wrappers;

my @said;    # { where, messages, details, hints, state, level }

# compat.c says only what newer servers say themselves
foreach my $file (grep { !m{/compat\.c$} } sort(glob("$top/src/*.c"), "$top/grouplog.c"))
{
	my $text = slurp_file($file) =~ s{\bGL_LSN\b}{"%X/%X"}gr;
	my $name = $file =~ s{.*/}{}r;
	my $last_set;

	$text =~ s{/\*.*?\*/}{}gs;
	while ($text =~ /\b(ereport|gl_error_set|gl_error_detail|errcontext|GUC_check_errdetail|gl_file_error|fill_failed|require_not_null|require_superuser|gl_gate_check_allowed|gl_gate_check_readable|raise_problem)\(/g)
	{
		my $function = $1;
		my $inner = arguments_text($text, pos($text) - 1);
		my @arguments = arguments($inner);
		my $where = "$name: $function";

		# a definition, or its body's call through
		next if $inner =~ /\bconst char \*/;

		if ($function eq 'ereport')
		{
			my ($code) = $inner =~ /\berrcode\((\w+)\)/;
			my @messages = grep { !$wrapped{$_} } texts_in($inner, 'errmsg');

			next unless @messages;
			push @said,
			  {
				where    => $where,
				messages => \@messages,
				details  => [ texts_in($inner, 'errdetail') ],
				hints    => [ texts_in($inner, 'errhint') ],
				level    => $arguments[0] =~ /^ERROR$/ ? undef : $arguments[0],
				state    => $inner =~ /errcode_for_file_access/ ? 'by the system' : $code && $sqlstate{$code}
			  };
		}
		elsif ($function eq 'gl_error_set')
		{
			my @messages = map { readable($_) } strings($arguments[4]);

			$last_set = {
				where    => $where,
				messages => \@messages,
				details  => [],
				hints    => [ map { readable($_) } strings($arguments[3]) ],
				state    => $arguments[1] =~ /^ERRCODE/ ? $sqlstate{ $arguments[1] } : 'by the system'
			};

			# one format for two words
			if ($wrapped{ $messages[0] })
			{
				$last_set->{messages} =
				  [ map { "could not $_ file \"…\": …" } strings($arguments[5] =~ /\?/ ? $arguments[5] : '') ];
			}
			push @said, @{ $last_set->{messages} } ? $last_set : { where => $where, contexts => $last_set->{hints} };
		}
		elsif ($function eq 'gl_error_detail')
		{
			push @{ $last_set->{details} }, map { readable($_) } strings($arguments[1]);
		}
		elsif ($function eq 'errcontext' || $function eq 'GUC_check_errdetail')
		{
			push @said, { where => $where, contexts => [ map { readable($_) } strings($arguments[0]) ] };
		}
		else
		{
			foreach my $wrapper (grep { $_->[0] eq $function } @wrappers)
			{
				my (undef, $which, $format, $state, @hints) = @$wrapper;

				foreach my $word (strings($arguments[$which]))
				{
					push @said,
					  {
						where    => $where,
						messages => [ $format =~ s/%s/$word/r ],
						details  => [],
						hints    => \@hints,
						state    => $state // $sqlstate{ $arguments[0] }
					  };
				}
			}
		}
	}
}

# details and hints that are put beside another's message
push @said, { where => 'slow_sync.c', contexts => [ texts_in(slurp_file("$top/src/slow_sync.c"), 'return errdetail') ] };
my ($late_hint) = slurp_file("$top/src/failure.c") =~ /strlcpy\(told\.hint, ($literal)/;
push @said, { where => 'failure.c', contexts => [ strings($late_hint) ] };

cmp_ok(scalar @said, '>', 100, 'the sources were understood');

# ---- the manual ----

my $manual = slurp_file("$top/doc/operations.md");
my @rows;
my @columns;

foreach my $line (split /\n/, $manual)
{
	if ($line !~ /^\|/)
	{
		@columns = ();
		next;
	}
	my @cells = map { s/^\s+|\s+$//gr } split /(?<!\\)\|/, substr($line, 1);
	if (!@columns)
	{
		@columns = @cells;
		next;
	}
	next if $line =~ /^\|[ -:|]+$/;
	next unless $columns[0] eq 'message';
	my %row = map { $columns[$_] => $cells[$_] } 0 .. $#columns;
	$row{line} = $line;
	push @rows, \%row;
}
cmp_ok(scalar @rows, '>', 60, 'the manual was understood');

# What stands in backquotes, but not in brackets.
sub quoted
{
	my ($cell) = @_;
	my @quoted;

	while ($cell =~ /\G(?:`([^`]+)`|\([^()]*\)|.)/g)
	{
		push @quoted, $1 if defined $1;
	}
	return @quoted;
}

sub has
{
	my ($cell, $text) = @_;

	return scalar grep { $_ eq $text } quoted($cell // '');
}

# ---- the comparison ----

my %used;

foreach my $said (@said)
{
	foreach my $context (@{ $said->{contexts} // [] })
	{
		ok(index($manual, $context) >= 0, "$said->{where}: \"$context\" is in the manual");
	}
	foreach my $message (@{ $said->{messages} // [] })
	{
		my @candidates = grep { has($_->{message}, $message) } @rows;
		my @wrong;
		my $fits = 0;

		$used{$message} = 1;
		push @wrong, 'there is no row' unless @candidates;
		foreach my $row (@candidates)
		{
			my @missing;

			push @missing, "detail: $_" foreach grep { !has($row->{detail}, $_) } @{ $said->{details} };
			push @missing, "hint: $_" foreach grep { !has($row->{hint}, $_) } @{ $said->{hints} };
			if (defined $said->{level})
			{
				push @missing, "level: $said->{level}"
				  unless grep { index($row->{level} // '', $_) >= 0 } $said->{level} =~ /\b(LOG|WARNING)\b/g;
			}
			elsif (!defined $said->{state})
			{
				push @missing, 'a SQLSTATE in the source';
			}
			elsif ($said->{state} eq 'by the system')
			{
				push @missing, 'SQLSTATE: by the system'
				  unless ($row->{SQLSTATE} // $row->{level}) =~ /by the system|LOG|ERROR/;
			}
			else
			{
				push @missing, "SQLSTATE: $said->{state}"
				  unless index($row->{SQLSTATE} // $row->{level}, $said->{state}) >= 0;
			}
			$fits = 1 unless @missing;
			push @wrong, @missing;
		}
		ok($fits, "$said->{where}: \"$message\" is in the manual") or diag join "\n", @wrong;
	}
}

# the other way round
my %detail_of = map { map { $_ => 1 } @{ $_->{details} // [] }, @{ $_->{contexts} // [] } } @said;
my %hint_of = map { map { $_ => 1 } @{ $_->{hints} // [] }, @{ $_->{contexts} // [] } } @said;
foreach my $row (@rows)
{
	next if $row->{message} =~ /PostgreSQL's own/;
	ok($used{$_}, "the manual's \"$_\" is in the sources") foreach quoted($row->{message});
	ok($detail_of{$_}, "the manual's detail \"$_\" is in the sources") foreach quoted($row->{detail} // '');
	ok($hint_of{$_}, "the manual's hint \"$_\" is in the sources") foreach quoted($row->{hint} // '');
}

# ---- doc/reliability.md names the tests of each case ----

my $reliability = slurp_file("$top/doc/reliability.md");
foreach my $case (map { "H$_" } 1 .. 24)
{
	my ($row) = $reliability =~ /^\| $case \|(.*)\|$/m;

	ok(defined $row, "$case has its row");
  SKIP:
	{
		skip 'not all tests are here', 1 unless -e "$top/test/faults/run";
		my @wrong = grep { !-e "$top/$_" || slurp_file("$top/$_") !~ /\b$case\b/ }
		  map { m{/} ? $_ : () } quoted($row);
		is("@wrong", '', "$case is in the tests that the row names");
	}
}

done_testing();
