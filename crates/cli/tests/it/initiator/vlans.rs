//! Several fabrics on one wire, each in a VLAN, with a host of `fcoemon` in each.

use crate::initiator::bed::Bed;
use crate::initiator::namespace::{in_namespace, section};
use sanloom_test_support::needs;

const LAB: &str = r#"
[live]
folder = "{folder}"

[switch."sw{1..2}"]

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[host.server2]
wwpn = "20:00:52:54:00:00:00:02"

[storage."disk{1..2}"]
lun_size = "64MiB"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "packet", address = "v0", vlan = 152, dcbx = true }

[[link]]
from = "server2"
to = "sw2"
ethernet = { carrier = "packet", address = "v0", vlan = 153, dcbx = true }

[[link]]
from = "disk1"
to = "sw1"

[[link]]
from = "disk2"
to = "sw2"
"#;

/// `$1`: sanloom, `$2`: the folder.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs run /run
ip link set lo up
ip link add v0 mtu 2500 type veth peer name v1 mtu 2500
ip link set v0 up
ip link set v1 up
mkfifo $2/ready
mkdir $2/etc
up() {
    $1 up $2/lab.toml --ready-fd 3 3>$2/ready 2>>$2/log &
    up=$!
    read said <$2/ready
}
# The instances that are online, or what there is instead after 30 s.
online() {
    for try in $(seq 300); do
        $1 fcoeadm --run-folder $2/run -i >$2/shown 2>/dev/null || true
        found=$(grep -A9 "over v1" $2/shown | grep -e "Symbolic" -e "State:.*Online" | grep -B1 Online | grep -o "over .*" | tr '\n' ' ')
        [ "$found" = "$3" ] && break
        sleep 0.1
    done
    echo "online: $found"
}
up $1 $2
$1 fcoemon -f --config-folder $2/etc --run-folder $2/run 2>$2/monitor.log &
monitor=$!
printf 'FCOE_ENABLE="yes"\nDCB_REQUIRED="yes"\nAUTO_VLAN="yes"\nMAC="52:54:00:00:00:01"\n' >$2/etc/cfg-v1
echo "== both"
online $1 $2 "over v1.152-fcoe over v1.153-fcoe "
ls $2/run
echo "== units"
for try in $(seq 100); do
    [ $($1 fcoeadm --run-folder $2/run -t | grep -c SANLOOM) = 2 ] && break
    sleep 0.1
done
$1 fcoeadm --run-folder $2/run -t v1.153-fcoe
echo "== one ended"
$1 fcoeadm --run-folder $2/run -d v1.152-fcoe
online $1 $2 "over v1.153-fcoe "
$1 fcoeadm --run-folder $2/run -d v1.152-fcoe 2>&1 || true
echo "logged out: $(grep -c 'host gone' $2/log)"
echo "== and begun"
$1 fcoeadm --run-folder $2/run -c v1.152-fcoe
online $1 $2 "over v1.152-fcoe over v1.153-fcoe "
$1 fcoeadm --run-folder $2/run -c v1 2>&1 || true
begun() {
    grep -c 'instance started interface="v1.152-fcoe"' $2/monitor.log
}
kept=$(begun $1 $2)
# The switches come back, one of them in another VLAN.
kill $up
wait $up
echo "== waits"
online $1 $2 ""
sed -i 's/vlan = 153/vlan = 154/' $2/lab.toml
up $1 $2
echo "== moved"
online $1 $2 "over v1.152-fcoe over v1.154-fcoe "
[ "$kept" = "$(begun $1 $2)" ] && echo "the same process"
# They come back without DCBX: FCoE does not begin, and hosts wait.
kill $up
wait $up
sed -i 's/, dcbx = true//' $2/lab.toml
up $1 $2
echo "== without DCBX"
# Longer than from one question for VLANs to the next.
sleep 8
$1 fcoeadm --run-folder $2/run -i
echo "== gone"
rm $2/etc/cfg-v1
for try in $(seq 100); do
    $1 fcoeadm --run-folder $2/run -i >/dev/null 2>&1 || break
    sleep 0.1
done
$1 fcoeadm --run-folder $2/run -i 2>&1 || true
echo "== end"
kill $monitor $up
wait $monitor $up
"#;

#[needs("namespace")]
#[test]
fn fcoemon_has_a_host_in_every_vlan_of_a_wire() {
    let bed = Bed::folder("vlans", LAB);
    let output = in_namespace(&bed, SCRIPT);
    let log = std::fs::read_to_string(bed.path("monitor.log")).unwrap_or_default();
    let is = |name: &str, text: &str| {
        assert!(format!("{}\n", section(&output, name)).contains(text), "no {text} in {name}:\n{output}\n{log}");
    };
    is("both", "online: over v1.152-fcoe over v1.153-fcoe");
    is("both", "v1.152-fcoe.sock");
    is("both", "v1.153-fcoe.sock");
    is("units", "Interface:        v1.153-fcoe");
    is("units", "SANLOOM");
    is("one ended", "online: over v1.153-fcoe \n");
    is("one ended", "logged out: 1\n");
    is("one ended", "no connection created on interface v1.152-fcoe");
    is("and begun", "online: over v1.152-fcoe over v1.153-fcoe");
    is("and begun", "connection already created on interface v1");
    is("waits", "online: \n");
    is("moved", "online: over v1.152-fcoe over v1.154-fcoe");
    is("moved", "the same process");
    assert_eq!(section(&output, "without DCBX").matches("State:             Offline").count(), 2, "{output}\n{log}");
    is("gone", "no FCoE interfaces created");
}
