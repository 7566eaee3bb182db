//! Three switches in separate processes, connected over Ethernet (VE_Ports).

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;
use sanloom_test_support::tshark;
use sanloom_test_support::wait;

const LAB: &str = r#"
[switch."sw{1..3}"]
domain = 1
wwn = "10:00:00:05:1e:00:00:21"

[storage.disk1]
lun_size = "64MiB"

[[link]]
from = "disk1"
to = "sw3"

[[isl]]
from = "sw{1..2}"
to = "sw{2..3}"
ethernet = { carrier = "dgram" }

[[isl]]
from = "sw1"
to = "sw3"
ethernet = { carrier = "stream" }
"#;

/// The host and its disk are at different switches. The link between them is cut while the host
/// writes and reads. The traffic continues over the third switch, and all data are verified.
#[needs("guest", "tshark")]
#[test]
fn io_goes_on_over_the_other_path_when_a_link_between_switches_is_cut() {
    let captures: [(&str, &[&str]); 3] = [("sw1", &["server1-sw1", "ISL1"]), ("sw2", &[]), ("sw3", &["ISL3"])];
    let mut bed = Bed::start_fabric("fabric", LAB, &captures);
    wait::until(|| bed.show_on("fabric", "sw1"), || bed.show_on("ns", "sw1").contains("disk1"));
    let script = r#"
fcoe-initiator 1 || exit 1
pass=0
until received stop; do
    dd if=/dev/urandom of=/tmp/data bs=64k count=4 2>/dev/null
    dd if=/tmp/data of=/dev/sda bs=256k seek=$((pass % 60)) oflag=direct 2>/dev/null || exit 3
    dd if=/dev/sda of=/tmp/back bs=256k skip=$((pass % 60)) count=1 iflag=direct 2>/dev/null || exit 4
    cmp /tmp/data /tmp/back || exit 5
    pass=$((pass + 1))
    echo "pass $pass"
    usleep 200000
done
"#;
    let mut running = bed.guest("server1", 1, script);
    running.wait_for_line("pass 5");
    assert!(bed.show_on("routes", "sw1").contains("sw1:2"), "{}", bed.show_on("routes", "sw1"));
    bed.command(&["port", "disable", "sw1:2"]);
    wait::until(|| bed.show_on("routes", "sw1"), || !bed.show_on("routes", "sw1").contains("sw1:2"));
    // The first of them may have started earlier.
    running.wait_for_new_lines("pass ", 3);
    running.send("stop");
    running.end();
    bed.stop_others();
    let [host, detour, direct] = ["server1-sw1", "ISL1", "ISL3"].map(|link| bed.capture(link));
    check_capture(&host, 5 * 2 * 128);
    for link in [&detour, &direct] {
        check_capture(link, 512);
        // Link parameters are carried in FIP, followed by zones and routes in FCoE; data frames
        // cross the link.
        for filter in ["fip.opcode == 2 && swils.opcode == 0x10", "swils.opcode == 0x14", "fc.r_ctl == 0x01"] {
            assert!(!tshark::frames(link, filter).is_empty(), "no {filter} in {}", link.display());
        }
    }
    // The ports are named after the switch, as in the lab.
    let named = "eth.src == 02:05:1e:21:00:01 && swils.opcode == 0x10";
    assert!(!tshark::frames(&detour, named).is_empty(), "{named}");
}
