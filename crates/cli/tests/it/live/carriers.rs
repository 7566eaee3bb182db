//! Other connections from a virtual machine to the switch: an inherited socket pair, and a stream.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "1s" }

[storage.ram]
lun_size = "64MiB"

[[link]]
from = "ram"
to = "sw1"
"#;

/// Writes a megabyte and reads it back.
const SCRIPT: &str = r#"
fcoe-initiator 1 || exit 1
dd if=/dev/urandom of=/tmp/data bs=64k count=16 2>/dev/null
dd if=/tmp/data of=/dev/sda bs=256k oflag=direct 2>/dev/null || exit 2
dd if=/dev/sda of=/tmp/back bs=64k count=16 iflag=direct 2>/dev/null || exit 3
cmp /tmp/data /tmp/back || exit 4
echo "host $(cat /sys/class/fc_host/host*/port_state)"
"#;

#[needs("guest", "tshark")]
#[test]
fn a_guest_works_over_a_socket_pair_that_was_inherited() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let change = [("carrier = \"dgram\"", "carrier = \"fd\", address = \"7\"")];
    let mut bed = Bed::start_on("descriptor", LAB, &change, &["server1-sw1"], ours.into());
    let netdev = "dgram,local.type=fd,local.str=7";
    let output = bed.guest_on(netdev, Stdio::from(std::os::fd::OwnedFd::from(theirs)), "server1-sw1", 1, SCRIPT).end();
    assert!(output.contains("host Online"));
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 2 * 512);
}

/// Uses the arguments from `--print-qemu`.
#[needs("guest", "tshark")]
#[test]
fn a_guest_works_over_a_stream() {
    let change = [("carrier = \"dgram\"", "carrier = \"stream\"")];
    let mut bed = Bed::start_changed("stream", LAB, &change, &["server1-sw1"]);
    let printed: serde_json::Value = serde_json::from_str(&bed.command(&["up", "--print-qemu", "--json"])).unwrap();
    assert_eq!(printed[0]["link"], "server1-sw1");
    let netdev = printed[0]["netdev"].as_str().unwrap().replace("id=n0,", "");
    let output = bed.guest_on(&netdev, Stdio::null(), "server1-sw1", 1, SCRIPT).end();
    assert!(output.contains("host Online"));
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 2 * 512);
}
