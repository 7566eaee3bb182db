//! The examples that `sanloom up` runs, as they are but for their folder.

use crate::instance::Instance;
use crate::peer::{find, skip, try_run};
use rustix::net::{self, AddressFamily, SocketType};
use sanloom_api::view::{Table, View};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
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

/// A port that is nobody's but ours, as long as this lives: bound, so that no other test and no connection is given it, and not
/// listened at, so that the instance may bind it too (SO_REUSEADDR).
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

/// The same with ports that nobody listens at, instead of those from 3260 on.
fn start_iscsi(name: &str, text: &str) -> (Instance, [Reserved; 3]) {
    let ports = [3260, 3261, 3262].map(|port| (port, Reserved::new()));
    let free = |text: String, (port, reserved): &(u16, Reserved)| {
        text.replace(&format!("127.0.0.1:{port}"), &reserved.address().to_string())
    };
    let text = ports.iter().fold(text.to_owned(), free);
    (start(name, &text), ports.map(|(_, reserved)| reserved))
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
    let (mut instance, _ports) =
        start_iscsi("example-iscsi-target", include_str!("../../../../examples/iscsi-target.toml"));
    let lab = std::fs::read_to_string(instance.path("lab.toml")).unwrap();
    let portal = lab.split('"').find(|word| word.starts_with("127.0.0.1:")).unwrap();
    for (target, lun) in [("ram", 0), ("ram", 1), ("file", 0)] {
        let path = format!("{portal}/iqn.2026-11.example.sanloom:{target}/{lun}");
        instance.run(&format!("bench io {path} --size 4K --depth 1 --rounds 1 --seconds 0.05")).good();
    }
    instance.stop();
    assert!(!instance.log().contains("ERROR"), "{}", instance.log());
}

/// The commands of a page, block by block.
fn commands(page: &str) -> Vec<Vec<&str>> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(|block| block.lines().filter_map(|line| line.strip_prefix("$ ")).collect()).collect()
}

#[test]
fn the_iscsi_to_fc_gateway_of_the_examples_has_its_volumes() {
    let (mut instance, _ports) =
        start_iscsi("example-iscsi-fc-gateway", include_str!("../../../../examples/iscsi-fc-gateway.toml"));
    wait_for_volumes(&instance);
    instance.stop();
    assert!(!instance.log().contains("ERROR"), "{}", instance.log());
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
        start_iscsi("example-iscsi-switch", include_str!("../../../../examples/iscsi-switch.toml"));
    wait_for_volumes(&instance);
    let blocks = commands(include_str!("../../../../docs/volumes.md"));
    let [hosts, operators, ..] = &blocks[..] else { panic!("{blocks:?}") };
    // The switch runs already.
    assert!(hosts[0].starts_with("sanloom up examples/iscsi-switch.toml"), "{hosts:?}");
    let address = ports[0].address().to_string();
    for (line, expected) in hosts[1..].iter().zip(["Lun:1", "virtual size: 1.17 GiB", "iops"]) {
        let line = line.replace("127.0.0.1:3260", &address);
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(program) = find(words[0]) else { continue };
        // The load does not end by itself.
        let time: &[&str] = if program == "iscsi-perf" { &["-t", "1"] } else { &[] };
        let (good, told, error) = try_run(program, &[time, &words[1..]].concat());
        if error.contains("Unknown protocol") {
            let _: Option<()> = skip("QEMU has no iSCSI (qemu-block-extra)");
            continue;
        }
        assert!(good && told.contains(expected), "{line}: {told}{error}");
    }
    assert_eq!((hosts.len(), operators.len()), (4, 7), "{blocks:?}");
    for line in operators {
        let line = line.strip_prefix("sanloom ").unwrap_or_else(|| panic!("{line}"));
        instance.run(&line.replace("examples/iscsi-switch.toml", "LAB")).good();
    }
    instance.stop();
    assert!(!instance.log().contains("ERROR"), "{}", instance.log());
}
