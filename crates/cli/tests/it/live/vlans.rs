//! Several forwarders, fabrics and VLANs at one Ethernet port, with the kernel's host.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;

/// One fabric in VLAN 101, another one of two switches in VLAN 102.
const LAB: &str = r#"
[switch."sw{1..3}"]
fcoe = { keep_alive = "500ms" }

[switch.sw2]
fcoe = { priority = 10 }

[switch.sw3]
fcoe = { priority = 20 }

[host."also{2..3}"]

[storage."disk{1..2}"]
lun_size = "64MiB"

[[isl]]
from = "sw2"
to = "sw3"

[[link]]
from = "also{2..3}"
to = "sw{2..3}"
ethernet = { carrier = "dgram", address = "server1-sw1.sock", peer = "server1-sw1.peer.sock", vlan = 102 }

[[link]]
from = "disk{1..2}"
to = "sw{1..2}"
"#;

/// The host discovers both VLANs and joins the one with two forwarders. It selects the forwarder
/// with the lower number. When that one fails, it uses the other, and its disk continues to work.
#[needs("guest", "tshark")]
#[test]
fn a_host_chooses_among_forwarders_in_its_vlan_and_changes_to_another() {
    let changes = [(
        "ethernet = { carrier = \"dgram\" }\n\n[switch",
        "ethernet = { carrier = \"dgram\", address = \"server1-sw1.sock\", vlan = 101 }\n\n[switch",
    )];
    let mut bed = Bed::start_changed("vlans", LAB, &changes, &["server1-sw1"]);
    let script = r#"
echo "== fipvlan"
fipvlan eth0 || exit 1
echo "== end"
modprobe 8021q
# fipvlan may leave the interface as it found it: down.
ip link set eth0 up
ip link add link eth0 name eth0.102 type vlan id 102 || exit 2
fcoe-up eth0.102
disk-wait 30 >/dev/null || exit 3
for port in /sys/class/fc_remote_ports/rport*; do echo 60 >$port/dev_loss_tmo; done
dd if=/dev/urandom of=/tmp/data bs=64k count=1 2>/dev/null
pass=0
until received stop; do
    dd if=/tmp/data of=/dev/sda bs=64k seek=$((pass % 60)) oflag=direct 2>/dev/null || exit 4
    dd if=/dev/sda of=/tmp/back bs=64k skip=$((pass % 60)) count=1 iflag=direct 2>/dev/null || exit 5
    cmp /tmp/data /tmp/back || exit 6
    pass=$((pass + 1))
    echo "pass $pass"
    usleep 500000
done
echo "host $(cat /sys/class/fc_host/host*/port_state)"
"#;
    let mut running = bed.guest("server1", 1, script);
    let received = running.wait_for_line("pass 2");
    let found = received.split("== fipvlan").nth(1).and_then(|rest| rest.split("== end").next()).unwrap_or_default();
    assert!(found.contains("101") && found.contains("102"), "{received}");
    let login = |switch: &str| format!("port logged in switch=\"{switch}\" ethernet=\"server1-sw1\"");
    let log = bed.log();
    assert_eq!([1, 2, 3].map(|number| log.matches(&login(&format!("sw{number}"))).count()), [0, 1, 0]);

    bed.command(&["port", "disable", "sw2:1"]);
    bed.wait_for_log(&login("sw3"), 1);
    // The first of them may have begun earlier.
    running.wait_for_new_lines("pass ", 3);
    running.send("stop");
    let output = running.end();
    assert!(output.contains("host Online"), "{output}");
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 100);
}
