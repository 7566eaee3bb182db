//! The iSCSI-to-FC gateway with the kernel's target (tcm_fc) as its array.

use crate::live::bed::{Bed, check_capture};
use sanloom_api::view::{Table, View};
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;
use sanloom_test_support::qemu_io::QemuIo;
use sanloom_test_support::wait;
use std::net::{Ipv4Addr, TcpListener};

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "1s" }

[host.gateway]
wwpn = "20:00:52:54:00:00:00:02"

[[link]]
from = "gateway"
to = "sw1"

[storage.target]
wwpn = "20:00:52:54:00:00:00:03"

[[link]]
from = "target"
to = "sw1"
ethernet = { carrier = "dgram" }

[storage.virtual]
medium = "volumes"
iscsi = { portals = "{portal}" }

[pool.disks]
extent = "1MiB"

[back_end.kernel]
pool = "disks"
host = "gateway"
target_port = "target"

[volume.v]
pool = "disks"
size = "60MiB"
storage = "virtual"
lun = 0
"#;

/// An iSCSI host verifies its data on the kernel's disk, also after the cable was disconnected
/// meanwhile.
#[needs("guest", "qemu-iscsi", "tshark")]
#[test]
fn a_volume_lies_on_the_kernels_target() {
    let portal = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string();
    let links = ["target-sw1"];
    let mut bed = Bed::start_changed("gateway", LAB, &[("{portal}", &portal)], &links);
    let script = "fcoe-target 64 20:00:52:54:00:00:00:02 || exit 1\necho serving\nwait_for stop\n";
    let mut target = bed.guest("target", 3, script);
    target.wait_for_line("serving");
    bed.wait_for_log("volume of the lab created", 1);
    let url = format!("iscsi://{portal}/iqn.2026-11.example.sanloom:virtual/0");
    let of = |commands: &[&str]| {
        let mut arguments = vec!["-f", "raw"];
        arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
        arguments.push(&url);
        let output = run("qemu-io", &arguments);
        assert!(!output.contains("failed") && !output.contains("rror"), "{output}");
    };
    of(&["write -P 0xab 3k 4M", "write -f -P 0xcd 16M 1M", "write -z 1M 64k", "flush", "read -P 0xab 4k 8k"]);
    of(&["read -P 0 1M 64k", "read -P 0xcd 16M 1M", "read -P 0xab 2M 1M"]);
    // Commands are queued until the cable returns.
    let mut host = QemuIo::open(&url);
    target.link(false);
    bed.wait_for_log("the login with a target was lost", 1);
    host.start("write -P 0x77 32M 2M");
    let is_queued = || {
        let view: View = serde_json::from_str(&bed.command(&["show", "sessions", "--live", "--json"])).unwrap();
        let Table::Sessions(table) = view.table else { panic!("{view:?}") };
        table.sessions.iter().any(|row| !row.own && row.tasks > 0)
    };
    wait::until(|| format!("a task in:\n{}", bed.show("sessions")), is_queued);
    target.link(true);
    host.result();
    host.run("read -P 0x77 32M 2M");
    host.close();
    of(&["read -P 0xcd 16M 1M", "read -P 0x77 33M 1M"]);
    let paths = bed.show("paths");
    assert!(paths.contains("20:00:52:54:00:00:00:03") && paths.contains("gateway"), "{paths}");
    bed.stop();
    target.kill();
    check_capture(&bed.capture(links[0]), 2 * 4 * 512);
}
