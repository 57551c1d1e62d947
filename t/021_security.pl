# Who may do what; hostile names, schemas and payloads; what the files show.

use strict;
use warnings FATAL => 'all';

use File::Basename qw(dirname);
use Fcntl ':mode';
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = dirname(__FILE__) . '/..';
my $node = new_node('security', conf => { 'grouplog.max_size' => '8MB', 'grouplog.on_full' => 'recycle' });

sub rows
{
	my ($sql, $database) = @_;

	return split /\n/, $node->safe_psql($database // 'postgres', $sql);
}

# ---- the extension script: the rules that pgspot checks, and some more ----
{
	my $script = slurp_file("$top/grouplog--1.0.sql");
	my @wrong;

	unlike($script, qr/\bOR\s+REPLACE\b/i, 'script: no OR REPLACE');
	unlike($script, qr/\bIF\s+NOT\s+EXISTS\b/i, 'script: no IF NOT EXISTS');
	unlike($script, qr/\bSECURITY\s+DEFINER\b/i, 'script: no SECURITY DEFINER');
	unlike($script, qr/\b(?:DO|EXECUTE)\s+(?:\$|')/i, 'script: no dynamic SQL');
	unlike($script, qr/\bsearch_path\b/i, 'script: nothing depends on the search path');

	$script =~ s{/\*.*?\*/}{}gs;
	$script =~ s{--[^\n]*|^\\[^\n]*}{}gm;
	$script =~ s{'(?:[^']|'')*'}{''}g;

	# what is made, dropped, granted and read from
	while ($script =~ /\b(?:CREATE|COMMENT ON|ALTER|DROP)\s+(TABLE|VIEW|FUNCTION|TYPE|COLUMN|SEQUENCE|OPERATOR|CAST|AGGREGATE)\s+(\S+)/g)
	{
		push @wrong, "$1 $2" unless $2 =~ /^grouplog\./;
	}
	while ($script =~ /\b(?:FROM|JOIN|INTO|UPDATE)\s+([^\s;]+)/g)
	{
		push @wrong, "from $1" unless $1 =~ /^(?:grouplog\.|pg_catalog\.|\(|PUBLIC$)/;
	}
	# calls: a name before a bracket has a schema, or is the grammar's own
	while ($script =~ /(?<![\w.])(\w+)\s*\(/g)
	{
		push @wrong, "call of $1" unless $1 =~ /^(?:CHECK|CAST|OPERATOR|bit|TABLE|FROM|SELECT|AS)$/;
	}
	# types: with a schema, or the grammar's own
	my $grammar = qr/bigint|integer|boolean|interval|double precision|timestamp with time zone|bit\(64\)/;
	while ($script =~ /(?:\bOUT\s+\w+|\bRETURNS(?:\s+SETOF)?|::|\bAS(?=\s+(?:pg_catalog|bigint|bit)))\s+(\S+(?: precision| with time zone)?)/g)
	{
		my $type = $1 =~ s/[,);]+$//r;

		push @wrong, "type $type" unless $type =~ /^(?:pg_catalog\.\w+|$grammar|TABLE|bit\(64)$/;
	}
	# operators: by their full name
	(my $rest = $script) =~ s/OPERATOR\(pg_catalog\.[^)]+\)//g;
	push @wrong, "operator $1" while $rest =~ m{([-+*/<>=~!@#%^&|`?]+)}g;
	is(join('; ', @wrong), '', 'script: every name has its schema');

	is(scalar(() = slurp_file("$top/grouplog.control") =~ /^\s*(?:trusted\s*=\s*true|superuser\s*=\s*false)/m),
		0, 'control file: for superusers');
}

is(join(', ', rows(q(SELECT proname FROM pg_proc WHERE pronamespace = 'grouplog'::regnamespace AND (prosecdef OR proconfig IS NOT NULL)))),
	'', 'no function runs with its owner\'s rights');

# What the extension's objects depend on is PostgreSQL's or the extension's.
sub foreign_dependencies
{
	my ($database) = @_;

	return join ', ', rows(q(
		WITH members AS (
			SELECT classid, objid FROM pg_depend
			WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
			  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'grouplog')
			UNION SELECT 'pg_rewrite'::regclass, r.oid FROM pg_rewrite r JOIN pg_class c ON c.oid = ev_class WHERE relnamespace = 'grouplog'::regnamespace
			UNION SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE connamespace = 'grouplog'::regnamespace)
		SELECT DISTINCT pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
		FROM members m JOIN pg_depend d USING (classid, objid),
		  LATERAL pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) o
		WHERE d.deptype <> 'e'
		  AND coalesce(o.schema, 'pg_catalog') NOT IN ('grouplog', 'pg_catalog')), $database);
}

# ---- a role without rights ----
my @functions = rows(q(
	SELECT p.oid::regprocedure, p.oid::regproc || '('
	  || coalesce((SELECT string_agg('NULL::' || t::regtype, ', ' ORDER BY n) FROM unnest(p.proargtypes) WITH ORDINALITY a(t, n)), '')
	  || ')' FROM pg_proc p WHERE pronamespace = 'grouplog'::regnamespace ORDER BY 1));
my @relations = rows(q(SELECT oid::regclass FROM pg_class WHERE relnamespace = 'grouplog'::regnamespace AND relkind IN ('r', 'v', 'm', 'S', 'f', 'p') ORDER BY 1));
cmp_ok(scalar @functions, '>=', 29, 'the catalog lists the functions');
cmp_ok(scalar @relations, '>=', 8, '... and the relations');

$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; CREATE ROLE insider LOGIN; GRANT USAGE ON SCHEMA grouplog TO insider;
	CREATE ROLE watcher LOGIN IN ROLE pg_monitor; CREATE ROLE everything LOGIN;
	GRANT USAGE ON SCHEMA grouplog TO everything; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA grouplog TO everything;');

# Which of them a role may call or read, that is, what is not answered by 42501.
sub allowed
{
	my ($role, $database) = @_;
	my @allowed;

	foreach my $function (@functions)
	{
		my ($signature, $call) = split /\|/, $function;
		my ($state) = sql_error($node, "SET ROLE $role; SELECT $call", dbname => $database // 'postgres');
		push @allowed, $signature if $state ne '42501';
	}
	foreach my $relation (@relations)
	{
		my ($state) = sql_error($node, "SET ROLE $role; SELECT * FROM $relation", dbname => $database // 'postgres');
		push @allowed, $relation if $state ne '42501';
		foreach my $statement ("INSERT INTO $relation DEFAULT VALUES", "DELETE FROM $relation", "TRUNCATE $relation",
			"DROP TABLE $relation", "BEGIN; LOCK TABLE $relation")
		{
			($state) = sql_error($node, "SET ROLE $role; $statement", dbname => $database // 'postgres');
			push @allowed, $statement unless $state =~ /^(?:42501|42809|55000)$/;
		}
	}
	return join ' ', @allowed;
}

is(allowed('plain'), '', 'a role without rights may call no function and read no relation');
is(allowed('insider'), '', '... neither with USAGE on the schema');
is(allowed('watcher'),
	join(' ',
		(grep { /^grouplog\.(?:stat_get|get_)/ } map { (split /\|/)[0] } @functions),
		grep { $_ ne 'grouplog.main_stream' } @relations),
	'pg_monitor sees the statistics, and nothing else');
{
	my @refused = grep {
		my ($signature, $call) = split /\|/;
		(sql_error($node, "SET ROLE everything; SELECT $call"))[0] eq '42501'
	} @functions;

	is(join(' ', sort map { (split /\|/)[0] } @refused), 'grouplog.accept_end(pg_lsn) grouplog.truncate(pg_lsn)',
		'a right to EXECUTE is not enough for what takes records away');
}

# what a role may not do to the extension
foreach my $statement (
	'ALTER SCHEMA grouplog RENAME TO other', 'DROP SCHEMA grouplog CASCADE', 'DROP EXTENSION grouplog',
	'ALTER EXTENSION grouplog UPDATE', 'CREATE TABLE grouplog.mine (id int)', 'DROP FUNCTION grouplog.flush()',
	'CREATE OR REPLACE FUNCTION grouplog.flush() RETURNS pg_lsn LANGUAGE sql AS $$ SELECT NULL::pg_lsn $$',
	'ALTER TABLE grouplog.main_stream DISABLE ROW LEVEL SECURITY',
	'CREATE RULE r AS ON SELECT TO grouplog.main_stream DO INSTEAD SELECT 1::bigint AS id')
{
	is((sql_error($node, "SET ROLE everything; $statement"))[0], '42501', "refused: $statement");
}

# ---- settings ----
foreach my $setting (rows(q(SELECT name FROM pg_settings WHERE name LIKE 'grouplog.%' AND context <> 'user' ORDER BY name)))
{
	my $value = $node->safe_psql('postgres', "SELECT setting FROM pg_settings WHERE name = '$setting'");

	foreach my $statement ("ALTER SYSTEM SET $setting = '$value'", "ALTER ROLE everything SET $setting = '$value'",
		"SET $setting = '$value'", "SELECT set_config('$setting', '$value', false)")
	{
		my ($state) = sql_error($node, "SET ROLE everything; $statement");

		like($state, qr/^(?:42501|55P02)$/, "refused below superuser: $statement");
	}
	# without input: it may be refused before it could be given any
	local $ENV{PGOPTIONS} = "-c $setting=$value";
	command_fails([ 'psql', '-XAtq', '-U', 'everything', '-d', $node->connstr('postgres'), '-c', 'SELECT 1' ],
		"refused in the options of a connection: $setting");
}
is((sql_error($node, 'SET ROLE everything; SHOW grouplog.directory'))[0], '42501', 'grouplog.directory is not shown to everybody');
foreach my $sql (q(SELECT current_setting('grouplog.directory')), q(SELECT setting FROM pg_settings WHERE name = 'grouplog.directory'))
{
	my ($state, $message) = sql_error($node, "SET ROLE everything; $sql");
	ok($state eq '42501' || $message eq 'no error: ', "... nor by $sql");
}
{
	# the owner of a database, for it
	$node->safe_psql('postgres', 'CREATE DATABASE owned OWNER everything');
	my ($state) = sql_error($node, q(SET ROLE everything; ALTER DATABASE owned SET grouplog.directory = '/tmp/other'));
	like($state, qr/^(?:42501|55P02)$/, 'refused: ALTER DATABASE SET grouplog.directory');
	($state) = sql_error($node, 'SET ROLE everything; CREATE EXTENSION grouplog', dbname => 'owned');
	is($state, '42501', 'the owner of a database may not create the extension');
}

# ---- another database's records ----
my $secret = 'open sesame, said forty thieves';
{
	$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(theirs ours);
	$node->safe_psql($_, 'CREATE EXTENSION grouplog') foreach qw(theirs ours);
	my $lsn = $node->safe_psql('theirs', "SELECT grouplog.append('$secret', 'batch')");
	$node->safe_psql('theirs', "SELECT grouplog.append_batch_text(array_agg('$secret ' || i), 'batch') FROM generate_series(1, 300) i");
	$node->safe_psql('ours', q(SELECT grouplog.append('ours', 'batch')));
	$node->safe_psql('ours', 'GRANT USAGE ON SCHEMA grouplog TO everything; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA grouplog TO everything;
		GRANT SELECT ON ALL TABLES IN SCHEMA grouplog TO everything');

	# as one who may call everything, and as a superuser
	foreach my $role ('everything', 'none')
	{
		my $seen = $node->safe_psql('ours', qq(
			SET ROLE $role;
			SELECT * FROM grouplog.read_text();
			SELECT * FROM grouplog.read();
			SELECT convert_from(payload, 'UTF8') FROM grouplog.read('$lsn'::pg_lsn - 1, 100);
			SELECT * FROM grouplog.read_text('$lsn'::pg_lsn - 1, 1);
			SELECT * FROM grouplog.read_text('$lsn', 1);
			SELECT grouplog.read_records(NULL, NULL);
			SELECT grouplog.read_text_records('$lsn'::pg_lsn - 32, 5);
			SELECT grouplog.wait_durable('$lsn');
			SELECT grouplog.flush();
			SELECT * FROM grouplog.verify();
			SELECT * FROM grouplog.status; SELECT * FROM grouplog.stat; SELECT * FROM grouplog.segments;
			SELECT * FROM grouplog.stat_latency; SELECT * FROM grouplog.stat_latency_histogram;
			SELECT * FROM grouplog.stat_group; SELECT * FROM grouplog.stat_sync_mode;));
		my $hex = unpack 'H*', 'sesame';

		unlike($seen, qr/sesame|$hex/, "another database's records show nowhere, role $role");
		like($seen, qr/\bours$/m, '... and its own do');
	}

	# not even with the other's stream id, which a superuser of the database could put there
	my $id = $node->safe_psql('theirs', 'SELECT id FROM grouplog.main_stream');
	my $own = $node->safe_psql('ours', 'SELECT id FROM grouplog.main_stream');
	$node->safe_psql('ours', "UPDATE grouplog.main_stream SET id = $id");
	is($node->safe_psql('ours', 'SELECT count(*) FROM grouplog.read()'), 0, 'a stream id copied from another database opens nothing');
	$node->safe_psql('ours', "UPDATE grouplog.main_stream SET id = $own");
	is($node->safe_psql('ours', 'SELECT count(*) FROM grouplog.read()'), 1, '... and put back, all is as before');

	# an error must not quote what it stumbles over
	my $position = log_position($node);
	my $foreign = $node->safe_psql('theirs', q(SELECT grouplog.append('\xff'::bytea || 'sesame', 'batch')));
	my (undef, $message) = sql_error($node, 'SELECT * FROM grouplog.read_text()', dbname => 'ours');
	is($message, 'no error: ' . $node->safe_psql('ours', 'SELECT * FROM grouplog.read_text()'), 'another database\'s bytes are no error here');
	(undef, $message) = sql_error($node, "SELECT * FROM grouplog.read_text('$foreign'::pg_lsn - 1)", dbname => 'theirs');
	like($message, qr/not valid text/, '... but there');
	unlike($message, qr/ERROR.*sesame/, '... which does not show them');
}

# ---- hostile names, and objects that shadow PostgreSQL's own ----
{
	my $name = q(e'vil"; DROP TABLE x; -- $(id) %s %n é);
	(my $quoted = $name) =~ s/"/""/g;
	my $shadows = q(
		CREATE SCHEMA evil;
		CREATE TABLE evil.caught (what text);
		CREATE FUNCTION evil.concat(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'x0000000000000001'::text $$;
		CREATE FUNCTION evil.substr(text, int, int) RETURNS text LANGUAGE sql AS $$ SELECT '00000001'::text $$;
		CREATE FUNCTION evil.gen_random_uuid() RETURNS uuid LANGUAGE sql AS $$ SELECT '00000000-0000-0000-0000-000000000001'::uuid $$;
		CREATE FUNCTION evil.differ(bigint, int) RETURNS bool LANGUAGE sql AS $$ SELECT true $$;
		CREATE OPERATOR evil.<> (LEFTARG = bigint, RIGHTARG = int, FUNCTION = evil.differ);
		CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = int, FUNCTION = evil.differ);
		CREATE DOMAIN evil.text AS pg_catalog.int4;
		CREATE DOMAIN evil.bytea AS pg_catalog.int4;
		CREATE DOMAIN evil.pg_lsn AS pg_catalog.int4;
		CREATE DOMAIN evil.int8 AS pg_catalog.int4;
		CREATE DOMAIN evil.bool AS pg_catalog.int4;
		CREATE DOMAIN evil."interval" AS pg_catalog.int4;
		CREATE DOMAIN evil.record AS pg_catalog.int4;
		CREATE DOMAIN evil.void AS pg_catalog.int4;
		CREATE VIEW evil.pg_class AS SELECT 1 AS oid;
		CREATE TABLE evil.main_stream (id bigint);
		INSERT INTO evil.main_stream VALUES (1);
	);
	$node->safe_psql('postgres', qq(CREATE ROLE "$quoted" SUPERUSER LOGIN; CREATE DATABASE "$quoted" OWNER "$quoted" TEMPLATE template0));
	my $connstr = $node->connstr . q( dbname=') . ($name =~ s/(['\\])/\\$1/gr) . q(');
	my $in = sub {
		my ($sql) = @_;
		my ($out, $err) = ('', '');
		my $ok = IPC::Run::run [ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connstr ], '<', \$sql, '>', \$out, '2>', \$err;

		chomp $out;
		diag $err unless $ok;
		return $out;
	};
	$in->($shadows);
	$in->(qq(ALTER ROLE "$quoted" SET search_path = evil, pg_catalog; ALTER DATABASE "$quoted" SET search_path = evil, pg_catalog));
	is($in->(q(SHOW search_path)), 'evil, pg_catalog', 'hostile names: the search path is');
	$in->(qq(SET SESSION AUTHORIZATION "$quoted"; SET search_path = evil, pg_catalog; CREATE EXTENSION grouplog));
	is($in->(q(SELECT pg_catalog.count(*) FROM grouplog.main_stream WHERE id OPERATOR(pg_catalog.=) 1)), '0', 'hostile names: the stream id is not theirs');
	is(foreign_dependencies('postgres'), '', 'the extension depends on nothing but PostgreSQL and itself');
	my $dependencies = $in->(q(
		SELECT DISTINCT pg_catalog.pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
		FROM pg_catalog.pg_depend d, LATERAL pg_catalog.pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) o WHERE o.schema OPERATOR(pg_catalog.=) 'evil'
		AND d.classid::pg_catalog.regclass OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_rewrite'::pg_catalog.regclass, 'pg_catalog.pg_constraint'::pg_catalog.regclass])
		AND (pg_catalog.pg_identify_object(d.classid, d.objid, d.objsubid)).identity OPERATOR(pg_catalog.~) 'grouplog'));
	is($dependencies, '', '... nor where names are hostile');
	like($in->(qq(SET SESSION AUTHORIZATION "$quoted"; SET search_path = evil, pg_catalog; SELECT grouplog.append('in evil''s database'::pg_catalog.text, 'batch'))),
		qr{^[0-9A-F]+/[0-9A-F]+$}, 'hostile names: append');
	is($in->(q(SET search_path = evil, pg_catalog; CREATE TEMP TABLE main_stream (id bigint); SELECT payload FROM grouplog.read_text())),
		q(in evil's database), '... and read');
	is($in->(q(SET search_path = evil, pg_catalog; SELECT state FROM grouplog.status)), 'open', '... and the views');
	is($node->safe_psql('postgres', q(SELECT count(*) FROM grouplog.read())), '0', '... and nobody else reads it');
}

# ---- a schema, or a table in it, that somebody has prepared ----
{
	$node->safe_psql('postgres', 'CREATE DATABASE prepared OWNER plain');
	$node->safe_psql('prepared', q(SET ROLE plain; CREATE SCHEMA grouplog; CREATE TABLE grouplog.main_stream (id bigint); INSERT INTO grouplog.main_stream VALUES (1)));
	is((sql_error($node, 'CREATE EXTENSION grouplog', dbname => 'prepared'))[0], '42P06', 'a schema that somebody has prepared is not taken');
	is((sql_error($node, 'CREATE EXTENSION grouplog SCHEMA grouplog', dbname => 'prepared'))[0] =~ /^(?:42P06|0A000)$/, 1, '... not even by name');
	is($node->safe_psql('prepared', 'SELECT nspowner::regrole FROM pg_namespace WHERE nspname = \'grouplog\''), 'plain', '... and left as it was');
	$node->safe_psql('prepared', 'DROP SCHEMA grouplog CASCADE; CREATE EXTENSION grouplog');
	is((sql_error($node, 'SET ROLE plain; DROP SCHEMA grouplog CASCADE', dbname => 'prepared'))[0], '42501', 'the database\'s owner does not own the extension');
	is((sql_error($node, 'SET ROLE plain; ALTER SCHEMA grouplog RENAME TO g', dbname => 'prepared'))[0], '42501', '... and cannot move it away');
}

# ---- payloads that imitate what is in the files ----
{
	# records, padding, a close record and headers of this very log
	$node->safe_psql('postgres', q(SELECT grouplog.append_batch(array_agg(convert_to(repeat('p', 30000), 'UTF8')), 'batch') FROM generate_series(1, 50)));
	$node->restart;
	$node->safe_psql('postgres', q(SELECT grouplog.append('after a clean shutdown', 'batch')));
	$node->safe_psql('postgres', 'CREATE TABLE sent (n serial, lsn pg_lsn PRIMARY KEY, what text, payload bytea)');
	my ($closed) = rows(q(SELECT file || '|' || file_bytes FROM grouplog.segments WHERE NOT current ORDER BY number DESC LIMIT 1));
	my ($file, $bytes) = split /\|/, $closed;
	my ($full) = rows(q(SELECT file FROM grouplog.segments WHERE file_bytes = 1024 * 1024 + 4096 AND NOT current ORDER BY number DESC LIMIT 1));
	foreach my $case (
		[ 'a segment header', $file, 0,              4096 ],
		[ 'records',          $file, 4096,           8192 ],
		[ 'the close record', $file, $bytes - 4096,  4096 ],
		[ 'padding',          $full, 4096 + 1024 * 1024 - 32768, 32768 ])
	{
		my ($what, $from, $offset, $length) = @$case;

		# at every alignment within a granule that matters
		foreach my $shift (0, 1, 8, 31)
		{
			$node->safe_psql('postgres', qq(
				WITH p AS (SELECT decode(repeat('00', $shift), 'hex') || pg_read_binary_file('grouplog/$from', $offset, $length) AS payload)
				INSERT INTO sent (lsn, what, payload) SELECT grouplog.append(payload, 'batch'), '$what, shifted by $shift', payload FROM p));
		}
	}
	my $differing = q(SELECT coalesce(string_agg(what, ', '), 'none') FROM sent LEFT JOIN grouplog.read() r USING (lsn) WHERE r.payload IS DISTINCT FROM sent.payload);
	my $count = $node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.read()');
	is($node->safe_psql('postgres', $differing), 'none', 'H22 payloads that imitate the files are read back as they were');
	kill_server($node);
	$node->start;
	is($node->safe_psql('postgres', $differing), 'none', '... after a crash, too');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM grouplog.read()'), $count, '... and are no records of their own');
	is($node->safe_psql('postgres', 'SELECT bool_and(ok) FROM grouplog.verify()'), 't', '... verify agrees');

	# a record that carries them is damaged: whoever looks for the next one finds only real ones
	my @all = rows('SELECT lsn FROM sent ORDER BY lsn');
	my $next = $node->safe_psql('postgres', q(SELECT grouplog.append('the next one', 'batch')));
	$node->stop;
	save_log($node, 'imitation');
	foreach my $victim (@all[ 4, 8, 12 ])
	{
		my ($path, $offset) = file_at($node, lsn_number($victim));
		my ($after) = grep { lsn_number($_) > lsn_number($victim) } @all, $next;

		write_bytes($path, $offset, "\0" x 32);
		$node->start;
		is((sql_error($node, 'SELECT * FROM grouplog.read()'))[0], 'XX001', "H22 the record at $victim is damaged");
		is($node->safe_psql('postgres', "SELECT min(lsn) FROM grouplog.read('$victim')"), $after, '... behind it the next real record is found');
		$node->stop('immediate');
		restore_log($node, 'imitation');
	}
	$node->start;
}

# ---- files: modes, and zeros wherever no record is ----
sub modes_of
{
	my ($server) = @_;
	my $directory = log_directory($server);
	my %modes;

	foreach my $name (grep { $_ ne '..' } slurp_dir($directory))
	{
		my $mode = S_IMODE((stat "$directory/$name")[2]);
		my $kind = $name =~ /\.seg$/ ? 'segments' : $name =~ /^spare/ ? 'spares' : $name;

		$modes{ sprintf '%s %04o', $kind, $mode } = 1;
	}
	return join ', ', sort keys %modes;
}

$node->safe_psql('postgres', q(SELECT grouplog.append_batch(array_agg(convert_to(repeat('p', 30000), 'UTF8')), 'batch') FROM generate_series(1, 60)));
ok($node->poll_query_until('postgres', q(SELECT count(*) > 0 FROM pg_ls_dir('grouplog') f WHERE f ~ '^spare.*' AND f !~ 'tmp')), 'there is a spare');
$node->stop;
is(modes_of($node), '. 0700, control 0600, lock 0600, segments 0600, spares 0600', 'modes: the owner\'s alone');
{
	my (@strange, %kinds);

	foreach my $segment (segment_files($node))
	{
		my $bytes = slurp_file($segment->{path});
		my $at = 4096 + $segment->{first} % 4096;

		push @strange, "$segment->{name}: header" if substr($bytes, 132, 3960) =~ /[^\0]/;
		push @strange, "$segment->{name}: before its first record" if substr($bytes, 4096, $segment->{first} % 4096) =~ /[^\0]/;
		while ($at + 32 <= length $bytes)
		{
			my ($length, $kind) = (unpack('V', substr $bytes, $at, 4), ord substr $bytes, $at + 28, 1);
			my $span = ($length + 31) & ~31;

			last if $length == 0;
			$kinds{$kind}++;
			push @strange, "$segment->{name}: after the record at $at" if substr($bytes, $at + $length, $span - $length) =~ /[^\0]/;
			push @strange, "$segment->{name}: in the padding at $at" if $kind == 2 && substr($bytes, $at + 32, $length - 32) =~ /[^\0]/;
			$at += $span;
		}
		push @strange, "$segment->{name}: after its last record" if substr($bytes, $at) =~ /[^\0]/;
	}
	is(join('; ', @strange), '', 'every byte outside records is zero');
	ok($kinds{1} && $kinds{2} && $kinds{3}, '... data, padding and close records were among them');
	foreach my $name (grep { /^spare/ } slurp_dir(log_directory($node)))
	{
		ok(slurp_file(log_directory($node) . "/$name") !~ /[^\0]/, "$name is nothing but zeros");
	}
	my $control = slurp_file(log_directory($node) . '/control');
	unlike($control, qr/sesame/, 'the control file holds no payload');
	is(-s log_directory($node) . '/lock', 0, 'the lock file is empty');
}

{
	my $group = new_node('group_access', init => [ extra => ['-g'] ]);

	$group->safe_psql('postgres', q(SELECT grouplog.append_batch(array_agg(convert_to(repeat('p', 30000), 'UTF8')), 'batch') FROM generate_series(1, 60)));
	ok($group->poll_query_until('postgres', q(SELECT count(*) > 0 FROM pg_ls_dir('grouplog') f WHERE f ~ '^spare.*' AND f !~ 'tmp')), 'group access: there is a spare');
	$group->stop;
	is(modes_of($group), '. 0750, control 0640, lock 0640, segments 0640, spares 0640', 'modes: with group access, as the cluster');
}

done_testing();
