//! A zone change while a host writes to the disk that it loses by the change.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "1s" }

[storage."{ram,other}"]
lun_size = "64MiB"

[zoning]
default = "closed"

[[zone]]
name = "pair"
members = ["server1", "ram"]

[[zone]]
name = "spare"
members = ["ram", "other"]

[[link]]
from = "{ram,other}"
to = "sw1"
"#;

const EDITS: &str = "[[edit]]\naction = \"delete\"\nzone = \"pair\"\n";

/// An RSCN notifies the host, and its disk disappears; frames for it are dropped and counted. After
/// a rollback, the disk returns with its data.
#[needs("guest", "tshark")]
#[test]
fn a_zone_change_removes_a_disk_under_io_and_returns_it() {
    let mut bed = Bed::start("zoning", LAB, &["server1-sw1"]);
    let script = r#"
fcoe-initiator 1 || exit 1
for port in /sys/class/fc_remote_ports/rport*; do echo 3 >$port/dev_loss_tmo; done
dd if=/dev/urandom of=/tmp/data bs=1M count=1 2>/dev/null
pass=0
while dd if=/tmp/data of=/dev/sda bs=64k count=16 oflag=direct 2>/dev/null; do
    pass=$((pass + 1))
    echo "pass $pass"
done
echo "write failed"
n=0
while ls /sys/block | grep -q ^sd; do usleep 50000; n=$((n + 1)); [ $n -gt 800 ] && exit 2; done
echo "disk gone"
disk=$(disk-wait 60) || exit 3
dd if=/dev/$disk of=/tmp/back bs=1M count=1 iflag=direct 2>/dev/null || exit 4
cmp /tmp/data /tmp/back || exit 5
dd if=/tmp/data of=/dev/$disk bs=64k count=16 oflag=direct 2>/dev/null || exit 6
echo "disk back"
"#;
    let edits = bed.folder.join("edits.toml");
    std::fs::write(&edits, EDITS).unwrap();
    let mut running = bed.guest("server1", 1, script);
    running.wait_for_line("pass 3");
    bed.command(&["zone", "edit", "--edit", &edits.display().to_string()]);
    let preview = bed.command(&["zone", "preview", "--live"]);
    assert!(preview.contains("loses") && preview.contains("server1:0"), "{preview}");
    bed.command(&["zone", "commit"]);
    running.wait_for_line("disk gone");
    let ports = bed.command(&["show", "ports", "--live", "--json"]);
    assert!(ports.contains("\"zone_denied\""), "{ports}");
    bed.command(&["zone", "rollback"]);
    let output = running.end();
    assert!(output.contains("disk back"), "{output}");
    bed.stop();
    let capture = bed.capture("server1-sw1");
    check_capture(&capture, 3 * 512);
    let capture = capture.display().to_string();
    let notices = run("tshark", &["-r", &capture, "-Y", "fcels.opcode == 0x61", "-T", "fields", "-e", "frame.number"]);
    assert!(notices.lines().count() >= 2, "{notices}");
}
