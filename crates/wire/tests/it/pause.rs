//! Priority-based flow control against Wireshark's dissector.

use sanloom_test_support::{needs, tshark};
use sanloom_wire::ether::MacAddr;
use sanloom_wire::pause::PriorityPause;
use sanloom_wire::pcapng::{Interface, LINKTYPE_ETHERNET, Packet, Resolution, Section};

#[needs("tshark")]
#[test]
fn tshark_reads_the_type_and_the_times_of_a_pause() {
    let mut file = Vec::new();
    Section { application: "sanloom", comment: None }.emit(&mut file);
    let resolution = Resolution::Nanoseconds;
    Interface { name: "eth0", description: None, link_type: LINKTYPE_ETHERNET, resolution }.emit(&mut file);
    for (time, stops) in [(0, true), (1, false)] {
        let mut data = Vec::new();
        PriorityPause::of(1 << 3, stops).emit(MacAddr([2, 0, 0, 0, 0, 1]), &mut data);
        Packet { interface: 0, time, direction: None, crc_error: false, comment: None, data: &data }.emit(&mut file);
    }
    let fields = ["eth.type", "macc.opcode", "macc.cbfc.pause_time.c3", "_ws.malformed"];
    let mut arguments = vec!["-T", "fields"];
    fields.iter().for_each(|field| arguments.extend(["-e", *field]));
    let text = tshark::read_bytes(&file, &arguments);
    assert_eq!(text, "0x8808\t0x0101\t65535\t\n0x8808\t0x0101\t0\t\n");
}
