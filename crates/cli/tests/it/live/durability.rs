//! Data and reservations that survive a crash of the switch, and the kernel's cache flushes.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;
use sanloom_test_support::tshark;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "1s" }

[storage.files]
luns = 2
lun_size = "64MiB"
medium = "file"
cache = "write-back"

[[link]]
from = "files"
to = "sw1"
"#;

/// The kernel detects the cache and flushes it (SYNCHRONIZE CACHE or FUA). Flushed data and the
/// registration with APTPL are present after the switch was killed. The registration without APTPL
/// is not.
#[needs("guest", "tshark")]
#[test]
fn flushed_data_and_persistent_registrations_survive_a_killed_switch() {
    let mut bed = Bed::start("durability", LAB, &["server1-sw1"]);
    let first = r#"
fcoe-initiator 2 || exit 1
echo "cache $(cat /sys/class/scsi_disk/*/cache_type)"
seq 1 4000 | head -c 16384 >/tmp/data
dd if=/tmp/data of=/dev/sda bs=16k conv=fsync 2>/dev/null || exit 2
sg_dd if=/tmp/data of=/dev/sda bs=512 seek=32 count=32 blk_sgio=1 oflag=fua 2>/dev/null || exit 3
sg_persist --out --register --param-sark=0x5ab1e --param-aptpl /dev/sda || exit 4
sg_persist --out --reserve --param-rk=0x5ab1e --prout-type=1 /dev/sda || exit 5
sg_persist --out --register --param-sark=0x6ab1e /dev/sdb || exit 6
echo done
"#;
    let output = bed.guest("server1", 1, first).end();
    assert!(output.contains("cache write back"), "{output}");
    bed.kill();
    let before = bed.capture("server1-sw1");
    for filter in ["scsi_sbc.opcode == 0x35", "scsi_sbc.fua == 1"] {
        assert!(!tshark::frames(&before, filter).is_empty(), "{filter}");
    }
    check_capture(&before, 16);
    bed.start_again(&[]);
    let second = r#"
fcoe-initiator 2 || exit 1
seq 1 4000 | head -c 16384 >/tmp/data
for at in 0 1; do
    dd if=/dev/sda of=/tmp/back bs=16k skip=$at count=1 iflag=direct 2>/dev/null || exit 2
    cmp -n 16384 /tmp/data /tmp/back || exit 3
done
echo "kept $(sg_persist --in --read-keys /dev/sda | grep -c 0x5ab1e) $(sg_persist --in --read-reservation /dev/sda | grep -c 0x5ab1e)"
echo "gone $(sg_persist --in --read-keys /dev/sdb | grep -c 0x6ab1e)"
"#;
    let output = bed.guest("server1", 1, second).end();
    assert!(output.contains("kept 1 1") && output.contains("gone 0"), "{output}");
    bed.stop();
}
