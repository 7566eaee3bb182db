//! Taps: the switch opens one and a host uses it as an interface, and vice versa.

use crate::initiator::bed::Bed;
use crate::initiator::netns::{in_namespace, lab, section};
use sanloom_test_support::needs;

const LINKS: [(&str, &str); 2] = [
    ("sw1", r#"{ carrier = "tap", address = "t0" }"#),
    ("sw1", r#"{ carrier = "packet", address = "t1", vlan = 152 }"#),
];

const SCRIPT: &str = r#"
ip tuntap add dev t1 mode tap
ip link set t1 mtu 2500 up
start up $folder/lab.toml
up=$started
start initiator $folder/lab.toml --host server1 --nbd $folder/one.sock
one=$started
start initiator --port tap:t1 --vlan auto --mac 52:54:00:00:00:02 --nbd $folder/two.sock
two=$started
echo "== written"
qemu-io -f raw -c "write -P 0x51 1M 2M" -c flush "nbd+unix:///?socket=$folder/one.sock"
echo "== read"
qemu-io -f raw -c "read -P 0x51 1M 2M" "nbd+unix:///?socket=$folder/two.sock"
echo "== logins"
$sanloom show flogi $folder/lab.toml --live
# An interface that is down is a pulled cable.
ip link set t0 down
echo "== down"
is_down() {
    shown=$($sanloom show ports $folder/lab.toml --live --json | tr -d ' \n')
    [[ $shown == *'"port":"sw1:0","mode":"down","light":false'* ]]
}
until_good is_down
echo "$shown"
echo "== end"
kill $one $two $up
wait $one $two $up
"#;

#[needs("namespace", "qemu-io")]
#[test]
fn hosts_and_switches_meet_at_taps() {
    let bed = Bed::folder("taps", &lab(1, &LINKS));
    let output = in_namespace(&bed, SCRIPT);
    let log = bed.log();
    assert!(section(&output, "written").contains("wrote 2097152/2097152"), "{output}\n{log}");
    let read = section(&output, "read");
    assert!(read.contains("read 2097152/2097152") && !read.contains("failed"), "{output}\n{log}");
    let logins = section(&output, "logins");
    assert!(logins.contains("server1") && logins.contains("server2"), "{output}\n{log}");
    assert!(section(&output, "down").contains("\"mode\":\"down\",\"light\":false"), "{output}\n{log}");
}
