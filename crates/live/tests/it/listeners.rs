//! Ports that accept peers, when the process has no more descriptors.

use crate::ports::Folder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sanloom_fc::fcip::{Role, TunnelConfig};
use sanloom_live::nbd::NbdServer;
use sanloom_live::poll::{Interest, Poller};
use sanloom_live::ports::{Driver, EthernetPort, Fcip, Stream};
use sanloom_scsi::nbd::Limits;
use sanloom_scsi::time::{Instant, Span};
use sanloom_test_support::alone;
use sanloom_test_support::ports::free_port;
use sanloom_wire::Wwnn;
use std::fs::File;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Token of the listener.
const TOKEN: u64 = 1;

/// Returns whether the poller reports the listener.
fn is_reported(port: &EthernetPort, poller: &mut Poller, wait: Duration) -> bool {
    port.watch_listener(poller, TOKEN).unwrap();
    poller.wait(wait).unwrap().iter().any(|event| event.token == TOKEN)
}

/// Runs `body` while the process cannot open descriptors.
fn without_descriptors(body: impl FnOnce()) {
    let limits = getrlimit(Resource::Nofile);
    let free = File::open("/dev/null").unwrap().as_raw_fd();
    setrlimit(Resource::Nofile, Rlimit { current: Some(free as u64), ..limits }).unwrap();
    body();
    setrlimit(Resource::Nofile, limits).unwrap();
}

/// A listener is level-triggered, so a connection that cannot be accepted is reported without end.
#[test]
fn a_listener_is_not_polled_while_the_process_has_no_more_descriptors() {
    if !alone::in_process("listeners::a_listener_is_not_polled_while_the_process_has_no_more_descriptors") {
        return;
    }
    let folder = Folder::new("listeners");
    let (path, address) = (folder.path("switch"), free_port().parse().unwrap());
    let config = TunnelConfig {
        role: Role::Listens,
        switch_name: Wwnn(1),
        entity: 1,
        peer: None,
        r_a_tov: Span::from_secs(10),
        k_a_tov: Span::from_secs(10),
        seed: 1,
    };
    let stream = Driver::Stream(Stream::listen(&path).unwrap());
    let tunnel = Driver::Fcip(Box::new(Fcip::listen("tunnel", address, config).unwrap()));
    let connects: [&dyn Fn() -> OwnedFd; 2] =
        [&|| UnixStream::connect(&path).unwrap().into(), &|| TcpStream::connect(address).unwrap().into()];
    let mut poller = Poller::new().unwrap();
    let long = Duration::from_secs(60);
    for (driver, connect) in [stream, tunnel].into_iter().zip(connects) {
        let mut port = EthernetPort::new("port", driver);
        let _first = connect();
        assert!(is_reported(&port, &mut poller, long));
        without_descriptors(|| {
            for _ in 0..3 {
                port.check_peer();
                assert!(!is_reported(&port, &mut poller, Duration::from_millis(50)), "{port:?}");
                assert!(port.socket().is_none());
            }
        });
        port.check_peer();
        assert!(port.socket().is_some(), "the connection is accepted later: {port:?}");
        let _second = connect();
        assert!(is_reported(&port, &mut poller, long), "and the listener is polled again");
        poller.forget(TOKEN);
    }
}

#[test]
fn an_nbd_server_without_more_descriptors_sleeps_until_its_next_attempt() {
    if !alone::in_process("listeners::an_nbd_server_without_more_descriptors_sleeps_until_its_next_attempt") {
        return;
    }
    let folder = Folder::new("nbd-listener");
    let mut server = NbdServer::listen(&folder.path("nbd"), Vec::new(), Limits::default()).unwrap();
    let mut poller = Poller::new().unwrap();
    poller.set(TOKEN, Some(server.descriptor()), Interest { read: true, write: false }).unwrap();
    let _client = UnixStream::connect(folder.path("nbd")).unwrap();
    assert_eq!(poller.wait(Duration::from_secs(60)).unwrap().len(), 1);
    let mut now = Instant::ZERO;
    without_descriptors(|| {
        for _ in 0..3 {
            server.process_events(now, Duration::ZERO).unwrap();
            assert_eq!(poller.wait(Duration::from_millis(50)).unwrap(), [], "an event without work");
            let next = server.poll_timeout().expect("a time of the next attempt");
            assert!(now < next);
            now = next;
        }
    });
    server.process_events(now, Duration::ZERO).unwrap();
    assert_eq!(server.clients(), 1);
}
