# A small disk that fills up, for real, and gets space again.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use GrouplogTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $faults = 0;

foreach my $type (qw(ext4 xfs))
{
	# the smallest that mkfs.xfs makes
	my $fs = loop_mount("small_$type", type => $type, megabytes => $type eq 'xfs' ? 300 : 40);

	foreach my $configuration (configurations())
	{
		my ($title, $settings) = @$configuration;
		my $name = "H13: a full $type, $title";
		my $directory = "$fs->{mount}/" . $title =~ s/\W+/_/gr;
		my $ledger = new_ledger();
		my $node = new_node("full_${type}_" . $title =~ s/\W+/_/gr,
			conf => { %$settings, 'grouplog.directory' => $directory });

		# somebody else fills most of it
		append_some($node, $ledger, "$name: before");
		my ($free) = `df --output=avail -B1 '$fs->{mount}'` =~ /(\d+)/;
		my $ballast = "$fs->{mount}/ballast";
		system('fallocate', '-l', $free - 3_500_000, $ballast) == 0 or die "fallocate: $?";

		my @loads = map {
			start_load($node, $ledger, clients => 2, mode => $_, records => 1000, size => sub { 8000 })
		} qw(batch adaptive periodic);
		finish_load($_) foreach @loads;
		is(join(' ', sort map { keys %{ $_->{states} } } @loads), '53100 53100 53100',
			"$name: appends are refused as disk_full");
		unlike(join('', map { $_->{errors} } @loads), qr/unknown/, "$name: ... before they claim");
		like(status($node, 'refusal'), qr/no_space/, "$name: shown in status");
		$node->safe_psql('postgres', 'SELECT grouplog.flush()');
		check_log($node, $ledger, "$name: reads go on");

		# to the last byte, by somebody else: what has its file already goes on
		system("dd if=/dev/zero of='$fs->{mount}/rest' bs=4096 2>/dev/null");
		loop_shutdown($node, $fs);
		check_log($node, $ledger, "$name: a start after a power cut needs no space");
		# with a spare in hand there is room for one more
		my ($state, $answer) = sql_error($node,
			q(SET statement_timeout = '20s'; SELECT grouplog.append('997-1:' || repeat('b', 20000))));
		like($state, qr/^(?:53100|00000)$/, "$name: no space, no append");
		if ($state eq '00000')
		{
			note_append($ledger, 997, 1, 20000, $answer =~ /([0-9A-F]+\/[0-9A-F]+)/);
		}
		else
		{
			note_refused($ledger, 997, 1, 20000);
		}
		$node->stop('fast');
		start_up($node);
		unlink $ballast, "$fs->{mount}/rest";
		ok(wait_until(sub { status($node, 'refusal') eq '' }), "$name: space comes back");
		append_some($node, $ledger, "$name: appends go on", size => sub { 8000 });
		loop_shutdown($node, $fs);
		check_log($node, $ledger, "$name: over");
		$node->stop('immediate');
		$node->clean_node;
		unlink glob "$directory/*";
		$faults++;
	}
	loop_unmount($fs);
}
figure('faults-staged', $faults);
done_testing();
