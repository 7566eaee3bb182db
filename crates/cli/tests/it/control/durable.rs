//! System calls as strace records them. Data are on the disk before the host receives the status,
//! unless the lab disables this. Pending frames are received and sent in batches.

use crate::control::instance::Instance;
use crate::control::raw_port::{RawPort, number_of};
use crate::sanloom::SANLOOM;
use sanloom_live::sys::batch::BATCH;
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;
use sanloom_test_support::wait;
use std::net::{Ipv4Addr, TcpListener};
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

/// Stops an instance under strace, which ends and writes the rest of its trace a moment later.
/// Returns the trace.
fn stop(instance: &mut Instance) -> String {
    let id = instance.id().to_string();
    instance.stop();
    let trace = || std::fs::read_to_string(instance.path("trace")).unwrap();
    // strace pads short process numbers with spaces.
    let ended = |line: &str| {
        let text = line.strip_prefix(&id).map(str::trim_start);
        text.is_some_and(|text| text.starts_with("+++ exited with 0 +++"))
    };
    wait::value(
        || format!("the end of process {id} in the trace"),
        || Some(trace()).filter(|trace| trace.lines().any(ended)),
    )
}

/// System calls for an image of a LUN, in order: `write` or `sync`.
fn calls(trace: &str, image: &str) -> Vec<&'static str> {
    let about = trace.lines().filter(|line| line.contains(image) && !line.contains("openat("));
    about.map(|line| if line.contains("sync(") { "sync" } else { "write" }).collect()
}

#[needs("strace")]
#[test]
fn a_write_is_synchronised_before_its_status_where_the_cache_is_off() {
    let mut instance = Instance::start_under("durable", LAB, |lab, folder| {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-y", "-q", "-e", "trace=pwrite64,pwritev,fdatasync,fsync", "-o"]);
        command.arg(folder.join("trace")).args([SANLOOM, "up", lab]);
        command
    });
    let ends = format!("dgram:{},{}", instance.path("server1-sw1.peer.sock"), instance.path("server1-sw1.sock"));
    // A disk under load may take a second for a few writes, so a run is repeated until there are
    // enough of them.
    let runs = [(1, "through-lun0.img"), (2, "back-lun0.img")].map(|(target, image)| {
        let path = format!("fcoe:50:00:00:00:00:00:00:0{target}/0,wwpn=20:00:52:54:00:00:00:01@{ends}");
        let line = format!("bench io {path} --size 4K --depth 1 --op write --overwrite --rounds 1 --seconds 1.5");
        let enough = |_: &usize| {
            instance.run(&line).good();
            let trace = std::fs::read_to_string(instance.path("trace")).unwrap();
            calls(&trace, image).iter().filter(|call| **call == "write").count() > 10
        };
        (1..=20).find(enough).unwrap_or_else(|| panic!("{image} has too few writes"))
    });
    let trace = stop(&mut instance);
    // One request at a time: no second write before the first is on the disk. The initiator may
    // flush before the first write of each run.
    let through = calls(&trace, "through-lun0.img");
    let writes = (0..through.len()).filter(|at| through[*at] == "write");
    assert!(writes.clone().count() > 10, "{trace}");
    assert!(writes.clone().all(|at| through.get(at + 1) == Some(&"sync")), "{through:?}");
    let synced = |calls: &[&str]| calls.iter().filter(|call| **call == "sync").count();
    assert!(synced(&through) <= writes.count() + 1 + runs[0], "{through:?}");
    let back = calls(&trace, "back-lun0.img");
    assert!(synced(&back) <= 1 + runs[1], "{back:?}");
}

const OVER_TCP: &str = r#"
[storage.through]
lun_size = "16MiB"
medium = "file"
iscsi = { portals = "PORTAL" }

[storage.back]
lun_size = "16MiB"
medium = "file"
cache = "write-back"
iscsi = { portals = "PORTAL" }

[storage.cached]
lun_size = "16MiB"
medium = "file"
direct = false
iscsi = { portals = "PORTAL" }
"#;

#[needs("qemu-iscsi", "strace")]
#[test]
fn over_iscsi_files_go_past_the_page_cache_and_fua_and_flush_reach_the_disk() {
    let portal = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().to_string();
    let mut instance = Instance::start_under("durable-iscsi", &OVER_TCP.replace("PORTAL", &portal), |lab, folder| {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-y", "-q", "-e", "trace=openat,pwrite64,pwritev,fdatasync,fsync", "-o"]);
        command.arg(folder.join("trace")).args([SANLOOM, "up", lab]);
        command
    });
    let commands = [
        "write -P 1 512 64k",
        "write -P 2 3584 1024",
        "write -f -P 3 1M 4k",
        "write -P 4 2M 128k",
        "flush",
        "read -P 1 512 3k",
        "read -P 2 3584 1024",
        "read -P 1 4608 60k",
        "read -P 0 0 512",
        "read -P 3 1M 4k",
        "read -P 4 2M 128k",
    ];
    let run_on = |storage: &str| {
        let url = format!("iscsi://{portal}/iqn.2026-11.example.sanloom:{storage}/0");
        // A host with its own cache, which uses FUA and flushes only on request.
        let mut arguments = vec!["-f", "raw", "-t", "writeback"];
        arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
        arguments.push(&url);
        let output = run("qemu-io", &arguments);
        assert!(!output.contains("failed") && !output.contains("rror"), "{output}");
    };
    ["through", "back", "cached"].into_iter().for_each(run_on);
    let trace = stop(&mut instance);
    // Counted from the first write, because creating a file also causes a sync.
    let about =
        |image: &str| -> Vec<&str> { calls(&trace, image).into_iter().skip_while(|call| *call == "sync").collect() };
    // One call per write, regardless of its alignment to the device's blocks.
    assert_eq!(about("through-lun0.img")[..8], ["write", "sync"].repeat(4), "{trace}");
    assert_eq!(about("back-lun0.img")[..6], ["write", "write", "write", "sync", "write", "sync"], "{trace}");
    let direct = |image: &str| trace.lines().any(|line| line.contains(image) && line.contains("O_DIRECT"));
    assert!(direct("through-lun0.img") && direct("back-lun0.img") && !direct("cached-lun0.img"), "{trace}");
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

#[needs("strace")]
#[test]
fn waiting_frames_take_one_call_in_and_one_out() {
    let mut instance = Instance::start_under("batches", TWO_HOSTS, |lab, folder| {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-q", "-e", "trace=recvmmsg,sendmmsg", "-e", "abbrev=all", "-o"]);
        command.arg(folder.join("trace")).args([SANLOOM, "up", lab]);
        command
    });
    let [one, other] = [1, 2].map(|number| RawPort::log_in(&instance, &format!("server{number}-sw1"), number));
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &instance.id().to_string()]).status().unwrap().success());
    };
    signal("-STOP");
    one.socket.set_nonblocking(true).unwrap();
    // As many frames as the kernel queues for a process that does not read.
    let sent = (0..).find(|number| one.socket.send(&one.frame(other.port_id, *number, 256)).is_err()).unwrap();
    signal("-CONT");
    for number in 0..sent {
        assert_eq!(other.next(Duration::from_secs(30)).map(|frame| number_of(&frame)), Some(number));
    }
    let trace = stop(&mut instance);
    let most = |call: &str| {
        let calls = trace.lines().filter(|line| line.contains(call));
        calls.filter_map(|line| line.rsplit("= ").next()?.trim().parse::<u32>().ok()).max().unwrap_or(0)
    };
    let (taken, given, whole) = (most("recvmmsg"), most("sendmmsg"), sent.min(BATCH as u32));
    // The switch's own frames may come in between.
    assert!(sent > 4 && taken + 2 >= whole && given + 2 >= whole, "{sent} sent, {taken} taken, {given} given");
}
