//! Three switches, each in a process of its own, joined over Ethernet (VE_Ports).

use crate::bed::{Bed, captured, check_capture};
use std::time::{Duration, Instant};

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

/// The host is at one switch, its disk at another. The link between them is cut while the host writes and reads: it goes on
/// over the third switch, and finds what it wrote.
#[test]
fn io_goes_on_over_the_other_path_when_a_link_between_switches_is_cut() {
    let captures: [(&str, &[&str]); 3] = [("sw1", &["server1-sw1", "ISL1"]), ("sw2", &[]), ("sw3", &["ISL3"])];
    let Some(mut bed) = Bed::start_fabric("fabric", LAB, &captures) else { return };
    let begun = Instant::now();
    while !bed.show_on("ns", "sw1").contains("disk1") {
        assert!(begun.elapsed() < Duration::from_secs(40), "{}", bed.show_on("fabric", "sw1"));
        std::thread::sleep(Duration::from_millis(200));
    }
    let script = r#"
fcoe-initiator 1 || exit 1
pass=0
while [ $(cut -d. -f1 /proc/uptime) -lt 35 ]; do
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
    running.hear("pass 5");
    assert!(bed.show_on("routes", "sw1").contains("sw1:2"), "{}", bed.show_on("routes", "sw1"));
    bed.command(&["port", "disable", "sw1:2"]);
    let begun = Instant::now();
    while bed.show_on("routes", "sw1").contains("sw1:2") {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", bed.show_on("routes", "sw1"));
        std::thread::sleep(Duration::from_millis(100));
    }
    // The first of them may have begun before.
    (0..3).for_each(|_| _ = running.hear("pass "));
    running.end().good();
    bed.stop_others();
    let [host, detour, direct] = ["server1-sw1", "ISL1", "ISL3"].map(|link| bed.capture(link));
    check_capture(&host, 5 * 2 * 128);
    for link in [&detour, &direct] {
        check_capture(link, 512);
        // Link parameters come in FIP, zones and routes behind them as FCoE; and data cross.
        for filter in ["fip.opcode == 2 && swils.opcode == 0x10", "swils.opcode == 0x14", "fc.r_ctl == 0x01"] {
            assert!(!captured(link, filter).is_empty(), "no {filter} in {}", link.display());
        }
    }
    // The ports are called after the switch, as the lab says.
    let named = "eth.src == 02:05:1e:21:00:01 && swils.opcode == 0x10";
    assert!(!captured(&detour, named).is_empty(), "{named}");
}
