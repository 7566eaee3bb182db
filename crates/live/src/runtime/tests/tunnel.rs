//! Frames that leave through an FCIP link.

use super::super::Runtime;
use super::super::fabric::switch::Attachment;
use super::super::plan::Options;
use super::super::work::{Origin, Source};
use super::lab;
use sanloom_fc::exchange::data_header;
use sanloom_test_support::ports::free_port;
use sanloom_wire::FcId;
use sanloom_wire::ether::{MacAddr, VlanTag, readdress};

#[test]
fn a_frame_in_a_tunnel_has_neither_addresses_nor_a_tag_of_the_ethernet_before_it() {
    let address = free_port();
    let text = format!(
        "[switch.\"{{near,far}}\"]\n[[isl]]\nfrom = \"near\"\nto = \"far\"\n\
         fcip = {{ listen = \"{address}\", peer = \"{address}\" }}\n"
    );
    let only = Options { switch: Some("near".to_owned()), ..Options::default() };
    let mut runtime = Runtime::up(lab("tunnel", &text), &only).unwrap();
    let now = runtime.clock.now();
    let instance = &mut runtime.instance;
    let attachments = instance.fabric.switches[0].attachments.iter();
    let Some((port, tunnel)) = (0..).zip(attachments).find_map(|(port, at)| match *at {
        Attachment::Tunnel(tunnel) => Some((port, tunnel)),
        _ => None,
    }) else {
        panic!("no tunnel")
    };
    let [s_id, d_id] = [1, 2].map(|domain| FcId::from_parts(domain, 1, 0));
    let mut frame = instance.ports.pool.take();
    frame.fill_fcoe(&data_header(s_id, d_id, 1, 0xffff, 0, 0, 0, true, false), &[7; 64]);
    let expected = frame.bytes().to_vec();
    assert_eq!(expected[..12], [0; 12], "without addresses");
    readdress(frame.bytes_mut(), MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    frame.tag = Some(VlanTag { priority: 3, drop_eligible: false, vlan: 100 });
    instance.leave_port(now, (0, port), Origin { source: Source::Machine, since: now }, frame, d_id);
    let queued = instance.ports[tunnel].ethernet.egress.queue(0);
    let frame = &queued.front().expect("a frame in the queue without priority").frame;
    assert_eq!((frame.bytes(), frame.tag), (&*expected, None));
}
