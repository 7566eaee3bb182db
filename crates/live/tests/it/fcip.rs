//! FCIP links: both ends in one process.

use sanloom_fc::exchange::data_header;
use sanloom_fc::fcip::{Role, TunnelConfig};
use sanloom_live::frame::{FrameBuf, Pool};
use sanloom_live::ports::{Driver, EthernetPort, Fcip, reason};
use sanloom_live::sys::batch::BATCH;
use sanloom_scsi::time::{Instant, Span};
use sanloom_test_support::ports::free_port;
use sanloom_test_support::wait;
use sanloom_wire::FcId;
use sanloom_wire::Wwnn;
use sanloom_wire::ether::ETHER_BYTES;
use sanloom_wire::fcoe::MAX_PDU_BYTES;

fn config(role: Role, name: Wwnn) -> TunnelConfig {
    TunnelConfig {
        role,
        switch_name: name,
        entity: 1,
        peer: None,
        r_a_tov: Span::from_secs(10),
        k_a_tov: Span::from_secs(10),
        seed: name.0,
    }
}

/// Both ends of a link that is up.
fn link() -> [EthernetPort; 2] {
    // Another program may take the port before it is used here.
    let listen = |_| {
        let address = free_port().parse().unwrap();
        Fcip::listen("near", address, config(Role::Listens, Wwnn(1))).ok().map(|near| (address, near))
    };
    let (address, near) = (0..10).find_map(listen).expect("a free port");
    let far = Fcip::connect("far", address, config(Role::Connects, Wwnn(2)));
    let mut ports = [near, far].map(|driver| EthernetPort::new("port", Driver::Fcip(Box::new(driver))));
    let is_up = || {
        for port in &mut ports {
            port.check_peer();
            assert!(port.receive(&mut []).is_err(), "no frame was sent");
        }
        ports.iter().all(EthernetPort::has_peer)
    };
    wait::until(|| "the link".to_owned(), is_up);
    ports
}

/// A frame of the process with `ox_id`, whose length is then changed.
fn frame(pool: &mut Pool, ox_id: u16, len: impl Fn(usize) -> usize) -> FrameBuf {
    let ids = [1, 2].map(|domain| FcId::from_parts(domain, 1, 0));
    let header = data_header(ids[0], ids[1], ox_id, 0xffff, 0, 0, 0, true, false);
    let mut buffer = pool.take();
    buffer.fill_fcoe(&header, &[7; 2_112]);
    let mut bytes = buffer.bytes().to_vec();
    bytes.resize(len(bytes.len()), 0);
    buffer.fill(&bytes);
    buffer
}

#[test]
fn a_frame_that_is_no_frame_of_fibre_channel_is_refused_and_the_others_arrive() {
    let [mut near, mut far] = link();
    let mut pool = Pool::default();
    let same = |len| len;
    // With an extended header, longer than permitted; a part of a word; without a header.
    let longer = |_| ETHER_BYTES + MAX_PDU_BYTES + 4;
    let odd = |len| len - 1;
    let short = |_| ETHER_BYTES + 8;
    near.push(Instant::ZERO, frame(&mut pool, 1, same));
    near.push(Instant::ZERO, frame(&mut pool, 2, longer));
    near.push(Instant::ZERO, frame(&mut pool, 3, odd));
    near.push(Instant::ZERO, frame(&mut pool, 4, short));
    near.push(Instant::ZERO, frame(&mut pool, 5, same));
    near.flush(&mut pool);
    assert_eq!((near.sent.frames, near.drops.get(reason::REFUSED)), (2, Some(&3)));
    let mut room: Vec<FrameBuf> = (0..BATCH).map(|_| pool.take()).collect();
    let mut arrived = Vec::new();
    let all = || {
        let (got, _) = far.receive(&mut room).unwrap_or_default();
        arrived.extend(room[..got].iter().map(|buffer| buffer.bytes().to_vec()));
        arrived.len() >= 2
    };
    wait::until(|| "two frames".to_owned(), all);
    let sent = [1, 5].map(|ox_id| frame(&mut pool, ox_id, same).bytes().to_vec());
    assert_eq!(arrived, sent);
}
