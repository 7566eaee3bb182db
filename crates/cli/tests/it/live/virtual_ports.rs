//! Forty virtual ports (NPIV) created by the kernel, each zoned to its own storage.

use crate::live::bed::{Bed, check_capture};
use sanloom_api::view::{Table, View};
use sanloom_test_support::needs;

const LAB: &str = r#"
[switch.sw1]
addressing = "flat"

[host."vm{1..40}"]
on = "server1"
wwpn = "25:00:00:00:00:00:01:01"

[storage."disk{1..40}"]
lun_size = "16MiB"

[zoning]
default = "closed"

[[zone]]
name = "z{1..40}"
members = ["vm{1..40}", "disk{1..40}"]

[[link]]
from = "disk{1..40}"
to = "sw1"
"#;

/// Each port sees only its own disk. After all are deleted, the switch has no state of them.
#[needs("guest", "tshark")]
#[test]
fn forty_virtual_ports_each_see_their_own_disk_only() {
    let mut bed = Bed::start("vports", LAB, &["server1-sw1"]);
    let script = r#"
fcoe-up eth0
fcoe-wait 30 || exit 1
base=$(ls /sys/class/fc_host)
n=1
while [ $n -le 40 ]; do
    printf '250000000000%04x:100000000000%04x' $((256 + n)) $((256 + n)) >/sys/class/fc_host/$base/vport_create || exit 2
    n=$((n + 1))
done
disk-wait 60 40 >/dev/null || exit 3
sleep 1
disks=$(ls /sys/block | grep -c ^sd)
hosts=0
for host in /sys/class/scsi_host/host*; do
    seen=$(ls -d $host/device/rport-*/target*/*:*:*:*/block/* 2>/dev/null | wc -l)
    [ $seen = 1 ] && hosts=$((hosts + 1))
done
for host in /sys/class/fc_host/host*; do
    for port in $host/device/rport-*/fc_remote_ports/rport-*; do
        grep -q Target $port/roles && echo "pair $(cat $host/port_name) $(cat $port/port_name)"
    done
done
echo "disks $disks, hosts with one disk $hosts"
echo ready-to-look
wait_for delete
n=1
while [ $n -le 40 ]; do
    printf '250000000000%04x:100000000000%04x' $((256 + n)) $((256 + n)) >/sys/class/fc_host/$base/vport_delete || exit 4
    n=$((n + 1))
done
n=0
while [ $n -lt 600 ] && [ $(ls /sys/class/fc_host | wc -l) != 1 ]; do usleep 50000; n=$((n + 1)); done
echo "left $(ls /sys/class/fc_host | wc -l), disks $(ls /sys/block | grep -c ^sd)"
echo deleted
wait_for stop
"#;
    let mut running = bed.guest("server1", 1, script);
    let mut console = running.wait_for_line("ready-to-look");
    // The host itself, its virtual ports, and the storage.
    assert_eq!(bed.show("flogi").matches("vm").count(), 40, "{}", bed.show("flogi"));
    let View { table: Table::Ns(names), .. } =
        serde_json::from_str(&bed.command(&["show", "ns", "--live", "--json"])).unwrap()
    else {
        panic!("no name server")
    };
    let name = |owner: String| names.objects.iter().find(|row| row.owner == owner).unwrap().port_name.replace(':', "");
    for number in 1..=40 {
        let pair = format!("pair 0x{} 0x{}", name(format!("vm{number}")), name(format!("disk{number}")));
        assert!(console.contains(&pair), "{pair} is missing on the console");
    }
    running.send("delete");
    console += &running.wait_for_line("deleted");
    let after = bed.show("ns");
    assert!(!after.contains("25:00:") && after.contains("disk40"), "{after}");
    let after = bed.show("flogi");
    assert!(!after.contains("vm") && after.contains("server1"), "{after}");
    running.send("stop");
    console += &running.end();
    for expected in ["disks 40, hosts with one disk 40", "left 1, disks 0"] {
        assert!(console.contains(expected), "{expected} is missing on the console");
    }
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 40 * 20);
}
