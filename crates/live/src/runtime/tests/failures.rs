//! Losses of peers that ports count, and those that an operator has caused.

use super::super::Runtime;
use super::super::plan::Options;
use super::super::view::Tables;
use super::{ends, lab, run_until};
use sanloom_api::control::Answer;
use sanloom_api::view::build::Which;
use sanloom_api::view::{Dark, PortRow, PortsView, Table};
use sanloom_test_support::ports::free_port;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

fn rows(runtime: &Runtime) -> Vec<PortRow> {
    let view = Tables::new(&runtime.instance, runtime.clock.now()).fabric(Which::Ports, None);
    let Table::Ports(PortsView { ports }) = view.table else { panic!("{view:?}") };
    ports
}

fn failures(runtime: &Runtime) -> Vec<Option<u64>> {
    rows(runtime).iter().map(|row| row.errors.link_failures).collect()
}

fn enable(runtime: &mut Runtime, port: &str, enabled: bool) {
    let now = runtime.clock.now();
    assert_eq!(super::enable(runtime, now, &[port], enabled), Answer::Done);
}

/// Runs until each Ethernet port, by index, has a peer or has none.
fn run_until_light(runtime: &mut Runtime, lights: &[bool]) {
    run_until(runtime, |runtime| runtime.instance.ports.iter().map(|port| port.light).eq(lights.iter().copied()));
}

#[test]
fn only_the_other_end_counts_that_an_operator_disables_an_fcip_port() {
    ends(|| {
        let address = free_port();
        let text = format!(
            "[switch.\"{{near,far}}\"]\n[[isl]]\nfrom = \"near:0\"\nto = \"far:0\"\n\
             fcip = {{ listen = \"{address}\", peer = \"{address}\" }}\n"
        );
        let mut runtime = Runtime::up(lab("failures-fcip", &text), &Options::default()).unwrap();
        run_until_light(&mut runtime, &[true, true]);
        enable(&mut runtime, "near:0", false);
        run_until_light(&mut runtime, &[false, false]);
        assert_eq!(failures(&runtime), [Some(0), Some(1)]);
        enable(&mut runtime, "near:0", true);
        run_until_light(&mut runtime, &[true, true]);
        // The port is enabled before the loop checks its peer.
        enable(&mut runtime, "near:0", false);
        enable(&mut runtime, "near:0", true);
        run_until(&mut runtime, |runtime| {
            failures(runtime)[1] == Some(2) && runtime.instance.ports.iter().all(|port| port.light)
        });
        assert_eq!(failures(&runtime), [Some(0), Some(2)]);
        // The enabled port counts what happens at the other end.
        enable(&mut runtime, "far:0", false);
        run_until_light(&mut runtime, &[false, false]);
        assert_eq!(failures(&runtime), [Some(1), Some(2)]);
    });
}

#[test]
fn a_port_without_a_link_is_disabled_until_it_is_enabled() {
    ends(|| {
        let text = "[switch.sw1]\nports = 8\n[storage.disk1]\nlun_size = \"1MiB\"\n\
                    [[link]]\nfrom = \"disk1\"\nto = \"sw1:0\"\n";
        let mut runtime = Runtime::up(lab("failures-no-link", text), &Options::default()).unwrap();
        let disabled = |runtime: &Runtime| {
            let view = Tables::new(&runtime.instance, runtime.clock.now()).fabric(Which::Switch, None);
            let Table::Switch(view) = view.table else { panic!("{view:?}") };
            view.switches[0].disabled_ports.clone()
        };
        enable(&mut runtime, "sw1:5", false);
        enable(&mut runtime, "sw1:0", false);
        assert_eq!((disabled(&runtime), rows(&runtime)[0].dark), (vec![5], Some(Dark::Disabled)));
        enable(&mut runtime, "sw1:5", true);
        assert_eq!(disabled(&runtime), Vec::<u32>::new());
        let now = runtime.clock.now();
        assert_ne!(super::enable(&mut runtime, now, &["sw1:9"], false), Answer::Done);
    });
}

/// Two hosts on one wire.
const WIRE: &str = r#"
[switch.sw1]
[host."server{1..2}"]
[[link]]
from = "server1"
to = "sw1:0"
ethernet = { carrier = "dgram", address = "wire.sock", peer = "wire.peer.sock", vlan = 101 }
[[link]]
from = "server2"
to = "sw1:1"
ethernet = { carrier = "dgram", address = "wire.sock", peer = "wire.peer.sock", vlan = 102 }
"#;

#[test]
fn a_disabled_port_does_not_count_that_its_host_stops() {
    ends(|| {
        let lab = lab("failures-fcoe", WIRE);
        let peer = PathBuf::from(lab.live.folder.clone().expect("a folder")).join("wire.peer.sock");
        let mut runtime = Runtime::up(lab, &Options::default()).unwrap();
        for expected in [[Some(0), Some(1)], [Some(1), Some(2)]] {
            let host = UnixDatagram::bind(&peer).unwrap();
            run_until_light(&mut runtime, &[true]);
            if expected[0] == Some(0) {
                enable(&mut runtime, "sw1:0", false);
            }
            drop(host);
            std::fs::remove_file(&peer).unwrap();
            run_until_light(&mut runtime, &[false]);
            assert_eq!(failures(&runtime), expected);
            enable(&mut runtime, "sw1:0", true);
        }
    });
}
