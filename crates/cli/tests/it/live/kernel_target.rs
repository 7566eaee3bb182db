//! The kernel's target (tcm_fc) at our switch, with the kernel's initiator and ours.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;
use sanloom_test_support::programs::{fail, run, uri};
use sanloom_test_support::qemu_io::write_and_verify;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "1s" }

[host.server2]
wwpn = "20:00:52:54:00:00:00:02"

[storage.target]
wwpn = "20:00:52:54:00:00:00:03"

[[link]]
from = "{server2,target}"
to = "sw1"
ethernet = { carrier = "dgram" }
"#;

/// The disk of the target appears at a kernel initiator and at ours. Each verifies its own data,
/// and the kernel verifies ours as well.
#[needs("guest", "nbdinfo", "qemu-io", "tshark")]
#[test]
fn initiators_of_the_kernel_and_ours_use_the_kernels_target() {
    let links = ["server1-sw1", "server2-sw1", "target-sw1"];
    let mut bed = Bed::start("target", LAB, &links);
    let script = r#"
fcoe-target 64 20:00:52:54:00:00:00:01 20:00:52:54:00:00:00:02 || exit 1
echo serving
wait_for stop
"#;
    let mut target = bed.guest("target", 3, script);
    target.wait_for_line("serving");

    let nbd = bed.start_initiator("server2", &["{folder}/lab.toml", "--host", "server2"]);
    let name = "fc-0x2000525400000003-lun-0";
    let uri = uri(&nbd, name);
    let info = run("nbdinfo", &["--json", &uri]);
    assert!(info.contains("\"export-size\": 67108864") && info.contains("LIO-ORG"), "{info}");
    write_and_verify(&uri);
    assert!(fail("qemu-io", &["-f", "raw", "-c", "write 64M 4k", &uri]).contains("rror"));

    // The kernel reads our data and writes after them.
    let script = r#"
fcoe-initiator 1 || exit 1
cat /sys/block/sda/device/vendor
dd if=/dev/sda of=/tmp/seen bs=1M skip=16 count=4 iflag=direct 2>/dev/null || exit 2
[ "$(tr -d '\042' </tmp/seen | wc -c)" = 0 ] || exit 3
dd if=/dev/urandom of=/tmp/data bs=1M count=8 2>/dev/null
dd if=/tmp/data of=/dev/sda bs=1M seek=40 oflag=direct 2>/dev/null || exit 4
dd if=/dev/sda of=/tmp/back bs=4k skip=10240 count=2048 iflag=direct 2>/dev/null || exit 5
cmp /tmp/data /tmp/back || exit 6
sg_reset -d /dev/sda || exit 7
dd if=/dev/sda of=/tmp/back bs=1M skip=40 count=8 iflag=direct 2>/dev/null || exit 8
cmp /tmp/data /tmp/back || exit 9
echo "errors $(dmesg | grep -c 'I/O error')"
"#;
    let output = bed.guest("server1", 1, script).end();
    assert!(output.contains("LIO-ORG") && output.contains("errors 0"), "{output}");
    bed.stop_others();
    bed.stop();
    target.kill();
    for link in links {
        // At least the data, in frames of 2048 bytes: ours transferred more than 4 MiB, the kernel
        // more.
        check_capture(&bed.capture(link), 2 * 4 * 512);
    }
}
