//! What a host outlives: a pulled cable, a switch that is killed, a port that is disabled, lost keep-alives.

use crate::bed::{Bed, captured, check_capture};
use crate::relay::{GUEST_SOCKETS, Lost, Relay};
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

/// Writes and verifies.
const SCRIPT: &str = r#"
fcoe-initiator 1 || exit 1
for port in /sys/class/fc_remote_ports/rport*; do echo 60 >$port/dev_loss_tmo; done
pass=0
while [ $(cut -d. -f1 /proc/uptime) -lt {seconds} ]; do
    dd if=/dev/urandom of=/tmp/data bs=64k count=4 2>/dev/null
    seek=$((pass % 60))
    dd if=/tmp/data of=/dev/sda bs=256k seek=$seek oflag=direct 2>/dev/null || exit 3
    dd if=/dev/sda of=/tmp/back bs=256k skip=$seek count=1 iflag=direct 2>/dev/null || exit 4
    cmp /tmp/data /tmp/back || exit 5
    pass=$((pass + 1))
    echo "pass $pass"
    usleep {pause}
done
echo "passes $pass, host $(cat /sys/class/fc_host/host*/port_state)"
"#;

/// The work of a guest until so many seconds after its start, with a pause between passes in microseconds.
fn script(seconds: u32, pause: u32) -> String {
    SCRIPT.replace("{seconds}", &seconds.to_string()).replace("{pause}", &pause.to_string())
}

/// While the guest writes and verifies, its cable is pulled and put back, the switch is killed and started
/// again, and its port is disabled and enabled. Every pass of the guest finds what it wrote.
#[test]
fn data_is_whole_after_a_pulled_cable_a_killed_switch_and_a_disabled_port() {
    let Some(mut bed) = Bed::start("recovery", LAB, &["server1-sw1"]) else { return };
    let mut running = bed.guest("server1", 1, &script(60, 200_000));
    running.hear("pass 5");
    running.link(false);
    std::thread::sleep(Duration::from_secs(3));
    bed.wait_for_login("server1", false);
    running.link(true);
    bed.wait_for_login("server1", true);

    bed.kill();
    std::thread::sleep(Duration::from_secs(1));
    let before = bed.folder.join("before.pcapng");
    std::fs::rename(bed.capture("server1-sw1"), &before).unwrap();
    bed.start_again(&["server1-sw1"]);
    bed.wait_for_login("server1", true);

    bed.command(&["port", "disable", "sw1:0"]);
    bed.wait_for_login("server1", false);
    bed.command(&["port", "enable", "sw1:0"]);
    bed.wait_for_login("server1", true);
    let console = running.end().good();
    assert!(console.contains("host Online"), "{console}");
    bed.stop();
    check_capture(&before, 5 * 2 * 128);
    let after = bed.capture("server1-sw1");
    check_capture(&after, 2 * 128);
    // The switch clears what it does not know, and what goes over its disabled port; the host logs in again after both.
    let clears = captured(&after, "fip.opcode == 3 && fip.ctrl_subcode == 2");
    let logins = captured(&after, "fip.opcode == 2 && fcels.opcode == 0x04");
    assert!(clears.len() >= 2 && logins.len() >= 2, "clears {clears:?}, logins {logins:?}");
    assert!(clears[0] < logins[0] && clears.last() > logins.first(), "clears {clears:?}, logins {logins:?}");
}

/// The keep-alives of the host are lost, so the switch takes its login for gone and clears its virtual links; then the
/// advertisements of the switch are lost, so the host takes the switch for gone. Each time it comes back, and every pass finds
/// what it wrote.
#[test]
fn data_is_whole_after_lost_keep_alives_and_cleared_virtual_links() {
    let Some(mut bed) = Bed::start("keep-alives", LAB, &["server1-sw1"]) else { return };
    let relay = Relay::start(&bed, "server1-sw1");
    let mut running = bed.guest_with_sockets("server1-sw1", GUEST_SOCKETS, 1, &script(50, 1_000_000));
    running.hear("pass 5");
    let cleared = relay.clears();
    relay.lose(Lost::KeepAlives);
    bed.wait_for_log("host gone", 1);
    relay.lose(Lost::Nothing);
    assert!(relay.frames_lost() > 1 && relay.clears() > cleared, "{} lost, {}", relay.frames_lost(), relay.clears());
    bed.wait_for_login("server1", true);

    let gone = bed.log().matches("host gone").count();
    relay.lose(Lost::Advertisements);
    bed.wait_for_log("host gone", gone + 1);
    relay.lose(Lost::Nothing);
    bed.wait_for_login("server1", true);
    let console = running.end().good();
    assert!(console.contains("host Online"), "{console}");
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 5 * 2 * 128);
}
