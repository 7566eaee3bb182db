//! Segments without a switch (VN2VN): the kernel at one end and ours at the other, in both roles.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;
use sanloom_test_support::programs::{run, uri};
use sanloom_test_support::qemu_io::write_and_verify;
use std::path::Path;

const LAB: &str = r#"
[switch.sw1]

[storage.disk1]
wwpn = "20:00:52:54:00:00:00:03"
lun_size = "64MiB"
vn2vn = { carrier = "dgram" }
"#;

/// The kernel's initiator finds our disk; then ours finds the kernel's.
#[needs("guest", "qemu-io", "tshark")]
#[test]
fn stations_of_the_kernel_and_ours_find_each_other() {
    let mut bed = Bed::start("vn2vn", LAB, &["disk1"]);
    let script = r#"
fcoe-initiator 1 vn2vn || exit 1
cat /sys/block/sda/device/vendor /sys/class/fc_host/host*/port_id
dd if=/dev/urandom of=/tmp/data bs=1M count=8 2>/dev/null
dd if=/tmp/data of=/dev/sda bs=1M oflag=direct 2>/dev/null || exit 2
dd if=/dev/sda of=/tmp/back bs=4k count=2048 iflag=direct 2>/dev/null || exit 3
cmp /tmp/data /tmp/back || exit 4
sg_reset -d /dev/sda || exit 5
dd if=/dev/sda of=/tmp/back bs=1M count=8 iflag=direct 2>/dev/null || exit 6
cmp /tmp/data /tmp/back || exit 7
echo "errors $(dmesg | grep -c 'I/O error')"
"#;
    let output = bed.guest_at("disk1", 1, script).end();
    // The address is derived from the end of the port name.
    for expected in ["SANLOOM", "0x000001", "errors 0"] {
        assert!(output.contains(expected), "{expected} is missing in:\n{output}");
    }
    bed.stop();
    check_vn2vn(&bed.capture("disk1"), 2 * 8 * 512);

    let mut target =
        bed.guest_at("peer", 2, "fcoe-target 64 20:00:52:54:00:00:00:01 -- vn2vn && echo serving && wait_for stop");
    target.wait_for_line("serving");
    let port = "dgram:{folder}/peer.sock,{folder}/peer.peer.sock";
    let nbd = bed.start_initiator("ours", &["--vn2vn", "--mac", "52:54:00:00:00:01", "--port", port]);
    write_and_verify(&uri(&nbd, "fc-0x2000525400000002-lun-0"));
    bed.stop_others();
    target.kill();
    check_vn2vn(&bed.capture("ours"), 2 * 4 * 512);
}

/// Direct attachment of our own initiator and target.
#[needs("qemu-io", "tshark")]
#[test]
fn our_initiator_and_our_storage_find_each_other_without_a_switch() {
    let mut bed = Bed::start("direct", LAB, &["disk1"]);
    let port = "dgram:{folder}/disk1.peer.sock,{folder}/disk1.sock";
    let nbd = bed.start_initiator("ours", &["--vn2vn", "--mac", "52:54:00:00:00:01", "--port", port]);
    write_and_verify(&uri(&nbd, "fc-0x2000525400000003-lun-0"));
    bed.stop_others();
    bed.stop();
    check_vn2vn(&bed.capture("disk1"), 2 * 4 * 512);
}

/// Both have claimed their address, sent beacons, and logged in to each other.
fn check_vn2vn(capture: &Path, frames: usize) {
    check_capture(capture, frames);
    // FIP VN2VN (operation 5): claim, claim response, beacon; and FLOGI in FIP.
    for filter in ["fip.vn2vn_subcode == 3", "fip.vn2vn_subcode == 4", "fip.vn2vn_subcode == 5", "fcels.opcode == 4"] {
        let found = run("tshark", &["-r", &capture.display().to_string(), "-Y", filter]);
        assert!(!found.is_empty(), "no {filter} in {}", capture.display());
    }
}
