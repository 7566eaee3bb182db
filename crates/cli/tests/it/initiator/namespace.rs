//! FCoE over veth in a network namespace of the test: packet sockets, VLAN devices, and third-party
//! decoding of our LLDP.

use crate::initiator::bed::Bed;
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;

const LAB: &str = r#"
[live]
folder = "{folder}"

[switch.sw1]

[host."server{1..2}"]
wwpn = "20:00:52:54:00:00:00:01"

[storage.disk1]
lun_size = "64MiB"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "packet", address = "v0", vlan = 152, dcbx = true }

[[link]]
from = "server2"
to = "sw1"
ethernet = { carrier = "packet", address = "w0", vlan = 153 }

[[link]]
from = "disk1"
to = "sw1"
"#;

/// `$1`: sanloom, `$2`: the folder.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs run /run
mount -t tmpfs lib /var/lib
mount -t sysfs sys /sys
# lldpad stores its identity there; a new one would otherwise use that of an earlier one.
mount -t tmpfs shm /dev/shm
mkdir /var/lib/lldpad
ip link set lo up
ip link add v0 mtu 2500 type veth peer name v1 mtu 2500
ip link add w0 mtu 2500 type veth peer name w1 mtu 2500
for interface in v0 v1 w0 w1; do ip link set $interface up; done
lldpad -d -f /var/lib/lldpad/lldpad.conf
for try in $(seq 100); do
    lldptool set-lldp -i v1 adminStatus=rxtx >/dev/null 2>&1 && break
    sleep 0.1
done
mkfifo $2/ready
$1 up $2/lab.toml --ready-fd 3 --capture server1-sw1=$2/lldp.pcapng --capture server2-sw1=$2/fcoe.pcapng 3>$2/ready 2>$2/log &
read said <$2/ready

# Not every kernel has VLAN devices. Without them -c reports that, and the host tags its frames.
create=-c
ip link add link w1 name probe type vlan id 9 2>/dev/null || create=
echo "== create"
$1 fipvlan --mac 52:54:00:00:00:02 -c w1 2>&1 || echo "code $?"
[ -z "$create" ] || ip -d link show w1.153-fcoe | grep -o "vlan protocol 802.1Q id [0-9]*"
echo "== auto"
$1 fipvlan -a
echo "== fipvlan"
$1 fipvlan --run-folder $2/run --mac 52:54:00:00:00:02 $create -s w1
for try in $(seq 100); do
    $1 fcoeadm --run-folder $2/run -t 2>/dev/null | grep -q SANLOOM && break
    sleep 0.1
done
echo "== fcoeadm"
$1 fcoeadm --run-folder $2/run -i
$1 fcoeadm --run-folder $2/run -t
echo "== lldptool"
for try in $(seq 100); do
    lldptool -t -n -i v1 | grep -q PFC && break
    sleep 0.1
done
lldptool -t -n -i v1
echo "== ended"
$1 fcoeadm --run-folder $2/run -d w1
for try in $(seq 100); do
    $1 fcoeadm --run-folder $2/run -i >/dev/null 2>&1 || break
    sleep 0.1
done
$1 fcoeadm --run-folder $2/run -i 2>&1 || true
echo "== moved"
in_vlan() {
    for try in $(seq 300); do
        $1 fcoeadm --run-folder $2/run -i --json 2>/dev/null | tr -d ' \n' | grep -o "\"vlan\":$3.*\"port_id\":[0-9]" && return
        sleep 0.1
    done
}
$1 initiator --port w1 --vlan auto --mac 52:54:00:00:00:02 --nbd $2/run/w1.sock --control $2/run/w1.ctl 2>>$2/log &
host=$!
in_vlan $1 $2 153
# The link stays; whoever is behind it comes back in another VLAN.
kill %1
wait %1
sed -i 's/vlan = 153/vlan = 154/' $2/lab.toml
$1 up $2/lab.toml --ready-fd 3 3>$2/ready 2>>$2/log &
up=$!
read said <$2/ready
in_vlan $1 $2 154
echo "== end"
kill $host $up
wait $host $up
"#;

/// Returns the output of a script in its own network namespace; its arguments are sanloom and the
/// folder of the bed.
pub fn in_namespace(bed: &Bed, script: &str) -> String {
    std::fs::write(bed.path("script"), script).unwrap();
    let arguments = ["-rnmpf", "--kill-child", "--mount-proc", "bash"];
    let own = [bed.path("script"), SANLOOM.to_owned(), bed.path("")];
    let own: Vec<&str> = own.iter().map(|argument| argument.trim_end_matches('/')).collect();
    run("unshare", &[&arguments[..], &own].concat())
}

/// Returns the text after the line `== name`, up to the next such line.
pub fn section<'a>(output: &'a str, name: &str) -> &'a str {
    let begin = output.split(&format!("== {name}\n")).nth(1).unwrap_or_default();
    begin.split("\n== ").next().unwrap_or_default()
}

#[needs("lldpad", "namespace", "tshark")]
#[test]
fn others_read_our_lldp_and_vlan_devices_carry_fcoe() {
    let bed = Bed::folder("namespace", LAB);
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

const AGAIN_LAB: &str = r#"
[live]
folder = "{folder}"

[switch.sw1]
fcoe = { keep_alive = "500ms" }

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.disk1]
lun_size = "64MiB"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "packet", address = "v0" }

[[link]]
from = "disk1"
to = "sw1"
"#;

const AGAIN_SCRIPT: &str = r#"
set -e
ip link set lo up
pair() {
    ip link add v0 mtu 2500 type veth peer name v1 mtu 2500
    ip link set v0 up
    ip link set v1 up
}
pair
mkfifo $2/ready
$1 up $2/lab.toml --ready-fd 3 3>$2/ready 2>$2/log &
up=$!
read said <$2/ready
mkdir $2/run
$1 initiator --port v1 --mac 52:54:00:00:00:01 --nbd $2/run/v1.sock --control $2/run/v1.ctl 2>>$2/log &
host=$!
state() {
    for try in $(seq 300); do
        $1 fcoeadm --run-folder $2/run -i 2>/dev/null | grep "State: *$3" && return
        sleep 0.1
    done
}
state $1 $2 Online
ip link del v0
state $1 $2 Linkdown
pair
state $1 $2 Online
echo "== end"
kill $host $up
wait $host $up
"#;

/// A recreated interface has a new index in the kernel, which a listening process must detect.
#[needs("namespace")]
#[test]
fn a_recreated_interface_is_used_again() {
    let bed = Bed::folder("made-again", AGAIN_LAB);
    let output = in_namespace(&bed, AGAIN_SCRIPT);
    let states: Vec<&str> = output.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(states[..3], ["Online", "Linkdown", "Online"], "{output}");
}
