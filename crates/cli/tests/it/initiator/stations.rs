//! `fcoemon` and segments without a switch (VN2VN): MODE and FIP_RESP of its files, `-m` of
//! `fcoeadm`.

use crate::initiator::bed::Bed;
use crate::initiator::tools::{Monitor, ONLINE};
use sanloom_test_support::needs;
use sanloom_test_support::qemu_io::write_and_verify;
use sanloom_test_support::wait;
use sanloom_wire::Wwnn;
use sanloom_wire::ether::{EtherHeader, EtherType, MacAddr};
use sanloom_wire::fip::{Descriptor, Fip, FipFrame, Operation};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

const LAB: &str = r#"
[live]
folder = "{folder}"

[switch.sw1]

[storage.disk]
wwpn = "20:00:52:54:00:00:00:07"
lun_size = "64MiB"
vn2vn = { carrier = "dgram", vlan = 152 }
"#;

/// VLANs that the station at the other end of the socket reports on request.
fn named(socket: &UnixDatagram) -> Vec<u16> {
    const ASKER: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 9]);
    let descriptors = vec![Descriptor::Mac(ASKER), Descriptor::Name(Wwnn(0x1000_5254_0000_0009))];
    let packet = Fip { operation: Operation::VLAN_REQUEST, flags: 0, descriptors };
    let mut question = Vec::new();
    FipFrame { to: MacAddr::ALL_VN2VN_ENODES, from: ASKER, padded_bytes: 0, packet }.emit(None, &mut question);
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut buffer = [0; 4_096];
    let response = || {
        socket.send(&question).unwrap();
        while let Ok(got) = socket.recv(&mut buffer) {
            let Ok((EtherHeader { to: ASKER, ether_type: EtherType::FIP, tag: None, .. }, pdu)) =
                EtherHeader::parse(&buffer[..got])
            else {
                continue;
            };
            let packet = Fip::parse(pdu).unwrap();
            assert_eq!(packet.operation, Operation::VN2VN_VLAN_NOTIFICATION);
            let vlan = |descriptor: &Descriptor| match descriptor {
                Descriptor::Vlan(vlan) => Some(*vlan),
                _ => None,
            };
            return Some(packet.descriptors.iter().filter_map(vlan).collect());
        }
        None
    };
    wait::value(|| "the VLANs of the station".to_owned(), response)
}

#[needs("qemu-io")]
#[test]
fn an_instance_runs_as_a_station_that_reports_its_vlan() {
    let mut bed = Bed::folder("stations", LAB);
    let monitor = Monitor::start(&bed);
    let (file, own, peer) = (bed.path("etc/cfg-eth0"), bed.path("disk.peer.sock"), bed.path("disk.sock"));
    let write = |keys: &str| {
        let text = format!("{keys}\nPORT=\"dgram:{own},{peer}\"\nMAC=\"52:54:00:00:00:01\"\nVLAN=\"152\"\n");
        fs::write(&file, text).unwrap();
    };
    let somebody = UnixDatagram::bind(bed.path("disk.sock")).unwrap();
    write("FCOE_ENABLE=\"yes\"\nMODE=\"vn2vn\"\nFIP_RESP=\"yes\"");
    monitor.wait_for(Some("over eth0.152-fcoe"));
    wait::until(|| "the socket of the station".to_owned(), || somebody.connect(bed.path("disk.peer.sock")).is_ok());
    assert_eq!(named(&somebody), [152]);
    drop(somebody);
    fs::remove_file(bed.path("disk.sock")).unwrap();

    // Storage joins the segment.
    bed.start_fabric();
    monitor.wait_for(Some(ONLINE));
    let disk = bed.path("run/eth0.sock");
    let units = || monitor.tool(&["fcoeadm", "-l"]);
    wait::until(|| format!("status:\n{}", units()), || units().contains("Status:             Attached"));
    write_and_verify(&sanloom_test_support::programs::uri(disk.as_ref(), "fc-0x2000525400000007-lun-0"));

    // The file enables neither an instance nor VN2VN; the operator requests both.
    write("FCOE_ENABLE=\"no\"");
    monitor.wait_for(None);
    monitor.tool(&["fcoeadm", "-c", "eth0", "-m", "vn2vn"]);
    let shown = monitor.wait_for(Some(ONLINE));
    // The address of a station is derived from the end of its name.
    assert!(shown.contains("FC-ID (Port ID):   0x000001"), "{shown}");
    drop(monitor);
    bed.stop();
}
