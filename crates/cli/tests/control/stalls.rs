//! A switch that is not let run for a while, and hosts that spoke meanwhile and were not heard.

use crate::instance::Instance;
use crate::raw_port::RawPort;
use std::process::Command;
use std::time::{Duration, Instant};

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

/// Two and a half periods without a keep-alive end a login; the process stands still for twelve. The host that speaks again stays
/// logged in, the one that does not is logged out.
#[test]
fn hosts_are_not_logged_out_for_what_a_stopped_switch_did_not_hear() {
    let mut instance = Instance::start("stalls", LAB);
    let [alive, _dead] = [1, 2].map(|number| RawPort::log_in(&instance, &format!("server{number}-sw1"), number));
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &instance.id().to_string()]).status().unwrap().success());
    };
    // It waits for its ports when it is stopped.
    std::thread::sleep(Duration::from_millis(300));
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(6));
    signal("-CONT");
    let gone = |number: u8| format!("mac=52:54:00:00:00:{number:02x}");
    let ended = |number| instance.log().lines().any(|line| line.contains("host gone") && line.contains(&gone(number)));
    let begun = Instant::now();
    while !ended(2) || begun.elapsed() < Duration::from_secs(3) {
        assert!(begun.elapsed() < Duration::from_secs(30), "a silent host stays logged in\n{}", instance.log());
        alive.keep_alive(1);
        // Nobody reads what the switch says.
        while alive.next(Duration::from_millis(1)).is_some() {}
        std::thread::sleep(Duration::from_millis(150));
    }
    assert!(!ended(1), "{}", instance.log());
    assert!(instance.log().contains("the process stood still"), "{}", instance.log());
    instance.stop();
}
