//! Taps: the switch opens one and a host uses it as an interface, and vice versa.

use crate::initiator::bed::Bed;
use crate::initiator::namespace::{in_namespace, section};
use sanloom_test_support::needs;

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
ethernet = { carrier = "tap", address = "t0" }

[[link]]
from = "server2"
to = "sw1"
ethernet = { carrier = "packet", address = "t1", vlan = 152 }

[[link]]
from = "disk1"
to = "sw1"
"#;

const SCRIPT: &str = r#"
set -e
ip link set lo up
ip tuntap add dev t1 mode tap
ip link set t1 mtu 2500 up
# One FIFO each, because a writer may still have it open.
mkfifo $2/ready $2/ready.one $2/ready.two
$1 up $2/lab.toml --ready-fd 3 3>$2/ready 2>>$2/log &
up=$!
read said <$2/ready
$1 initiator $2/lab.toml --host server1 --nbd $2/one.sock --ready-fd 3 3>$2/ready.one 2>>$2/log &
one=$!
read said <$2/ready.one
$1 initiator --port tap:t1 --vlan auto --mac 52:54:00:00:00:02 --nbd $2/two.sock --ready-fd 3 3>$2/ready.two 2>>$2/log &
two=$!
read said <$2/ready.two
echo "== written"
qemu-io -f raw -c "write -P 0x51 1M 2M" -c flush "nbd+unix:///?socket=$2/one.sock"
echo "== read"
qemu-io -f raw -c "read -P 0x51 1M 2M" "nbd+unix:///?socket=$2/two.sock"
echo "== logins"
$1 show flogi $2/lab.toml --live
# An interface that is down is a pulled cable.
ip link set t0 down
echo "== down"
for try in $(seq 300); do
    shown=$($1 show ports $2/lab.toml --live --json | tr -d ' \n')
    [[ $shown == *'"port":"sw1:0","mode":"down","light":false'* ]] && break
    sleep 0.1
done
echo "after $try looks: $shown"
echo "== end"
kill $one $two $up
wait $one $two $up
"#;

#[needs("namespace", "qemu-io")]
#[test]
fn hosts_and_switches_meet_at_taps() {
    let bed = Bed::folder("taps", LAB);
    let output = in_namespace(&bed, SCRIPT);
    let log = bed.log();
    assert!(section(&output, "written").contains("wrote 2097152/2097152"), "{output}\n{log}");
    let read = section(&output, "read");
    assert!(read.contains("read 2097152/2097152") && !read.contains("failed"), "{output}\n{log}");
    let logins = section(&output, "logins");
    assert!(logins.contains("server1") && logins.contains("server2"), "{output}\n{log}");
    assert!(section(&output, "down").contains("\"mode\":\"down\",\"light\":false"), "{output}\n{log}");
}
