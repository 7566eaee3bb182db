//! A switch process that is suspended, and hosts whose keep-alives arrive meanwhile.

use crate::control::instance::Instance;
use crate::control::raw_port::RawPort;
use sanloom_test_support::{process, wait};
use std::process::Command;
use std::time::Duration;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "500ms" }

[host."server{1..2}"]
wwpn = "20:00:52:54:00:00:00:01"

[[link]]
from = "server{1..2}"
to = "sw1"
ethernet = { carrier = "dgram" }
"#;

/// Keep-alive period of the lab.
const KEEP_ALIVE: Duration = Duration::from_millis(500);
/// Time for which the process is suspended: more than the two and a half periods after which a
/// login ends.
const SUSPENDED: Duration = Duration::from_secs(3);
/// Number of keep-alives that the host sends at least, over two times the life of a login.
const KEEP_ALIVES: u32 = 15;

/// A login ends after two and a half keep-alive periods; the process is suspended for six. A host
/// that sends keep-alives afterwards stays logged in; a silent one is logged out.
#[test]
fn hosts_are_not_logged_out_for_keep_alives_that_a_stopped_switch_missed() {
    let mut instance = Instance::start("stalls", LAB);
    let [alive, _dead] = [1, 2].map(|number| RawPort::log_in(&instance, &format!("server{number}-sw1"), number));
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &instance.id().to_string()]).status().unwrap().success());
    };
    // The process waits for its ports when it is suspended.
    wait::until(|| "the process waits".to_owned(), || process::is_asleep(instance.id()));
    signal("-STOP");
    std::thread::sleep(SUSPENDED);
    signal("-CONT");
    let gone = |number: u8| format!("mac=52:54:00:00:00:{number:02x}");
    let ended = |number| instance.log().lines().any(|line| line.contains("host gone") && line.contains(&gone(number)));
    let mut sent = 0;
    let is_over = || {
        alive.keep_alive(1);
        sent += 1;
        // Frames of the switch are not checked. The wait is the time to the next keep-alive.
        while alive.next(KEEP_ALIVE / 3).is_some() {}
        ended(2) && sent >= KEEP_ALIVES
    };
    wait::until(|| "a silent host is logged out".to_owned(), is_over);
    assert!(!ended(1));
    assert!(instance.log().contains("the process did not run for a while"));
    instance.stop();
}
