//! A wire between a guest and a switch that drops selected frames: [`Relay`].

use crate::live::bed::Bed;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Socket of a guest at a relay, and the relay's socket.
pub const GUEST_SOCKETS: [&str; 2] = ["guest.sock", "relay.sock"];

/// Frames to drop.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Lost {
    Nothing,
    /// FIP keep-alives of the guest.
    KeepAlives,
    /// FIP advertisements of the switch.
    Advertisements,
}

/// Operation and subcode of FIP (FC-BB-5, table 26).
const ADVERTISEMENT: (u8, u8) = (1, 2);
const KEEP_ALIVE: (u8, u8) = (3, 1);
const CLEAR_VIRTUAL_LINKS: (u8, u8) = (3, 2);

#[derive(Default)]
struct Shared {
    lost: AtomicU8,
    over: AtomicBool,
    frames_lost: AtomicU64,
    clears: AtomicU64,
}

/// A relay between guest and switch.
pub struct Relay {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Creates a relay at the guest's end of a link.
    pub fn start(bed: &Bed, link: &str) -> Relay {
        let path = |ending: &str| bed.folder.join(format!("{link}.{ending}"));
        let shared = Arc::new(Shared::default());
        // One socket receives from the switch, the other from the guest.
        let from_switch = UnixDatagram::bind(path("peer.sock")).unwrap();
        let from_guest = UnixDatagram::bind(path(GUEST_SOCKETS[1])).unwrap();
        // Both ends accept frames only from the socket to which they send.
        let (to_switch, to_guest) = (from_switch.try_clone().unwrap(), from_guest.try_clone().unwrap());
        let ways = [(from_switch, to_guest, path(GUEST_SOCKETS[0])), (from_guest, to_switch, path("sock"))];
        let threads = ways.map(|(from, to, path)| {
            let shared = shared.clone();
            thread::spawn(move || shared.carry(&from, &to, &path))
        });
        Relay { shared, threads: threads.into() }
    }

    /// Drops these frames from now on.
    pub fn lose(&self, what: Lost) {
        self.shared.lost.store(what as u8, Ordering::SeqCst);
    }

    /// Number of dropped frames.
    pub fn frames_lost(&self) -> u64 {
        self.shared.frames_lost.load(Ordering::SeqCst)
    }

    /// Number of Clear Virtual Links frames from the switch.
    pub fn clears(&self) -> u64 {
        self.shared.clears.load(Ordering::SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Shared {
    fn carry(&self, from: &UnixDatagram, to: &UnixDatagram, path: &Path) {
        from.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut frame = [0; 4096];
        while !self.over.load(Ordering::SeqCst) {
            match from.recv(&mut frame) {
                Ok(len) if self.is_lost(&frame[..len]) => _ = self.frames_lost.fetch_add(1, Ordering::SeqCst),
                // Frames for a guest that has not started are lost, as on a real wire.
                Ok(len) => drop(to.send_to(&frame[..len], path)),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn is_lost(&self, frame: &[u8]) -> bool {
        let Some(&[0x89, 0x14, _, _, 0, operation, _, subcode]) = frame.get(12..20) else { return false };
        let packet = (operation, subcode);
        self.clears.fetch_add(u64::from(packet == CLEAR_VIRTUAL_LINKS), Ordering::SeqCst);
        let lost = self.lost.load(Ordering::SeqCst);
        let is = |what: Lost| lost == what as u8;
        packet == KEEP_ALIVE && is(Lost::KeepAlives) || packet == ADVERTISEMENT && is(Lost::Advertisements)
    }
}
