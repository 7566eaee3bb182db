//! What a host outlives: a pulled cable, a switch that is killed, a port that is disabled.

use crate::bed::{Bed, Guest, alone, check_capture, guest};
use std::time::Duration;

const LAB: &str = r#"
[live]
folder = "{folder}"

# A machine that is busy with something else may leave an emulated one alone for seconds.
[timers]
hold_time = "5s"

[switch.sw1]
fcoe = { keep_alive = "500ms" }

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.files]
lun_size = "64MiB"
medium = "file"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "files"
to = "sw1"
"#;

/// While the guest writes and verifies without a pause, its cable is pulled and put back, the switch is killed and started
/// again, and its port is disabled and enabled. Every pass of the guest finds what it wrote.
#[test]
fn data_is_whole_after_a_pulled_cable_a_killed_switch_and_a_disabled_port() {
    let Some(guest) = guest() else { return };
    let _alone = alone();
    let mut bed = Bed::start("recovery", LAB, &["server1-sw1"]);
    let script = r#"
fcoe-up eth0
fcoe-wait 30 || exit 1
disk-wait 30 >/dev/null || exit 2
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
    let mut running = Guest::start(&guest, &bed, "server1-sw1", "52:54:00:00:00:01", script);
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
