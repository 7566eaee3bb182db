//! More ports than fit into one frame of a name server response, as seen by the kernel.

use crate::live::bed::Bed;
use sanloom_test_support::needs;
use sanloom_test_support::tshark;

/// A port takes 16 bytes in a GPN_FT response and 4 bytes in a GID_FT response, so 140 ports
/// require several frames in both.
const LAB: &str = r#"
[switch.sw1]
addressing = "flat"

[storage."disk{1..140}"]
lun_size = "1MiB"

[[link]]
from = "disk{1..140}"
to = "sw1"
"#;

#[needs("guest", "tshark")]
#[test]
fn the_kernel_finds_a_hundred_and_forty_ports() {
    let mut bed = Bed::start("many-ports", LAB, &["server1-sw1"]);
    let script = r#"
fcoe-up eth0
fcoe-wait 30 || exit 1
disk-wait 100 140 >/dev/null || exit 2
for port in /sys/class/fc_remote_ports/rport-*; do grep -q Target $port/roles && cat $port/port_name; done >/tmp/names
ports=$(cat /tmp/names | wc -l)
names=$(sort -u /tmp/names | wc -l)
echo "targets $ports, names $names, disks $(ls /sys/block | grep -c ^sd)"
"#;
    let output = bed.guest("server1", 1, script).end();
    assert!(output.contains("targets 140, names 140") && output.contains("disks 140"), "{output}");
    bed.stop();
    let capture = bed.capture("server1-sw1");
    // The frames of the GPN_FT response are one sequence with SEQ_CNT from 0. tshark does not
    // reassemble them and reports the first one as truncated.
    let answer = "fc.type == 0x20 && fc.fctl.exchange_responder == 1";
    let further = tshark::frames(&capture, &format!("{answer} && fc.seq_cnt > 0"));
    assert!(!further.is_empty(), "no answer of the name server had a second frame");
    let first = format!("{answer} && fc.fctl.seq_last == 0 && fc.seq_cnt == 0");
    let bad = tshark::frames(&capture, &format!("(_ws.malformed && !({first})) || fcoe.crc.status == 0"));
    assert!(bad.is_empty(), "{bad:?}: frames that tshark calls malformed, or whose CRC is wrong");
    assert!(tshark::frames(&capture, "fcoe.crc.status == 1").len() > 140 * 10);
}
