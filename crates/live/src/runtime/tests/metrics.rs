//! Metrics of ports whose link has both ends in the process.

use super::super::Runtime;
use super::super::plan::Options;
use super::super::view::{Tables, metrics};
use super::{ends, lab, run_until};
use sanloom_api::view::build::Which;
use sanloom_api::view::{PortsView, Table};
use sanloom_test_support::ports::free_port;

#[test]
fn both_ends_of_a_link_in_the_process_have_their_own_metrics() {
    ends(|| {
        let address = free_port();
        let text = format!(
            "[switch.\"sw{{1..3}}\"]\n\
             [[isl]]\nfrom = \"sw1:0\"\nto = \"sw2:1\"\nethernet = {{ carrier = \"dgram\" }}\n\
             [[isl]]\nfrom = \"sw2:0\"\nto = \"sw3:1\"\n\
             fcip = {{ listen = \"{address}\", peer = \"{address}\" }}\n"
        );
        let mut runtime = Runtime::up(lab("metrics-ends", &text), &Options::default()).unwrap();
        // The switches are one fabric.
        run_until(&mut runtime, |runtime| {
            let switches = &runtime.instance.fabric.switches;
            switches.iter().all(|switch| switch.machine.members().iter().count() == 3)
        });
        let now = runtime.clock.now();
        let text = metrics::text(&runtime.instance, now);
        let view = Tables::new(&runtime.instance, now).fabric(Which::Ports, None);
        let Table::Ports(PortsView { ports }) = view.table else { panic!("{view:?}") };
        assert_eq!(ports.len(), 4);
        for row in &ports {
            let (switch, number) = row.port.split_once(':').unwrap();
            let port = format!("link=\"{}\",switch=\"{switch}\",port=\"0/{number}\"", row.link);
            let value = |name: &str, direction: &str| {
                let is_it = |line: &&str| {
                    line.starts_with(&format!("sanloom_{name}{{{port},wwn=\"")) && line.contains(direction)
                };
                let found: Vec<&str> = text.lines().filter(is_it).collect();
                let [line] = found[..] else { panic!("{name} of {port}: {found:?} in\n{text}") };
                line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()
            };
            let [received, sent] = ["in", "out"].map(|direction| format!("direction=\"{direction}\""));
            assert!(row.bytes_sent > Some(0) && row.bytes_received > Some(0), "{row:?}");
            assert_eq!(Some(value("port_bytes_total", &received)), row.bytes_received, "{row:?}");
            assert_eq!(Some(value("port_bytes_total", &sent)), row.bytes_sent, "{row:?}");
            assert_eq!(value("port_frames_total", &sent), row.frames_sent, "{row:?}");
            assert_eq!((value("port_up", ""), value("port_queued_frames", "")), (1, 0), "{row:?}");
        }
        // No row is left that names the link only.
        assert!(!text.lines().any(|line| line.starts_with("sanloom_port_") && !line.contains("switch=")), "{text}");
    });
}
