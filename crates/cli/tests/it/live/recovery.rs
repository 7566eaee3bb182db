//! Recovery of a host: a disconnected cable, a killed switch, a disabled port, lost keep-alives.

use crate::live::bed::{Bed, check_capture};
use crate::live::relay::{GUEST_SOCKETS, Lost, Relay};
use sanloom_test_support::needs;
use sanloom_test_support::tshark;
use sanloom_test_support::wait;

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

/// Writes and verifies until the test sends `stop`.
const SCRIPT: &str = r#"
fcoe-initiator 1 || exit 1
for port in /sys/class/fc_remote_ports/rport*; do echo 60 >$port/dev_loss_tmo; done
pass=0
until received stop; do
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

/// Passes after the last recovery. The first one may have begun before it.
const PASSES: u32 = 3;

/// Work of a guest, with a pause between passes in microseconds.
fn script(pause: u32) -> String {
    SCRIPT.replace("{pause}", &pause.to_string())
}

/// While the guest writes and verifies, its cable is disconnected and reconnected, the switch is
/// killed and restarted, and its port is disabled and enabled. Every pass of the guest is verified.
#[needs("guest", "tshark")]
#[test]
fn data_are_intact_after_a_pulled_cable_a_killed_switch_and_a_disabled_port() {
    let mut bed = Bed::start("recovery", LAB, &["server1-sw1"]);
    let mut running = bed.guest("server1", 1, &script(200_000));
    running.wait_for_line("pass 5");
    running.link(false);
    bed.wait_for_login("server1", false);
    running.link(true);
    bed.wait_for_login("server1", true);

    bed.kill();
    let before = bed.folder.join("before.pcapng");
    std::fs::rename(bed.capture("server1-sw1"), &before).unwrap();
    bed.start_again(&["server1-sw1"]);
    bed.wait_for_login("server1", true);

    bed.command(&["port", "disable", "sw1:0"]);
    bed.wait_for_login("server1", false);
    bed.command(&["port", "enable", "sw1:0"]);
    bed.wait_for_login("server1", true);
    running.wait_for_new_lines("pass ", PASSES);
    running.send("stop");
    let console = running.end();
    assert!(console.contains("host Online"));
    bed.stop();
    check_capture(&before, 5 * 2 * 128);
    let after = bed.capture("server1-sw1");
    check_capture(&after, 2 * 128);
    // The switch clears unknown virtual links and those on its disabled port; the host logs in
    // again after both.
    let clears = tshark::frames(&after, "fip.opcode == 3 && fip.ctrl_subcode == 2");
    let logins = tshark::frames(&after, "fip.opcode == 2 && fcels.opcode == 0x04");
    assert!(clears.len() >= 2 && logins.len() >= 2, "clears {clears:?}, logins {logins:?}");
    assert!(clears[0] < logins[0] && clears.last() > logins.first(), "clears {clears:?}, logins {logins:?}");
}

/// First the host's keep-alives are lost, so the switch ends its login and clears its virtual
/// links. Then the switch's advertisements are lost, so the host ends its login. The host logs in
/// again each time, and every pass is verified.
#[needs("guest", "tshark")]
#[test]
fn data_are_intact_after_lost_keep_alives_and_cleared_virtual_links() {
    let mut bed = Bed::start("keep-alives", LAB, &["server1-sw1"]);
    let relay = Relay::start(&bed, "server1-sw1");
    let mut running = bed.guest_with_sockets("server1-sw1", GUEST_SOCKETS, 1, &script(1_000_000));
    running.wait_for_line("pass 5");
    let cleared = relay.clears();
    relay.lose(Lost::KeepAlives);
    bed.wait_for_log("host gone", 1);
    relay.lose(Lost::Nothing);
    assert!(relay.frames_lost() > 1, "{} lost", relay.frames_lost());
    wait::until(|| "Clear Virtual Links".to_owned(), || relay.clears() > cleared);
    bed.wait_for_login("server1", true);

    let gone = bed.log().matches("host gone").count();
    relay.lose(Lost::Advertisements);
    bed.wait_for_log("host gone", gone + 1);
    relay.lose(Lost::Nothing);
    bed.wait_for_login("server1", true);
    running.wait_for_new_lines("pass ", PASSES);
    running.send("stop");
    let console = running.end();
    assert!(console.contains("host Online"));
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 5 * 2 * 128);
}
