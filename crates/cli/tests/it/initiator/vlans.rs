//! Several fabrics on one wire, each in a VLAN, with a host of `fcoemon` in each.

use crate::initiator::bed::Bed;
use crate::initiator::netns::{in_namespace, lab, section};
use sanloom_test_support::needs;

const LINKS: [(&str, &str); 2] = [
    ("sw1", r#"{ carrier = "packet", address = "v0", vlan = 152, dcbx = true }"#),
    ("sw2", r#"{ carrier = "packet", address = "v0", vlan = 153, dcbx = true }"#),
];

const SCRIPT: &str = r#"
mount -t tmpfs run /run
pair v0 v1
mkdir $folder/etc
up() {
    start up $folder/lab.toml
    up=$started
}
# The instances that are online, or what there is instead after 30 s.
are_online() {
    fcoeadm -i >$folder/shown 2>/dev/null || true
    found=$(grep -A9 "over v1" $folder/shown | grep -e "Symbolic" -e "State:.*Online" | grep -B1 Online | grep -o "over .*" | tr '\n' ' ')
    [ "$found" = "$1" ]
}
online() {
    until_good are_online "$1"
    echo "online: $found"
}
up
$sanloom fcoemon -f --config-folder $folder/etc --run-folder $folder/run 2>$folder/monitor.log &
monitor=$!
printf 'FCOE_ENABLE="yes"\nDCB_REQUIRED="yes"\nAUTO_VLAN="yes"\nMAC="52:54:00:00:00:01"\n' >$folder/etc/cfg-v1
echo "== both"
online "over v1.152-fcoe over v1.153-fcoe "
ls $folder/run
echo "== units"
has_two_targets() {
    [ $(fcoeadm -t | grep -c SANLOOM) = 2 ]
}
until_good has_two_targets
fcoeadm -t v1.153-fcoe
echo "== one ended"
fcoeadm -d v1.152-fcoe
online "over v1.153-fcoe "
fcoeadm -d v1.152-fcoe 2>&1 || true
echo "logged out: $(grep -c 'host gone' $folder/log)"
echo "== and begun"
fcoeadm -c v1.152-fcoe
online "over v1.152-fcoe over v1.153-fcoe "
fcoeadm -c v1 2>&1 || true
begun() {
    grep -c 'instance started interface="v1.152-fcoe"' $folder/monitor.log
}
kept=$(begun)
# The switches come back, one of them in another VLAN.
kill $up
wait $up
echo "== waits"
online ""
sed -i 's/vlan = 153/vlan = 154/' $folder/lab.toml
up
echo "== moved"
online "over v1.152-fcoe over v1.154-fcoe "
[ "$kept" = "$(begun)" ] && echo "the same process"
# They come back without DCBX: FCoE does not begin, and hosts wait.
kill $up
wait $up
sed -i 's/, dcbx = true//' $folder/lab.toml
up
echo "== without DCBX"
# Longer than from one question for VLANs to the next.
sleep 8
fcoeadm -i
echo "== gone"
rm $folder/etc/cfg-v1
until_good has_no_instance
fcoeadm -i 2>&1 || true
echo "== end"
kill $monitor $up
wait $monitor $up
"#;

#[needs("namespace")]
#[test]
fn fcoemon_has_a_host_in_every_vlan_of_a_wire() {
    let bed = Bed::folder("vlans", &lab(2, &LINKS));
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
