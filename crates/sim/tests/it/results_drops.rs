//! Frames that cannot or must not arrive are dropped, and counted where they are dropped.

use crate::labs::{FABRIC, lab, lab_with, run};
use sanloom_api::view::Table;
use sanloom_sim::run::{Blind, world_at};
use sanloom_sim::view::{self, Which};
use sanloom_wire::{Frame, Message, Payload};

#[test]
fn frames_on_a_link_that_goes_down_are_lost_and_no_request_with_them() {
    let fault = "[[fault]]\nat = \"20ms\"\nfor = \"1ms\"\nkind = \"link-down\"\nlink = \"ISL\"";
    // A line of 2 km always carries a frame in each direction.
    let results = run(&lab_with(FABRIC, fault, &["isl.ISL.length=2km", "host.*.command_timeout=5ms"]));
    assert!(results.drops.get("link_down").is_some_and(|lost| *lost > 0), "{:?}", results.drops);
    assert_eq!(results.totals.io.ios_failed, 0);
}

#[test]
fn a_frame_with_a_foreign_source_is_dropped_at_its_port() {
    let lab = lab(FABRIC);
    let mut world = world_at(&lab, Some(0), &mut Blind);
    let [_, foreign, .., disk] = &world.nports.nodes[..] else { panic!("six N_Ports") };
    let (foreign, disk) = (foreign.port_id, disk.port_id);
    let discards = |world: &_| {
        let Table::Ports(ports) = view::of(world, Which::Ports, None).table else { panic!("ports") };
        let counted =
            ports.ports.iter().filter_map(|row| Some((row.port.clone(), *row.discards.get("bad_source_id")?)));
        counted.filter(|(_, frames)| *frames > 0).collect::<Vec<_>>()
    };
    assert_eq!(discards(&world), []);
    let message = Message::FcpConf;
    let header = message.header(foreign, disk, 0x1234, 0xffff);
    world.net.send_message(0, Frame { header, payload: Payload::Typed(message) });
    world.run_until(world.net.now() + 1_000_000_000);
    assert_eq!(discards(&world), [("edge1:0".to_owned(), 1)]);
}
