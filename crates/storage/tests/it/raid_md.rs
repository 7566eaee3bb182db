//! Images of our RAID plans, assembled, read, checked and rebuilt by md of the Linux kernel.

use crate::raid_plans::{Array, power, product};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sanloom_storage::raid::{Geometry, Level, ParityLayout as L};
use sanloom_test_support::guest::{Emulator, Machine};
use sanloom_test_support::needs;
use sanloom_test_support::started::Folder;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

/// Blocks of a chunk, the smallest that md accepts.
const CHUNK_BLOCKS: u32 = 8;
/// Chunks of each member.
const ROWS: u64 = 16;
const MEMBERS: u32 = 5;

/// Begin of the script. The images follow it in base64, in units of a chunk.
///
/// `array LEVEL LAYOUT PARITIES` writes the images of the next array to the loop devices and lets
/// md create an array around them. Its superblock is behind the data (version 1.0), so md changes
/// no block of ours. Then the array is assembled, compared, checked, and compared while members
/// are missing. md rebuilds them onto zeroed devices, which must become our images again.
const SCRIPT: &str = r#"
modprobe loop max_loop=5 && modprobe raid456 || exit 10
export MDADM_NO_UDEV=1
mkdir -p /tmp/md /run/mdadm
cd /tmp/md
sed '1,/^IMAGES$/d' /tmp/script | base64 -d | gzip -d >all || exit 11
devices=
for n in 0 1 2 3 4; do
    dd if=/dev/zero of=file$n bs=64k count=4 2>/dev/null
    losetup /dev/loop$n file$n || exit 12
    devices="$devices /dev/loop$n"
done
state=/sys/block/md0/md
next=0
take() { dd if=all of=$1 bs=4k skip=$next count=$2 2>/dev/null; next=$((next + $2)); }
wait_for_md() { until [ "$(cat $state/sync_action)" = idle ]; do usleep 5000; done; }
check() {
    echo check >$state/sync_action || exit 13
    wait_for_md
    [ "$(cat $state/last_sync_action)" = check ] || exit 14
    mismatches=$(cat $state/mismatch_cnt)
}
compare() {
    blockdev --flushbufs /dev/md0
    cmp data /dev/md0 || { echo "level $1 $2: md reads other data than ours while $3 members are missing"; exit 15; }
}
create() {
    mdadm --create /dev/md0 --run --quiet --assume-clean --metadata=1.0 --bitmap=none --level=$1 --layout=$2 \
        --chunk=4 --size=64 --raid-devices=5 $devices 2>/tmp/md/error || { cat /tmp/md/error; exit 16; }
}
array() {
    for n in 0 1 2 3 4; do
        take image$n 16
        dd if=image$n of=/dev/loop$n 2>/dev/null
    done
    take data $((16 * (5 - $3)))
    create $1 $2
    mdadm --stop --quiet /dev/md0
    mdadm --assemble --quiet /dev/md0 $devices || exit 17
    layout=$(mdadm --examine /dev/loop0 | sed -n 's/^ *Layout : //p')
    compare $1 $2 0
    check
    echo "array $1 $2: layout $layout, mismatches $mismatches"
    for n in $(seq $3); do
        mdadm --quiet /dev/md0 --fail /dev/loop$n --remove /dev/loop$n || exit 18
        compare $1 $2 $n
    done
    for n in $(seq $3); do
        dd if=/dev/zero of=/dev/loop$n bs=64k count=4 2>/dev/null
        mdadm --quiet /dev/md0 --add /dev/loop$n || exit 19
    done
    wait_for_md
    # md starts the rebuild of a second device behind the first one.
    until [ "$(cat $state/degraded)" = 0 ]; do usleep 5000; done
    mdadm --stop --quiet /dev/md0
    for n in $(seq $3); do
        dd if=/dev/loop$n of=rebuilt bs=4k count=16 2>/dev/null
        cmp image$n rebuilt || { echo "level $1 $2: md rebuilds other blocks of member $n than ours"; exit 20; }
    done
    mdadm --quiet --zero-superblock $devices
}
# A check that finds a changed byte shows that the checks before could have failed.
spoiled() {
    printf '\001' | dd of=/dev/loop$3 bs=1 seek=20000 conv=notrunc 2>/dev/null
    create $1 $2
    check
    echo "spoiled $1: mismatches $mismatches"
    mdadm --stop --quiet /dev/md0
    mdadm --quiet --zero-superblock $devices
    dd if=image$3 of=/dev/loop$3 2>/dev/null
}
"#;

/// Names of the layouts for mdadm.
fn name(layout: L) -> &'static str {
    match layout {
        L::LeftAsymmetric => "left-asymmetric",
        L::RightAsymmetric => "right-asymmetric",
        L::LeftSymmetric => "left-symmetric",
        L::RightSymmetric => "right-symmetric",
        L::ParityFirst => "parity-first",
        L::ParityLast => "parity-last",
        L::RotatingZeroRestart => "ddf-zero-restart",
        L::RotatingNRestart => "ddf-N-restart",
        L::RotatingNContinue => "ddf-N-continue",
        L::LeftAsymmetric6 => "left-asymmetric-6",
        L::RightAsymmetric6 => "right-asymmetric-6",
        L::LeftSymmetric6 => "left-symmetric-6",
        L::RightSymmetric6 => "right-symmetric-6",
        L::ParityFirst6 => "parity-first-6",
    }
}

/// An array after random writes, some of them while one or two members are missing or in rebuild.
fn written(layout: L, has_q: bool) -> Array {
    let member_blocks = u64::from(CHUNK_BLOCKS) * ROWS;
    let level = Level::Parity { layout, has_q, groups: 1 };
    let geometry = Geometry::new(level, MEMBERS, CHUNK_BLOCKS, member_blocks).expect("the geometry is valid");
    let mut array = Array::new(geometry);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(layout as u64);
    let mut write = |array: &mut Array, writes| {
        for _ in 0..writes {
            let lba = random.random_range(0..geometry.blocks());
            let length = random.random_range(1..60).min(geometry.blocks() - lba);
            let data: Vec<u8> = (0..length).map(|_| random.random_range(0..=255)).collect();
            array.write(lba, &data);
        }
    };
    write(&mut array, 40);
    let missing: &[usize] = if has_q { &[3, 0] } else { &[3] };
    for &member in missing {
        array.fail(member);
        write(&mut array, 3);
    }
    for &member in missing {
        array.rebuild(member, ROWS / 2);
        write(&mut array, 3);
        array.rebuild(member, ROWS);
    }
    write(&mut array, 5);
    array
}

/// Returns a block of 512 bytes for each byte. Products with a constant keep P and Q right, so the
/// bytes of a block differ.
fn expanded(bytes: &[u8]) -> Vec<u8> {
    let factors: Vec<u8> = (0..16).map(power).collect();
    bytes.iter().flat_map(|byte| (0..512).map(|at| product(factors[at % 16], *byte))).collect()
}

/// Returns the lines of an encoding that the shell of the guest decodes.
fn base64(bytes: &[u8]) -> String {
    bytes.chunks(57).map(|line| STANDARD.encode(line) + "\n").collect()
}

#[needs("guest")]
#[test]
fn md_reads_checks_and_rebuilds_the_arrays_that_we_write() {
    let emulator = Emulator::new();
    let mut script = SCRIPT.to_owned();
    let mut images = GzEncoder::new(Vec::new(), Compression::default());
    let mut expected = Vec::new();
    for (level, layouts) in [(5, &L::RAID5[..]), (6, &L::RAID6[..])] {
        for &layout in layouts {
            let array = written(layout, level == 6);
            for bytes in array.contents.iter().chain([&array.truth]) {
                images.write_all(&expanded(bytes)).unwrap();
            }
            let layout = name(layout);
            writeln!(script, "array {level} {layout} {}", level - 4).unwrap();
            expected.push(format!("array {level} {layout}: layout {layout}, mismatches 0"));
        }
    }
    // The images of the last array are still on the devices.
    script.push_str("spoiled 6 parity-first-6 0\nspoiled 6 parity-first-6 4\nexit 0\nIMAGES\n");
    script.push_str(&base64(&images.finish().unwrap()));
    let folder = Folder::new("md");
    let machine = Machine { mac: "52:54:00:00:00:01", netdev: "hubport,hubid=0", seven: Stdio::null(), seconds: 300 };
    let output = emulator.start(&folder, "md", machine, &script).end();
    let found: Vec<&str> = output.lines().filter(|line| line.starts_with("array ")).collect();
    assert_eq!(found, expected, "{output}");
    let spoiled: Vec<&str> = output.lines().filter(|line| line.starts_with("spoiled ")).collect();
    assert_eq!(spoiled.len(), 2, "{output}");
    assert!(spoiled.iter().all(|line| !line.ends_with(" 0")), "{spoiled:?}");
}
