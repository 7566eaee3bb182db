//! The kernel's host with rejects injected by an operator.

use crate::live::bed::{Bed, check_capture};
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;

const LAB: &str = r#"
[switch.sw1]

[storage.ram]
lun_size = "64MiB"

[[link]]
from = "ram"
to = "sw1"
"#;

/// The fabric login and the first login to the disk are rejected. The host retries and finds its
/// disk, and both rejects are counted.
#[needs("guest", "tshark")]
#[test]
fn the_kernel_tries_again_when_its_logins_are_rejected() {
    let mut bed = Bed::start("inject", LAB, &["server1-sw1"]);
    for matches in ["els==FLOGI", "els==PLOGI && d_id!=fffffc && direction==in"] {
        bed.command(&["port", "inject", "sw1:0", "--match", matches, "--do", "reject:09/29", "--count", "1"]);
    }
    let script =
        "fcoe-initiator 1 || exit 1\ndd if=/dev/sda of=/dev/null bs=64k count=4 iflag=direct 2>/dev/null || exit 2\n";
    bed.guest("server1", 1, script).end();
    let rules = bed.command(&["show", "injections", "--live", "--json"]);
    let rules: String = rules.split_whitespace().collect();
    assert_eq!(rules.matches("\"injected\":1,\"left\":0").count(), 2, "{rules}");
    bed.stop();
    let capture = bed.capture("server1-sw1");
    check_capture(&capture, 100);
    let filter = "fcels.opcode == 1 && fcels.rjt.reason == 9 && fcels.rjt.detail == 0x29";
    let rejects = run("tshark", &["-r", &capture.display().to_string(), "-Y", filter, "-T", "fields", "-e", "fc.d_id"]);
    assert_eq!(rejects.lines().count(), 2, "{rejects}");
}
