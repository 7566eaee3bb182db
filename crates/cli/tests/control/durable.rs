//! What the system was asked for, as strace sees it: data are on the disk before the host hears so, unless the lab says otherwise; frames
//! that wait are taken and sent together.

use crate::instance::Instance;
use crate::peer::find;
use crate::raw_port::{RawPort, number_of};
use sanloom_live::sys::batch::BATCH;
use std::process::Command;
use std::time::Duration;

const LAB: &str = r#"
[switch.sw1]

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.through]
wwpn = "50:00:00:00:00:00:00:01"
lun_size = "16MiB"
medium = "file"

[storage.back]
wwpn = "50:00:00:00:00:00:00:02"
lun_size = "16MiB"
medium = "file"
cache = "write-back"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "{through,back}"
to = "sw1"
"#;

/// Calls about an image of a LUN, in their order: `write` or `sync`.
fn calls(trace: &str, image: &str) -> Vec<&'static str> {
    let about = trace.lines().filter(|line| line.contains(image));
    about.map(|line| if line.contains("sync(") { "sync" } else { "write" }).collect()
}

#[test]
fn a_write_is_synchronised_before_its_status_where_the_cache_is_off() {
    if find("strace").is_none() {
        return;
    }
    let mut instance = Instance::start_under("durable", LAB, |lab, folder| {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-y", "-qq", "-e", "trace=pwrite64,pwritev,fdatasync,fsync", "-o"]);
        command.arg(folder.join("trace")).args([env!("CARGO_BIN_EXE_sanloom"), "up", lab]);
        command
    });
    let ends = format!("dgram:{},{}", instance.path("server1-sw1.peer.sock"), instance.path("server1-sw1.sock"));
    for target in [1, 2] {
        let path = format!("fcoe:50:00:00:00:00:00:00:0{target}/0,wwpn=20:00:52:54:00:00:00:01@{ends}");
        let line = format!("bench io {path} --size 4K --depth 1 --op write --overwrite --rounds 1 --seconds 0.3");
        instance.run(&line).good();
    }
    instance.stop();
    let trace = std::fs::read_to_string(instance.path("trace")).unwrap();
    let through = calls(&trace, "through-lun0.img");
    let written = through.iter().filter(|call| **call == "write").count();
    assert!(written > 10, "{trace}");
    // One request at a time: no second write before the first is on the disk. Before the first, the initiator may flush.
    let first = through.iter().position(|call| *call == "write").unwrap_or(0);
    assert!(through[first..].chunks(2).all(|pair| pair == ["write", "sync"]), "{through:?}");
    let back = calls(&trace, "back-lun0.img");
    let synced = back.iter().filter(|call| **call == "sync").count();
    assert!(back.len() > 10 && synced < 3, "{back:?}");
}

const TWO_HOSTS: &str = r#"
[switch.sw1]

[host."server{1..2}"]
wwpn = "20:00:52:54:00:00:00:01"

[[link]]
from = "server{1..2}"
to = "sw1"
ethernet = { carrier = "dgram" }
"#;

#[test]
fn frames_that_wait_take_one_call_in_and_one_out() {
    if find("strace").is_none() {
        return;
    }
    let mut instance = Instance::start_under("batches", TWO_HOSTS, |lab, folder| {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-qq", "-e", "trace=recvmmsg,sendmmsg", "-e", "abbrev=all", "-o"]);
        command.arg(folder.join("trace")).args([env!("CARGO_BIN_EXE_sanloom"), "up", lab]);
        command
    });
    let [one, other] = [1, 2].map(|number| RawPort::log_in(&instance, &format!("server{number}-sw1"), number));
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &instance.id().to_string()]).status().unwrap().success());
    };
    signal("-STOP");
    one.socket.set_nonblocking(true).unwrap();
    // As many as the kernel keeps for a process that does not take them.
    let sent = (0..).find(|number| one.socket.send(&one.frame(other.port_id, *number, 256)).is_err()).unwrap();
    signal("-CONT");
    for number in 0..sent {
        assert_eq!(other.next(Duration::from_secs(30)).map(|frame| number_of(&frame)), Some(number));
    }
    instance.stop();
    let trace = std::fs::read_to_string(instance.path("trace")).unwrap();
    let most = |call: &str| {
        let calls = trace.lines().filter(|line| line.contains(call));
        calls.filter_map(|line| line.rsplit("= ").next()?.trim().parse::<u32>().ok()).max().unwrap_or(0)
    };
    let (taken, given, whole) = (most("recvmmsg"), most("sendmmsg"), sent.min(BATCH as u32));
    // Something of the switch's own may stand between.
    assert!(sent > 4 && taken + 2 >= whole && given + 2 >= whole, "{sent} sent, {taken} taken, {given} given");
}
