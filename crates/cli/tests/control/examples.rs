//! The examples that `sanloom up` runs, as they are but for their folder.

use crate::instance::Instance;
use sanloom_api::view::{Table, View};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

const EXAMPLES: [(&str, &str, usize); 4] = [
    ("fcoe-lab", include_str!("../../../../examples/fcoe-lab.toml"), 2),
    ("fcoe-vlan", include_str!("../../../../examples/fcoe-vlan.toml"), 1),
    ("fcoe-fabric", include_str!("../../../../examples/fcoe-fabric.toml"), 1),
    ("vn2vn", include_str!("../../../../examples/vn2vn.toml"), 3),
];

/// Without the lines that name a folder and an address: the test has its own.
fn start(name: &str, text: &str) -> Instance {
    let own =
        |line: &&str| !["[live]", "folder = ", "metrics = ", "control = "].iter().any(|begin| line.starts_with(begin));
    Instance::start(name, &text.lines().filter(own).map(|line| format!("{line}\n")).collect::<String>())
}

/// The same with ports that nobody listens at, instead of those from 3260 on.
fn start_iscsi(name: &str, text: &str) -> Instance {
    let listeners = [3260, 3261, 3262].map(|port| (port, TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()));
    let free = |text: String, (port, listener): &(u16, TcpListener)| {
        text.replace(&format!("127.0.0.1:{port}"), &listener.local_addr().unwrap().to_string())
    };
    let text = listeners.iter().fold(text.to_owned(), free);
    drop(listeners);
    start(name, &text)
}

/// Where the line of a port says that the virtual machine has its end.
fn ends(printed: &str) -> Vec<&str> {
    printed.split("local.path=").skip(1).filter_map(|rest| rest.split(',').next()).collect()
}

#[test]
fn examples_run_and_their_free_ports_are_named_for_qemu() {
    for (name, text, ports) in EXAMPLES {
        let mut instance = start(&format!("example-{name}"), text);
        let printed = instance.run("up LAB --print-qemu").good();
        let ends = ends(&printed);
        assert_eq!(ends.len(), ports, "{name}: {printed}");
        // A port that somebody is at is not free.
        let somebody = UnixDatagram::bind(Path::new(ends[0])).unwrap();
        let printed = instance.run("up LAB --print-qemu").good();
        assert_eq!(self::ends(&printed).len(), ports - 1, "{name}: {printed}");
        drop(somebody);
        instance.stop();
    }
}

#[test]
fn the_iscsi_target_of_the_examples_has_its_disks() {
    let mut instance = start_iscsi("example-iscsi-target", include_str!("../../../../examples/iscsi-target.toml"));
    let lab = std::fs::read_to_string(instance.path("lab.toml")).unwrap();
    let portal = lab.split('"').find(|word| word.starts_with("127.0.0.1:")).unwrap();
    for (target, lun) in [("ram", 0), ("ram", 1), ("file", 0)] {
        let path = format!("{portal}/iqn.2026-11.example.sanloom:{target}/{lun}");
        instance.run(&format!("bench io {path} --size 4K --depth 1 --rounds 1 --seconds 0.05")).good();
    }
    instance.stop();
    assert!(!instance.log().contains("ERROR"), "{}", instance.log());
}

#[test]
fn the_iscsi_switch_of_the_examples_has_its_volumes() {
    let mut instance = start_iscsi("example-iscsi-switch", include_str!("../../../../examples/iscsi-switch.toml"));
    instance.wait("both volumes", |instance| {
        let view: View = serde_json::from_str(&instance.run("volume show LAB --json").good()).unwrap();
        let Table::Volumes(table) = view.table else { panic!("{view:?}") };
        let names: Vec<&str> = table.volumes.iter().map(|row| row.name.as_str()).collect();
        names == ["linear", "striped"] || names == ["striped", "linear"]
    });
    instance.stop();
    assert!(!instance.log().contains("ERROR"), "{}", instance.log());
}
