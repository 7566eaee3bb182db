//! FCoE over veth in a network namespace of the test: packet sockets, VLAN devices, and third-party
//! decoding of our LLDP.

use crate::initiator::bed::Bed;
use crate::initiator::netns::{in_namespace, lab, section};
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;

const LINKS: [(&str, &str); 2] = [
    ("sw1", r#"{ carrier = "packet", address = "v0", vlan = 152, dcbx = true }"#),
    ("sw1", r#"{ carrier = "packet", address = "w0", vlan = 153 }"#),
];

const SCRIPT: &str = r#"
mount -t tmpfs run /run
mount -t tmpfs lib /var/lib
mount -t sysfs sys /sys
# lldpad stores its identity there; a new one would otherwise use that of an earlier one.
mount -t tmpfs shm /dev/shm
mkdir /var/lib/lldpad
pair v0 v1
pair w0 w1
lldpad -d -f /var/lib/lldpad/lldpad.conf
until_good lldptool set-lldp -i v1 adminStatus=rxtx >/dev/null 2>&1
start up $folder/lab.toml --capture server1-sw1=$folder/lldp.pcapng --capture server2-sw1=$folder/fcoe.pcapng
up=$started

# Not every kernel has VLAN devices. Without them -c reports that, and the host tags its frames.
create=-c
ip link add link w1 name probe type vlan id 9 2>/dev/null || create=
echo "== create"
$sanloom fipvlan --mac 52:54:00:00:00:02 -c w1 2>&1 || echo "code $?"
[ -z "$create" ] || ip -d link show w1.153-fcoe | grep -o "vlan protocol 802.1Q id [0-9]*"
echo "== auto"
$sanloom fipvlan -a
echo "== fipvlan"
$sanloom fipvlan --run-folder $folder/run --mac 52:54:00:00:00:02 $create -s w1
has_target() {
    fcoeadm -t 2>/dev/null | grep -q SANLOOM
}
until_good has_target
echo "== fcoeadm"
fcoeadm -i
fcoeadm -t
echo "== lldptool"
has_pfc() {
    lldptool -t -n -i v1 | grep -q PFC
}
until_good has_pfc
lldptool -t -n -i v1
echo "== ended"
fcoeadm -d w1
until_good has_no_instance
fcoeadm -i 2>&1 || true
echo "== moved"
is_in_vlan() {
    fcoeadm -i --json 2>/dev/null | tr -d ' \n' | grep -o "\"vlan\":$1.*\"port_id\":[0-9]"
}
$sanloom initiator --port w1 --vlan auto --mac 52:54:00:00:00:02 --nbd $folder/run/w1.sock --control $folder/run/w1.ctl 2>>$folder/log &
host=$!
until_good is_in_vlan 153
# The link stays; whoever is behind it comes back in another VLAN.
kill $up
wait $up
sed -i 's/vlan = 153/vlan = 154/' $folder/lab.toml
start up $folder/lab.toml
up=$started
until_good is_in_vlan 154
echo "== end"
kill $host $up
wait $host $up
"#;

#[needs("lldpad", "namespace", "tshark")]
#[test]
fn others_read_our_lldp_and_vlan_devices_carry_fcoe() {
    let bed = Bed::folder("namespace", &lab(1, &LINKS));
    let output = in_namespace(&bed, SCRIPT);
    let section = |name: &str| section(&output, name);

    let found = section("fipvlan");
    assert!(found.contains("w1              | 153  | 02:53:4c:01:00:01"), "{output}");
    // Each interface sends requests with its own address; on the others no VLAN is reported.
    let auto = section("auto");
    assert!(["v1              | 152", "w1              | 153"].iter().all(|row| auto.contains(row)), "{output}");
    assert_eq!(auto.matches("02:53:4c:01:00").count(), 2, "{output}");
    let created = section("create");
    let refused = "cannot create the VLAN device w1.153-fcoe: Operation not supported";
    match created.contains("code") {
        false => {
            assert!(
                created.contains("Created VLAN device w1.153-fcoe") && created.contains("802.1Q id 153"),
                "{output}"
            );
        }
        true => assert!(created.contains(refused) && created.contains("code 4"), "{output}"),
    }
    let shown = section("fcoeadm");
    assert!(shown.contains("State:             Online") && shown.contains("VIRTUAL DISK"), "{output}");
    let tagged = run("tshark", &["-r", &bed.path("fcoe.pcapng"), "-Y", "vlan.id == 153 && fcoe.crc.status == 1"]);
    assert!(tagged.lines().count() > 20, "{tagged}");

    assert!(section("ended").contains("no FCoE interfaces created"), "{output}");
    let moved = section("moved");
    assert!(moved.contains("\"vlan\":153") && moved.contains("\"vlan\":154"), "{output}");

    let lldp = section("lldptool");
    for text in [
        "Ifname: server1-sw1",
        "PRIO_MAP: 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0",
        "TC Bandwidth: 50% 50% 0% 0% 0% 0% 0% 0%",
        "IEEE 8021QAZ ETS Recommendation TLV",
        "PFC enabled: 3",
        "Prio 3 \t Sel 1 \t P-ID\t Ethertype: 0x8906",
        "Ethertype: 0x8914",
    ] {
        assert!(lldp.contains(text), "{text} is missing in:\n{lldp}");
    }
    let decoded = run("tshark", &["-r", &bed.path("lldp.pcapng"), "-Y", "lldp && eth.src == 02:53:4c:01:00:00", "-V"]);
    assert!(decoded.contains("PFC for Priority 3: Enabled"), "{decoded}");
    // The peer supports LLDP without DCBX, so FCoE has not begun.
    let begun =
        run("tshark", &["-r", &bed.path("lldp.pcapng"), "-Y", "fip.disc_subcode && eth.src == 02:53:4c:01:00:00"]);
    assert_eq!(begun, "");
}

const AGAIN_SCRIPT: &str = r#"
pair v0 v1
start up $folder/lab.toml
up=$started
mkdir $folder/run
$sanloom initiator --port v1 --mac 52:54:00:00:00:01 --nbd $folder/run/v1.sock --control $folder/run/v1.ctl 2>>$folder/log &
host=$!
is() {
    fcoeadm -i 2>/dev/null | grep "State: *$1"
}
until_good is Online
ip link del v0
until_good is Linkdown
pair v0 v1
until_good is Online
echo "== end"
kill $host $up
wait $host $up
"#;

/// A recreated interface has a new index in the kernel, which a listening process must detect.
#[needs("namespace")]
#[test]
fn a_recreated_interface_is_used_again() {
    let lab = lab(1, &[("sw1", r#"{ carrier = "packet", address = "v0" }"#)]);
    let lab = format!("{lab}[switch.\"*\"]\nfcoe = {{ keep_alive = \"500ms\" }}\n");
    let bed = Bed::folder("made-again", &lab);
    let output = in_namespace(&bed, AGAIN_SCRIPT);
    let states: Vec<&str> = output.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(states[..3], ["Online", "Linkdown", "Online"], "{output}");
}
