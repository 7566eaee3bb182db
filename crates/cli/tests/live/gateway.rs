//! The iSCSI-to-FC gateway with the kernel's target (tcm_fc) as its array.

use crate::bed::{Bed, check_capture};
use crate::peer::{find, run, skip, try_run};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

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

/// A host over iSCSI reads what it wrote to the kernel's disk, also after its cable was pulled meanwhile.
#[test]
fn a_volume_lies_on_the_kernels_target() {
    let (Some(qemu_io), Some(_)) = (find("qemu-io"), find("tshark")) else { return };
    let portal = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string();
    let links = ["target-sw1"];
    let Some(mut bed) = Bed::start_changed("gateway", LAB, &[("{portal}", &portal)], &links) else { return };
    let script = "fcoe-target 64 20:00:52:54:00:00:00:02 || exit 1\necho serving\nsleep 90\n";
    let mut target = bed.guest("target", 3, script);
    target.hear("serving");
    bed.wait_for_log("created, as the lab says", 1);
    let url = format!("iscsi://{portal}/iqn.2026-11.example.sanloom:virtual/0");
    let said = try_run("qemu-img", &["info", "-f", "raw", &url]).2;
    if said.contains("Unknown protocol") {
        skip::<()>("QEMU has no iSCSI (qemu-block-extra)");
        return;
    }
    let of = |commands: &[&str]| {
        let mut arguments = vec!["-f", "raw"];
        arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
        arguments.push(&url);
        let said = run(qemu_io, &arguments);
        assert!(!said.contains("failed") && !said.contains("rror"), "{said}");
    };
    of(&["write -P 0xab 3k 4M", "write -f -P 0xcd 16M 1M", "write -z 1M 64k", "flush", "read -P 0xab 4k 8k"]);
    of(&["read -P 0 1M 64k", "read -P 0xcd 16M 1M", "read -P 0xab 2M 1M"]);
    // Commands wait for the cable.
    target.link(false);
    bed.wait_for_log("the login with a target is gone", 1);
    let (begun, url_of_host) = (Instant::now(), url.clone());
    let host = thread::spawn(move || {
        run("qemu-io", &["-f", "raw", "-c", "write -P 0x77 32M 2M", "-c", "read -P 0x77 32M 2M", &url_of_host])
    });
    thread::sleep(Duration::from_millis(1500));
    assert!(!host.is_finished());
    target.link(true);
    let said = host.join().unwrap();
    assert!(said.contains("read 2097152/2097152") && !said.contains("failed"), "{said}");
    println!("the cable was away for {:?}", begun.elapsed());
    of(&["read -P 0xcd 16M 1M", "read -P 0x77 33M 1M"]);
    let paths = bed.show("paths");
    assert!(paths.contains("20:00:52:54:00:00:00:03") && paths.contains("gateway"), "{paths}");
    bed.stop();
    target.kill();
    check_capture(&bed.capture(links[0]), 2 * 4 * 512);
}
