//! The kernel's initiator with our switch and storage.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "1s" }

[storage.ram]
luns = 2
lun_size = "256MiB"

[storage.files]
lun_size = "64MiB"
medium = "file"

[[link]]
from = "{ram,files}"
to = "sw1"

[[mask]]
hosts = "server1"
targets = ["ram:lun1", "files"]
"#;

/// Disks appear. Data are verified with small and large requests, on media in memory and in a file.
/// A unit continues to work after a reset.
#[needs("guest", "tshark")]
#[test]
fn the_kernel_finds_its_disks_and_keeps_its_data() {
    let mut bed = Bed::start("disks", LAB, &["server1-sw1"]);
    let script = r#"
fcoe-initiator 2 || exit 1
dd if=/dev/urandom of=/tmp/data bs=1M count=8 2>/dev/null
for disk in sda sdb; do
    dd if=/tmp/data of=/dev/$disk bs=1M oflag=direct 2>/dev/null || exit 3
    dd if=/dev/$disk of=/tmp/back bs=4k count=2048 iflag=direct 2>/dev/null || exit 4
    cmp /tmp/data /tmp/back || exit 5
    dd if=/tmp/data of=/dev/$disk bs=4k count=512 seek=4096 oflag=direct 2>/dev/null || exit 6
    sg_reset -d /dev/$disk || exit 7
    dd if=/dev/$disk of=/tmp/back bs=1M skip=16 count=2 iflag=direct 2>/dev/null || exit 8
    cmp -n 2097152 /tmp/data /tmp/back || exit 9
    echo "disk $disk $(cat /sys/block/$disk/size)"
done
sg_luns /dev/sda
echo "errors $(dmesg | grep -c 'I/O error')"
"#;
    let output = bed.guest("server1", 1, script).end();
    for expected in ["disk sda", "disk sdb", "524288", "131072", "errors 0"] {
        assert!(output.contains(expected), "{expected} is missing in:\n{output}");
    }
    bed.stop();
    // At least the data: twice 8 MiB and 2 MiB in each direction, in frames of 2048 bytes.
    check_capture(&bed.capture("server1-sw1"), 2 * 2 * (8 + 2) * 512);
}
