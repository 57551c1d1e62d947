# The bench itself: the file system does what it is told, so that the tests that
# build on it mean something.

use strict;
use warnings FATAL => 'all';

use FaultBench;
use Errno qw(EIO ENOSPC EDQUOT EROFS);
use Fcntl qw(O_RDWR O_RDONLY O_CREAT SEEK_SET);
use IO::Handle;
use GrouplogTest;
use PostgreSQL::Test::Utils;
use Test::More;

use constant { O_DSYNC => 0x1000, O_DIRECT => 0x4000 };

my $fs = fault_mount('bench');
my $seg = '00000001-0000000000100000.seg';
my $path = "$fs->{mount}/$seg";

sub put
{
	my ($offset, $bytes, $flags) = @_;

	sysopen my $file, $path, O_RDWR | O_CREAT | ($flags // 0), 0600 or return "open: $!";
	sysseek $file, $offset, SEEK_SET;
	my $done = syswrite $file, $bytes;
	return defined $done ? $done : $! + 0;
}

sub get
{
	my ($offset, $size) = @_;

	return -e $path ? read_bytes($path, $offset, $size) : 'no file';
}

# IO::Handle's sync is fsync(2)
sub sync_file
{
	open my $file, '+<', $path or return $! + 0;
	return $file->sync ? 0 : $! + 0;
}

sub sync_names
{
	sysopen my $dir, $fs->{mount}, O_RDONLY or return $! + 0;
	return $dir->sync ? 0 : $! + 0;
}

sub cut
{
	knob($fs, "cut $_[0] " . ($_[1] // 512));
	is(put(0, 'x'), 'open: Input/output error', "cut $_[0]: nothing works without power");
	knob($fs, 'power');
}

# names
is(put(0, 'a' x 4096), 4096, 'a write');
cut('nothing');
ok(!-e $path, 'a file made and not synced is not there');
is(put(0, 'a' x 4096), 4096, 'a write');
is(sync_file(), 0, 'a sync');
is(sync_names(), 0, 'a sync of the directory');
cut('nothing');
is(get(0, 4096), 'a' x 4096, 'a file that was synced is there');

# contents
put(0, 'b' x 4096);
is(get(0, 4), 'bbbb', 'what was written is read');
cut('nothing');
is(get(0, 4096), 'a' x 4096, 'what was not synced is not there');
put(0, 'b' x 4096, O_DSYNC);
cut('nothing');
is(get(0, 4096), 'b' x 4096, 'O_DSYNC is a sync');
put(4096, 'c' x 4096);
put(0, 'c' x 1024);
cut('all');
is(get(0, 8192), 'c' x 1024 . 'b' x 3072 . 'c' x 4096, 'all of it may land, too');
put(0, 'd' x 8192);
knob($fs, 'seed 7');
cut('first', 4096);
like(get(0, 8192), qr/^(?:d{4096})*(?:c{1024}b{3072})?(?:c{4096})?$/, 'torn at 4096 bytes');
my %seen;
foreach my $seed (1 .. 30)
{
	put(0, 'e' x 8192);
	sync_file();
	put(0, 'f' x 8192);
	knob($fs, "seed $seed");
	cut('first', 512);
	my $bytes = get(0, 8192);
	die if $bytes !~ /^(f*)e*$/ || length($1) % 512;
	$seen{ length $1 } = 1;
}
cmp_ok(scalar keys %seen, '>', 5, 'torn at 512 bytes, at many places');
put(0, 'e' x 8192);
sync_file();
put(0, 'f' x 8192);
cut('any', 4096);
like(get(0, 8192), qr/^(?:e{4096}|f{4096})+$/, 'any of it');

# names again
rename $path, "$path.2";
cut('nothing');
ok(-e $path && !-e "$path.2", 'a rename that was not synced has not happened');
unlink $path;
ok(!-e $path, 'a file is removed');
cut('nothing');
ok(-e $path, 'its removal was not synced');

# a failed sync
put(0, 'g' x 8192);
sync_file();
foreach my $seed (1 .. 3)
{
	put(0, 'h' x 8192);
	knob($fs, "seed $seed");
	knob($fs, 'fault 0 on=sync errno=EIO count=1');
	is(sync_file(), EIO, 'a sync fails');
	is(sync_file(), 0, 'the next one does not');
	is(get(0, 8192), 'h' x 8192, 'a buffered read tells nothing');
	cut('all');
	like(get(0, 8192), qr/^(?:h{512}|g{512})+$/, 'but the disk has lost some of it');
	like(get(0, 8192), qr/g/, 'indeed');
	put(0, 'g' x 8192);
	sync_file();
}

# errors, each in its place
foreach my $case (
	[ 'EIO', EIO ], [ 'ENOSPC', ENOSPC ], [ 'EDQUOT', EDQUOT ], [ 'EROFS', EROFS ])
{
	my ($name, $number) = @$case;

	knob($fs, "fault 0 on=write errno=$name skip=1 count=2");
	is(put(0, 'g' x 512), 512, "$name: not the first");
	is(put(0, 'g' x 512), $number, "$name: the second");
	is(put(0, 'g' x 512), $number, "$name: the third");
	is(put(0, 'g' x 512), 512, "$name: not the fourth");
	is(fault_hits_of($fs, 0), 2, "$name: twice");
}
knob($fs, 'fault 0 on=write errno=EIO file=spare');
is(put(0, 'g' x 512), 512, 'another kind of file');
knob($fs, 'fault 0 on=write errno=EIO chance=300000');
my $failed = grep { put(0, 'g' x 512) == EIO } 1 .. 200;
ok($failed > 20 && $failed < 120, 'at random') or diag $failed;
knob($fs, 'clear');
knob($fs, 'fault 0 on=write bytes=512');
is(put(0, 'g' x 4096), 512, 'a short write');
knob($fs, 'fault 0 on=write lose=1 count=1');
put(0, 'i' x 512);
unlike(get(0, 512), qr/i/, 'a lost write');
knob($fs, 'fault 0 on=write flip=1 count=1');
put(0, 'g' x 512);
isnt(get(0, 512), 'g' x 512, 'a bit that flips as it is written');
put(0, 'g' x 512);
knob($fs, "flip $seg 100 3");
is(unpack('%32b*', get(0, 512) ^ ('g' x 512)), 1, 'a bit that flips at rest');
knob($fs, "flip $seg 100 3");
my $before = get(0, 8192);
knob($fs, 'fault 0 on=read flip=1 count=1');
isnt(get(0, 8192), $before, 'a bit that flips as it is read');
is(get(0, 8192), $before, '... once');
knob($fs, 'fault 0 on=read errno=EIO count=1');
open my $file, '<', $path or die;
my $bytes;
is(sysread($file, $bytes, 512), undef, 'a read fails');
is($! + 0, EIO, '... with EIO');
close $file;
knob($fs, 'space 1024 EDQUOT');
is(put(8192, 'g' x 1024), 1024, 'space for so much');
is(put(9216, 'g' x 1024), EDQUOT, '... and no more');
is(put(0, 'g' x 1024), 1024, 'what is there can be overwritten');
knob($fs, 'space -1 ENOSPC');
knob($fs, 'readonly 1');
is(put(0, 'g'), 'open: Read-only file system', 'read-only');
is(get(0, 1), 'g', '... can be read');
knob($fs, 'readonly 0');

# an image is as a cut would leave it, and disturbs nothing
put(0, 'k' x 4096);
sync_file();
put(0, 'l' x 4096);
knob($fs, "image $fs->{backing}/../image nothing 512");
is(read_bytes("$fs->{backing}/../image/data/$seg", 0, 4096), 'k' x 4096, 'an image of the disk');
is(get(0, 4096), 'l' x 4096, '... and nothing has changed');
is(eval { knob($fs, 'fault 0 on=nonsense'); 1 }, undef, 'nonsense is refused');

fault_unmount($fs);
ok(!-e $path, 'unmounted');
as_root('rm', '-rf', "$fs->{backing}/../image");
done_testing();
