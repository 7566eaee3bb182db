//! The examples that `sanloom up` runs, as they are but for their folder.

use crate::instance::Instance;
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
