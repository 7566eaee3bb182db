//! Three switches, each in a process of its own, joined over Ethernet (VE_Ports).

use crate::bed::Bed;
use std::time::{Duration, Instant};

const LAB: &str = r#"
[switch."sw{1..3}"]
domain = 1

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
    let Some(bed) = Bed::start_fabric("fabric", LAB, &["sw1", "sw2", "sw3"]) else { return };
    let begun = Instant::now();
    while !bed.show_on("ns", "sw1").contains("disk1") {
        assert!(begun.elapsed() < Duration::from_secs(40), "{}", bed.show_on("fabric", "sw1"));
        std::thread::sleep(Duration::from_millis(200));
    }
    let script = r#"
fcoe-initiator 1 || exit 1
pass=0
while [ $(cut -d. -f1 /proc/uptime) -lt 35 ]; do
    dd if=/dev/urandom of=/tmp/data bs=64k count=16 2>/dev/null
    dd if=/tmp/data of=/dev/sda bs=1M seek=$((pass % 60)) oflag=direct 2>/dev/null || exit 3
    dd if=/dev/sda of=/tmp/back bs=1M skip=$((pass % 60)) count=1 iflag=direct 2>/dev/null || exit 4
    cmp /tmp/data /tmp/back || exit 5
    pass=$((pass + 1))
    echo "pass $pass"
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
    running.hear("pass ");
    running.end().good();
}
