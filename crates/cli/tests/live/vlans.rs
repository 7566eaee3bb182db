//! Several forwarders, fabrics and VLANs at one Ethernet port, and the kernel's host there.

use crate::bed::{Bed, check_capture};

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

/// It is told of both VLANs, and joins the one with two forwarders. Of these it chooses the one with the lower number; when that
/// one is gone, the other, and its disk goes on.
#[test]
fn a_host_chooses_among_forwarders_in_its_vlan_and_changes_to_another() {
    let changes = [(
        "ethernet = { carrier = \"dgram\" }\n\n[switch",
        "ethernet = { carrier = \"dgram\", address = \"server1-sw1.sock\", vlan = 101 }\n\n[switch",
    )];
    let Some(mut bed) = Bed::start_changed("vlans", LAB, &changes, &["server1-sw1"]) else { return };
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
while [ $(cut -d. -f1 /proc/uptime) -lt 40 ]; do
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
    let heard = running.hear("pass 2");
    let found = heard.split("== fipvlan").nth(1).and_then(|rest| rest.split("== end").next()).unwrap_or_default();
    assert!(found.contains("101") && found.contains("102"), "{heard}");
    let login = |switch: &str| format!("port logged in switch=\"{switch}\" ethernet=\"server1-sw1\"");
    let log = bed.log();
    assert_eq!([1, 2, 3].map(|number| log.matches(&login(&format!("sw{number}"))).count()), [0, 1, 0], "{log}");

    bed.command(&["port", "disable", "sw2:1"]);
    bed.wait_for_log(&login("sw3"), 1);
    let said = running.end().good();
    assert!(said.contains("host Online"), "{said}");
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 100);
}
