//! The examples of `sanloom up`, unchanged except for their folder.

use crate::control::instance::Instance;
use rustix::net::{self, AddressFamily, SocketType};
use sanloom_api::view::{Table, View};
use sanloom_test_support::programs::try_run;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

const EXAMPLES: [(&str, &str, usize); 4] = [
    ("fcoe-lab", include_str!("../../../../../examples/fcoe-lab.toml"), 2),
    ("fcoe-vlan", include_str!("../../../../../examples/fcoe-vlan.toml"), 1),
    ("fcoe-fabric", include_str!("../../../../../examples/fcoe-fabric.toml"), 1),
    ("vn2vn", include_str!("../../../../../examples/vn2vn.toml"), 3),
];

/// Lines that contain a folder or an address are removed, because the test has its own.
fn start(name: &str, text: &str) -> Instance {
    let own =
        |line: &&str| !["[live]", "folder = ", "metrics = ", "control = "].iter().any(|begin| line.starts_with(begin));
    Instance::start(name, &text.lines().filter(own).map(|line| format!("{line}\n")).collect::<String>())
}

/// A TCP port reserved until drop. It is bound, so that no other test or connection gets it, and
/// does not listen, so that the instance may bind it too (SO_REUSEADDR).
struct Reserved(OwnedFd);

impl Reserved {
    fn new() -> Reserved {
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
        net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        Reserved(socket)
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::try_from(net::getsockname(&self.0).unwrap()).unwrap()
    }
}

/// The text with free ports instead of those from 3260 on.
fn start_iscsi(name: &str, text: &str) -> (Instance, [Reserved; 3]) {
    let ports = [3260, 3261, 3262].map(|port| (port, Reserved::new()));
    let free = |text: String, (port, reserved): &(u16, Reserved)| {
        text.replace(&format!("127.0.0.1:{port}"), &reserved.address().to_string())
    };
    let text = ports.iter().fold(text.to_owned(), free);
    (start(name, &text), ports.map(|(_, reserved)| reserved))
}

/// Socket of the virtual machine in the line of a port.
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
        // A bound port is not free.
        let somebody = UnixDatagram::bind(Path::new(ends[0])).unwrap();
        let printed = instance.run("up LAB --print-qemu").good();
        assert_eq!(self::ends(&printed).len(), ports - 1, "{name}: {printed}");
        drop(somebody);
        instance.stop();
    }
}

#[test]
fn the_iscsi_target_of_the_examples_does_what_its_page_shows() {
    let (mut instance, ports) =
        start_iscsi("example-iscsi-target", include_str!("../../../../../examples/iscsi-target.toml"));
    let portal = ports[0].address();
    for (target, lun) in [("ram", 0), ("ram", 1), ("file", 0)] {
        let path = format!("{portal}/iqn.2026-11.example.sanloom:{target}/{lun}");
        instance.run(&format!("bench io {path} --size 4K --depth 1 --rounds 1 --seconds 0.05")).good();
    }
    let blocks = commands(include_str!("../../../../../docs/src/guides/iscsi.md"));
    let [hosts, ..] = &blocks[..] else { panic!("{blocks:?}") };
    assert!(hosts.len() == 4 && hosts[0].starts_with("sanloom up examples/iscsi-target.toml"), "{hosts:?}");
    as_hosts(&hosts[1..], &["Lun:1", "virtual size: 1 GiB", "iops"], &ports[0]);
    instance.stop();
    instance.folder.assert_no_errors();
}

/// The commands of a page, block by block.
fn commands(page: &str) -> Vec<Vec<&str>> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(|block| block.lines().filter_map(|line| line.strip_prefix("$ ")).collect()).collect()
}

/// Runs the host commands of a page and looks for a text in the output of each.
fn as_hosts(lines: &[&str], expected: &[&str], portal: &Reserved) {
    for (line, expected) in lines.iter().zip(expected) {
        let line = line.replace("127.0.0.1:3260", &portal.address().to_string());
        let words: Vec<&str> = line.split_whitespace().collect();
        let program = words[0];
        // The load does not end by itself.
        let time: &[&str] = if program == "iscsi-perf" { &["-t", "1"] } else { &[] };
        let (good, stdout, error) = try_run(program, &[time, &words[1..]].concat());
        assert!(good && stdout.contains(expected), "{line}: {stdout}{error}");
    }
}

/// Runs the commands that pages show for a running example, except those of hosts.
fn as_operators(instance: &Instance, example: &str) -> usize {
    let pages = [
        include_str!("../../../../../docs/src/guides/iscsi.md"),
        include_str!("../../../../../docs/src/guides/volumes.md"),
    ];
    let lines = pages.into_iter().flat_map(commands).flatten();
    let lines = lines.filter_map(|line| line.strip_prefix("sanloom ").filter(|line| !line.starts_with("up ")));
    let lines: Vec<&str> = lines.filter(|line| line.contains(example)).collect();
    for line in &lines {
        instance.run(&line.replace(example, "LAB")).good();
    }
    lines.len()
}

#[test]
fn the_iscsi_to_fc_gateway_of_the_examples_does_what_its_page_shows() {
    let (mut instance, ports) =
        start_iscsi("example-iscsi-fc-gateway", include_str!("../../../../../examples/iscsi-fc-gateway.toml"));
    wait_for_volumes(&instance);
    as_hosts(&["iscsi-ls -s iscsi://127.0.0.1:3260"], &["Lun:1"], &ports[0]);
    assert_eq!(as_operators(&instance, "examples/iscsi-fc-gateway.toml"), 1);
    instance.stop();
    instance.folder.assert_no_errors();
}

/// Portal that a switch uses for its only back end.
fn used(instance: &Instance) -> Option<usize> {
    let view: View = serde_json::from_str(&instance.run("show paths LAB --live --json").good()).unwrap();
    let Table::Paths(table) = view.table else { panic!("{view:?}") };
    table.paths[0].portals.iter().position(|portal| portal.used)
}

#[test]
fn the_storage_with_two_controllers_of_the_examples_does_what_its_pages_show() {
    let (mut instance, _ports) =
        start_iscsi("example-iscsi-alua", include_str!("../../../../../examples/iscsi-alua.toml"));
    instance.wait("the better controller", |instance| used(instance) == Some(0));
    // Finally the first portal is in standby.
    assert_eq!(as_operators(&instance, "examples/iscsi-alua.toml"), 5);
    instance.wait("the other controller", |instance| used(instance) == Some(1));
    instance.stop();
    instance.folder.assert_no_errors();
}

fn wait_for_volumes(instance: &Instance) {
    instance.wait("both volumes", |instance| {
        let view: View = serde_json::from_str(&instance.run("volume show LAB --json").good()).unwrap();
        let Table::Volumes(table) = view.table else { panic!("{view:?}") };
        let names: Vec<&str> = table.volumes.iter().map(|row| row.name.as_str()).collect();
        names == ["linear", "striped"] || names == ["striped", "linear"]
    });
}

#[test]
fn the_iscsi_switch_of_the_examples_does_what_its_page_shows() {
    let (mut instance, ports) =
        start_iscsi("example-iscsi-switch", include_str!("../../../../../examples/iscsi-switch.toml"));
    wait_for_volumes(&instance);
    let blocks = commands(include_str!("../../../../../docs/src/guides/volumes.md"));
    let [hosts, operators, ..] = &blocks[..] else { panic!("{blocks:?}") };
    // The switch is already running.
    assert!(hosts[0].starts_with("sanloom up examples/iscsi-switch.toml"), "{hosts:?}");
    as_hosts(&hosts[1..], &["Lun:1", "virtual size: 1.17 GiB", "iops"], &ports[0]);
    assert_eq!((hosts.len(), operators.len()), (4, 7), "{blocks:?}");
    for line in operators {
        let line = line.strip_prefix("sanloom ").unwrap_or_else(|| panic!("{line}"));
        instance.run(&line.replace("examples/iscsi-switch.toml", "LAB")).good();
    }
    instance.stop();
    instance.folder.assert_no_errors();
}
