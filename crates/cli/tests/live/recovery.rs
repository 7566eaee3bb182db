//! What a host outlives: a pulled cable, a switch that is killed, a port that is disabled.

use crate::bed::{Bed, check_capture};
use std::time::Duration;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "500ms" }

[storage.files]
lun_size = "64MiB"
medium = "file"

[[link]]
from = "files"
to = "sw1"
"#;

/// While the guest writes and verifies without a pause, its cable is pulled and put back, the switch is killed and started
/// again, and its port is disabled and enabled. Every pass of the guest finds what it wrote.
#[test]
fn data_is_whole_after_a_pulled_cable_a_killed_switch_and_a_disabled_port() {
    let Some(mut bed) = Bed::start("recovery", LAB, &["server1-sw1"]) else { return };
    let script = r#"
fcoe-initiator 1 || exit 1
for port in /sys/class/fc_remote_ports/rport*; do echo 60 >$port/dev_loss_tmo; done
pass=0
while [ $(cut -d. -f1 /proc/uptime) -lt 60 ]; do
    dd if=/dev/urandom of=/tmp/data bs=64k count=16 2>/dev/null
    seek=$((pass % 60))
    dd if=/tmp/data of=/dev/sda bs=1M seek=$seek oflag=direct 2>/dev/null || exit 3
    dd if=/dev/sda of=/tmp/back bs=1M skip=$seek count=1 iflag=direct 2>/dev/null || exit 4
    cmp /tmp/data /tmp/back || exit 5
    pass=$((pass + 1))
    echo "pass $pass"
done
echo "passes $pass, host $(cat /sys/class/fc_host/host*/port_state)"
"#;
    let mut running = bed.guest("server1", 1, script);
    running.hear("pass 5");
    running.link(false);
    std::thread::sleep(Duration::from_secs(3));
    bed.wait_for_login("server1", false);
    running.link(true);
    bed.wait_for_login("server1", true);

    bed.kill();
    std::thread::sleep(Duration::from_secs(1));
    bed.start_again(&[]);
    bed.wait_for_login("server1", true);

    bed.command(&["port", "disable", "sw1:0"]);
    bed.wait_for_login("server1", false);
    bed.command(&["port", "enable", "sw1:0"]);
    bed.wait_for_login("server1", true);
    let console = running.end().good();
    assert!(console.contains("host Online"), "{console}");
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 5 * 2 * 512);
}
