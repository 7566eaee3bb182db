//! Traces of the requests that a running instance receives.

use crate::control::instance::Instance;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{self, run};
use std::fs;

const LAB: &str = r#"
[switch.sw1]

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
lun_size = "1MiB"

[storage.tcp]
lun_size = "1MiB"
iscsi = { portals = "{portal}" }

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "ram"
to = "sw1"
"#;

fn qemu_io(instance: &Instance, commands: &[&str]) {
    qemu_io_at(&programs::uri(&instance.folder.join("nbd.sock"), ""), commands);
}

fn qemu_io_at(uri: &str, commands: &[&str]) {
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
    run("qemu-io", &[&arguments[..], &[uri]].concat());
}

/// Operations of a trace in the format of fio: action, offset and length.
fn actions(text: &str) -> Vec<String> {
    let is_action = |line: &&str| ["read", "write", "sync", "trim"].iter().any(|action| line.contains(action));
    text.lines().filter(is_action).map(|line| line.split(' ').skip(2).collect::<Vec<_>>().join(" ")).collect()
}

#[needs("qemu-io", "qemu-iscsi")]
#[test]
fn a_running_lab_records_the_requests_between_start_and_end_of_a_trace() {
    let portal = free_port();
    let mut instance = Instance::start("request-trace", &LAB.replace("{portal}", &portal));
    instance.start_initiator("server1");
    qemu_io(&instance, &["write 512k 4k"]);
    let refused = instance.run("trace record LAB --live");
    assert!(refused.code != 0 && refused.stderr.contains("no trace is running"), "{refused:?}");

    let started = instance.run("trace record LAB @live.fio --live");
    assert!(started.code == 0 && started.stderr.contains("live.fio started"), "{started:?}");
    let again = instance.run("trace record LAB @other.fio --live");
    assert!(again.code == 4 && again.stderr.contains("live.fio is running; end it first"), "{again:?}");
    qemu_io(&instance, &["write -P 7 0 4k", "read -P 7 0 4k", "write -f 64k 8k", "discard 128k 16k"]);
    qemu_io_at(&format!("iscsi://{portal}/iqn.2026-11.example.sanloom:tcp/0"), &["write 12k 24k"]);
    let ended = instance.run("trace record LAB --live");
    assert_eq!(ended.code, 0, "{ended:?}");
    qemu_io(&instance, &["write 768k 4k"]);

    let text = fs::read_to_string(instance.path("live.fio")).unwrap();
    let found = actions(&text);
    assert!(ended.stderr.contains(&format!("trace ended, {} requests recorded", found.len())), "{ended:?} {text}");
    // qemu-io also reads the first blocks when it opens the disk.
    let expected = ["write 0 4096", "read 0 4096", "write 65536 8192"];
    let mut rest = found.iter();
    assert!(expected.iter().all(|action| rest.any(|found| found == action)), "{text}");
    assert!(found.iter().all(|action| !action.contains("524288") && !action.contains("786432")), "{text}");
    assert!(text.starts_with("fio version 3 iolog\n") && text.contains(" ram:lun0 open\n"), "{text}");
    assert!(text.lines().any(|line| line.ends_with(" tcp:lun0 write 12288 24576")), "{text}");
    let inspected = instance.run("trace inspect @live.fio").good();
    assert!(inspected.contains("ram:lun0"), "{inspected}");

    // A format with other units, and the end of the instance as the end of the trace.
    instance.run("trace record LAB @live.spc --live --to spc").good();
    qemu_io(&instance, &["write 4k 512"]);
    instance.stop();
    let text = fs::read_to_string(instance.path("live.spc")).unwrap();
    assert!(text.lines().any(|line| line.starts_with("0,8,512,W,")), "{text}");
}

#[needs("qemu-io", "qemu-iscsi")]
#[test]
fn a_trace_of_a_running_lab_has_only_the_requests_of_the_named_hosts() {
    let portal = free_port();
    let mut instance = Instance::start("request-trace-host", &LAB.replace("{portal}", &portal));
    instance.start_initiator("server1");
    let unknown = instance.run("trace record LAB @none.fio --live --host server7");
    assert!(unknown.code != 0 && unknown.stderr.contains("the lab has no host `server7`; name one"), "{unknown:?}");
    let without_file = instance.run("trace record LAB --live --host server1");
    assert!(without_file.code == 2 && without_file.stderr.contains("when a trace starts"), "{without_file:?}");
    // The block driver of QEMU has a fixed name if the machine has none.
    for (host, name) in [
        ("server1", "server1"),
        ("server1", "20:00:52:54:00:00:00:01"),
        ("qemu", "iqn.2008-11.org.linux-kvm"),
        ("none", "20:00:52:54:00:00:00:02"),
    ] {
        instance.run(&format!("trace record LAB @{host}.fio --live --host {name}")).good();
        qemu_io(&instance, &["write 64k 8k"]);
        qemu_io_at(&format!("iscsi://{portal}/iqn.2026-11.example.sanloom:tcp/0"), &["write 12k 24k"]);
        instance.run("trace record LAB --live").good();
        let text = fs::read_to_string(instance.path(&format!("{host}.fio"))).unwrap();
        let found = actions(&text);
        let (over_fc, over_tcp) =
            (found.contains(&"write 65536 8192".into()), found.contains(&"write 12288 24576".into()));
        assert_eq!((over_fc, over_tcp), (host == "server1", host == "qemu"), "{name}: {text}");
        assert!(host != "none" || found.is_empty(), "{text}");
    }
    instance.stop();
}

/// The trace grows beyond the limit of the size of files, as on a full disk.
#[needs("qemu-io")]
#[test]
fn a_trace_that_cannot_be_written_ends_and_is_reported_with_code_4() {
    let mut instance = Instance::start("request-trace-full", &LAB.replace("{portal}", &free_port()));
    instance.stop();
    // Size limit of files, in kilobytes. The store of the instance is smaller.
    instance.up_with_files_of(200);
    instance.start_initiator("server1");
    instance.run("trace record LAB @live.fio --live").good();
    let reads = vec!["read 0 512"; 200];
    instance.wait("the end of the trace", |instance| {
        qemu_io(instance, &reads);
        instance.log().contains("trace ended")
    });
    let ended = instance.run("trace record LAB --live");
    assert!(ended.code == 4 && ended.stderr.contains("live.fio is not complete: File too large"), "{ended:?}");
    // Requests are served as before.
    qemu_io(&instance, &["write -P 9 0 4k", "read -P 9 0 4k"]);
    instance.stop();
}
