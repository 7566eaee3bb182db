//! Tables of links, Ethernet and InfiniBand of a running world.

use crate::labs::planes::{FCOE, PFC, SRP};
use crate::requests::{Operated, PAIRS};
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::{
    ChannelsView, ConnectionsView, EthernetView, InfinibandView, LinksView, Plane, PlaneWhich, Table,
};
use std::collections::BTreeSet;

impl Operated {
    fn links(&mut self) -> LinksView {
        let Table::Links(view) = self.table(ShowTable::Plane(PlaneWhich::Links)) else { panic!("no links") };
        view
    }

    fn ethernet(&mut self) -> EthernetView {
        let Table::Ethernet(view) = self.table(ShowTable::Plane(PlaneWhich::Ethernet)) else { panic!("no Ethernet") };
        view
    }

    fn connections(&mut self) -> ConnectionsView {
        let table = self.table(ShowTable::Plane(PlaneWhich::Connections));
        let Table::Connections(view) = table else { panic!("no connections") };
        view
    }

    fn infiniband(&mut self) -> InfinibandView {
        let table = self.table(ShowTable::Plane(PlaneWhich::Infiniband));
        let Table::Infiniband(view) = table else { panic!("no InfiniBand") };
        view
    }

    fn channels(&mut self) -> ChannelsView {
        let Table::Channels(view) = self.table(ShowTable::Plane(PlaneWhich::Channels)) else { panic!("no channels") };
        view
    }
}

#[test]
fn links_of_all_planes_have_their_rates_and_states() {
    let fault = "[[fault]]\nat = \"1ms\"\nfor = \"10ms\"\nkind = \"link-down\"\nlink = \"fcf-tor\"\n";
    let mut lab = Operated::of(&format!("{}{fault}", FCOE.replace("\"1ms\"\nwarmup", "\"50ms\"\nwarmup")));
    let rows = |lab: &mut Operated| -> Vec<(String, Plane, String, bool)> {
        lab.links().links.into_iter().map(|row| (row.link, row.plane, row.rate, row.up)).collect()
    };
    let before = rows(&mut lab);
    let planes: Vec<(&str, Plane, &str, bool)> =
        before.iter().map(|(link, plane, rate, up)| (&**link, *plane, &**rate, *up)).collect();
    assert!(planes.contains(&("fibre", Plane::FibreChannel, "16GFC", true)), "{planes:?}");
    assert!(planes.contains(&("server-tor", Plane::Ethernet, "10GbE", true)), "{planes:?}");
    assert!(planes.contains(&("virtual", Plane::Virtual, "10GbE", true)), "the rate of Ethernet: {planes:?}");
    lab.run(5);
    let down: Vec<String> = rows(&mut lab).into_iter().filter(|row| !row.3).map(|row| row.0).collect();
    assert!(down.contains(&"fcf-tor".to_owned()) && !down.contains(&"server-tor".to_owned()), "{down:?}");
    let view = lab.ethernet();
    let dark: BTreeSet<&str> = view.ports.iter().filter(|row| !row.light).map(|row| &*row.port).collect();
    assert_eq!(dark, BTreeSet::from(["fcf:eth0", "tor:1"]));
}

#[test]
fn a_virtual_link_between_different_fabrics_has_the_reason_why_it_stays_down() {
    let path = format!("{}/../../examples/fcoe-ve-ports.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the example exists");
    for (text, expected) in [
        (text.clone(), (true, "")),
        (
            text.replace("domain = 2", "fcoe = { fc_map = 7 }\ndomain = 2"),
            (false, "the FC-MAPs 0E:FC:00 and 0E:FC:07 differ"),
        ),
    ] {
        let view = Operated::of(&text).links();
        let row = view.links.iter().find(|row| row.link == "ISL1").expect("the link");
        assert_eq!((row.up, row.reason.as_str()), expected);
    }
}

/// The array fills the memory of the switch, which pauses it; the host has the only slow link.
#[test]
fn ethernet_ports_have_frames_pauses_and_queues() {
    let mut lab = Operated::of(&PFC.replace("read_share = 0.5", "read_share = 1.0"));
    lab.run(30);
    let view = lab.ethernet();
    let port = |name: &str| view.ports.iter().find(|row| row.port == name).expect(name);
    let (array, server) = (port("array:eth0"), port("server:eth0"));
    let (to_array, to_server) = (port("tor:1"), port("tor:0"));
    assert_eq!([&*array.attached, &*to_array.attached], ["tor:1", "array:eth0"]);
    assert!(to_array.pauses_sent > 0 && array.pauses_received == to_array.pauses_sent, "{array:?}");
    assert!(array.paused_s.keys().eq(["3"]) && array.paused_s["3"] < 0.031, "{array:?}");
    assert!(server.paused_s.is_empty() && array.headroom_max_bytes == 0 && to_array.headroom_max_bytes > 0);
    // 1 Gbit/s for 30 ms are 3.75 MB.
    assert!((1_000_000..3_800_000).contains(&to_server.bytes_sent), "{to_server:?}");
    assert!(to_server.queue_max_bytes > 1_522 && array.bytes_sent >= to_server.bytes_sent);
    let [switch] = &*view.switches else { panic!("{:?}", view.switches) };
    assert_eq!((&*switch.switch, switch.ports, switch.memory_bytes), ("tor", 2, 200_000));
    assert!(switch.memory_max_bytes <= 200_000 && switch.memory_max_bytes >= switch.memory_held_bytes);
    assert_eq!(switch.pauses_sent, to_array.pauses_sent + to_server.pauses_sent);
    let rows = lab.connections().connections;
    let [host, portal] = &*rows else { panic!("{rows:?}") };
    assert_eq!(
        [&*host.end, &*host.peer, &*host.carries, &*host.state],
        ["server:eth0", "array:eth0", "iscsi", "ESTABLISHED"]
    );
    assert_eq!([&portal.end, &portal.peer], [&host.peer, &host.end]);
    // An acknowledgement follows the arrival.
    assert!(host.acknowledged_bytes <= portal.received_bytes && portal.acknowledged_bytes <= host.received_bytes);
    assert!(host.received_bytes > 500_000 && host.received_bytes < to_server.bytes_sent, "{host:?}");
    assert!(host.round_trip_us.is_some_and(|us| us > 1.0 && us < 30_000.0), "{host:?}");
    let Answer::Metrics { text } = lab.ask(Request::Metrics) else { panic!("no metrics") };
    let line = format!(
        "sanloom_ethernet_port_sent_frames_total{{link=\"array-tor\",port=\"array:eth0\"}} {}",
        array.frames_sent
    );
    assert!(text.contains(&line), "no {line} in\n{text}");
}

#[test]
fn losses_stand_at_the_port_where_frames_arrive() {
    let text = PFC.replace("pfc = 3\n", "").replace("read_share = 0.5", "read_share = 1.0");
    let text = text.replace("\"200KB\"", "\"100KB\"");
    let fault = "[[fault]]\nkind = \"frame-loss\"\nlink = \"server-tor\"\nprobability = 0.01\n";
    let mut lab = Operated::of(&format!("{text}{fault}"));
    lab.run(60);
    let view = lab.ethernet();
    let lost = |name: &str, why: &str| {
        let row = view.ports.iter().find(|row| row.port == name).expect(name);
        row.discards.get(why).copied().unwrap_or(0)
    };
    assert!(lost("server:eth0", "frame_loss") > 0 && lost("array:eth0", "frame_loss") == 0, "{:?}", view.ports);
    // Frames from the array find the queue of the host full.
    assert!(lost("tor:1", "congestion") > 0 && lost("tor:0", "congestion") == 0, "{:?}", view.ports);
    assert_eq!(view.switches[0].discards.get("congestion"), Some(&lost("tor:1", "congestion")));
    let retransmissions: u64 = lab.connections().connections.iter().map(|row| row.retransmissions).sum();
    assert!(retransmissions > 0);
}

#[test]
fn infiniband_ports_have_lids_and_credit_and_channels_have_requests() {
    let mut lab = Operated::of(&SRP.replace("\"100us\"", "\"20ms\""));
    lab.run(10);
    let ports = lab.infiniband().ports;
    let lids: BTreeSet<u16> = ports.iter().filter_map(|row| row.lid).collect();
    assert_eq!(lids.len(), 2, "{ports:?}");
    assert!(ports.iter().all(|row| row.lid.is_some() == row.port.contains(":ib") && row.light), "{ports:?}");
    // The only switch sends each LID to the port where its adapter is.
    for adapter in ports.iter().filter(|row| row.lid.is_some()) {
        let to: Vec<&str> =
            ports.iter().filter(|row| row.routes.contains(&adapter.lid.unwrap())).map(|row| &*row.attached).collect();
        assert_eq!(to, [&*adapter.port], "{ports:?}");
    }
    // OpenSM gives the manager's port the first LID, and each switch one LID.
    let [switch] = &lab.infiniband().switches[..] else { panic!("one switch") };
    assert_eq!((switch.switch.as_str(), switch.guid.as_str()), ("ib", "0x0002c90200000000"));
    assert_eq!((switch.ports, switch.routes), (2, 2));
    let all: BTreeSet<u16> = lids.iter().copied().chain(switch.lid).collect();
    assert_eq!(all, BTreeSet::from([1, 2, 3]), "{switch:?} {ports:?}");
    let guids: BTreeSet<&str> = ports.iter().filter_map(|row| row.guid.as_deref()).collect();
    assert_eq!(guids, BTreeSet::from(["0x0002c90300000000", "0x0002c90300000010"]));
    for row in &ports {
        assert_eq!((row.lane_credits.len(), row.blocks), (2, 256), "{row:?}");
        // Lane 0 carries nothing, so its whole buffer is free.
        assert_eq!(row.lane_credits[0], 256, "{row:?}");
        assert!(row.lane_credits[1] <= 256 && row.packets_sent > 10 && row.flow_sent > 10, "{row:?}");
    }
    let rows = lab.channels().channels;
    let [channel] = &*rows else { panic!("{rows:?}") };
    assert_eq!([&*channel.initiator, &*channel.target], ["server:ib0", "array:ib0"]);
    assert!(channel.up && channel.requests > 10 && channel.requests - channel.responses <= 1, "{channel:?}");
    // Each response follows the data of its command.
    let complete = 4096 * channel.responses;
    assert!((complete..=complete + 4096).contains(&channel.rdma_written_bytes), "{channel:?}");
    let Answer::Metrics { text } = lab.ask(Request::Metrics) else { panic!("no metrics") };
    assert!(text.contains("sanloom_infiniband_port_up{link=\"server-ib\",port=\"server:ib0\"} 1"), "{text}");
}

#[test]
fn a_lab_of_fibre_channel_has_links_only() {
    let mut lab = Operated::of(PAIRS);
    assert_eq!(lab.links().links.len(), 5);
    assert!(lab.ethernet().ports.is_empty() && lab.infiniband().ports.is_empty());
    assert!(lab.connections().connections.is_empty() && lab.channels().channels.is_empty());
    let Answer::Metrics { text } = lab.ask(Request::Metrics) else { panic!("no metrics") };
    assert!(!text.contains("ethernet") && !text.contains("infiniband"), "{text}");
}
