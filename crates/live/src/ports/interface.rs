//! Ethernet interfaces of this machine: [`Tap`] and [`Packet`].

use super::{PortError, Sending};
use crate::frame::FrameBuf;
use crate::ports::egress::Queued;
use crate::sys::batch;
use crate::sys::interface::{self, PacketCount};
use sanloom_wire::ether::EtherType;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// MTU in bytes; sufficient for a full FCoE frame with its tag (the Open-FCoE slides).
const MTU: u16 = 2_500;
/// Kernel queue of a tap, in frames: 32 requests of 1 MiB in frames of 2 KiB. Excess frames are
/// lost, and a command whose response is lost waits for its time-out.
const TAP_QUEUE_FRAMES: u32 = 16_384;
/// Kernel receive buffer of a packet socket, in bytes of frames; the kernel doubles it for its own
/// data. A process that gets no processor for 10 ms finds its frames of 10 Gb/s there. Without
/// CAP_NET_ADMIN the limit is that of `net.core.rmem_max`.
const RECEIVE_BUFFER_BYTES: i32 = 16 << 20;

/// Memory of a full FCoE frame in the kernel's receive buffer, in bytes: a page for the frame, and
/// its descriptor.
const FRAME_MEMORY_BYTES: u32 = 4_608;
/// Part of the receive buffer at which it is taken to fill up.
const FILL_BEGINS: u32 = 8;
/// Most of the buffer at which it is taken to fill up, if it is small.
const MOST_FILL: u32 = 4;
/// Smallest buffer that takes the batch that is read next, and three further ones until the peer
/// has read the pause, in bytes.
const SMALLEST_BUFFER_BYTES: u32 = 4 * batch::BATCH as u32 * FRAME_MEMORY_BYTES;

/// Levels of a receive buffer, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Levels {
    /// The peer pauses above this level.
    begins: u32,
    /// The peer goes on at this level or below.
    ends: u32,
}

impl Levels {
    /// Returns the levels of a buffer. The distance of both grows with the buffer, and is at least
    /// half a batch with the default of `net.core.rmem_max` (208 KiB), so that a batch more or less
    /// does not change the answer each time.
    fn of(limit_bytes: u32) -> Levels {
        let batch_bytes = batch::BATCH as u32 * FRAME_MEMORY_BYTES;
        let begins = (limit_bytes / FILL_BEGINS).max(batch_bytes.min(limit_bytes / MOST_FILL));
        Levels { begins, ends: begins / 4 }
    }

    fn fills_up(self, used_bytes: u32, was: bool) -> bool {
        used_bytes > if was { self.ends } else { self.begins }
    }
}

/// A tap interface: this machine is at one end, the switch at the other.
#[derive(Debug)]
pub struct Tap {
    file: File,
    name: String,
    running: bool,
}

impl Tap {
    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens the interface of this name and creates it if it does not exist.
    ///
    /// # Errors
    /// Without permission, or when another process uses the interface.
    pub fn open(name: &str) -> Result<Tap, PortError> {
        let failed = |error| PortError::Interface { name: name.to_owned(), error };
        let file = interface::open_tap(name).map_err(failed)?;
        interface::bring_up(name, MTU).map_err(failed)?;
        interface::set_queue(name, TAP_QUEUE_FRAMES).map_err(failed)?;
        let mut tap = Tap { file, name: name.to_owned(), running: false };
        tap.check_peer();
        Ok(tap)
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns whether the interface is up.
    pub fn has_peer(&self) -> bool {
        self.running
    }

    /// Updates the state of the interface.
    pub fn check_peer(&mut self) {
        self.running = interface::is_running(&self.name).unwrap_or(false);
    }

    /// Receives frames.
    ///
    /// # Errors
    /// Errors of the device; `WouldBlock` when no frame is available.
    pub fn receive(&mut self, buffers: &mut [FrameBuf]) -> io::Result<(usize, u32)> {
        let mut got = 0;
        for buffer in buffers.iter_mut().take(batch::BATCH) {
            match (&self.file).read(buffer.room()) {
                Ok(len) => buffer.received(len, None),
                Err(_) if got > 0 => break,
                Err(error) => return Err(error),
            }
            got += 1;
        }
        Ok((got, 0))
    }

    /// Sends frames from the front of the queue.
    pub fn send(&mut self, frames: &VecDeque<Queued>) -> Sending {
        for (sent, queued) in frames.iter().take(batch::BATCH).enumerate() {
            match (&self.file).write(queued.frame.bytes()) {
                Ok(_) => {}
                Err(_) if sent > 0 => return Sending::Sent(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Sending::Blocked,
                Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                    self.running = false;
                    return Sending::NoPeer;
                }
                Err(_) => return Sending::Refused,
            }
        }
        Sending::Sent(frames.len().min(batch::BATCH))
    }
}

/// A packet socket on an interface. The kernel does not hold its peer back, so frames that overflow
/// the kernel's buffer are lost and counted. [`fills_up`](Packet::fills_up) tells early enough that
/// the peer must pause, where DCBX has agreed on that.
#[derive(Debug)]
pub struct Packet {
    socket: OwnedFd,
    name: String,
    /// Kernel index of the bound interface. An interface that is removed and created again has a
    /// new index.
    index: u32,
    /// EtherTypes that are received; empty means all.
    types: Vec<u16>,
    running: bool,
    kernel_drops: u64,
    /// The log has the remedy for a receive buffer that is too small.
    has_warned: bool,
}

impl Packet {
    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Receives from the interface of this name.
    ///
    /// # Errors
    /// Without permission, or when the interface does not exist.
    pub fn open(name: &str) -> Result<Packet, PortError> {
        Packet::open_for(name, &[])
    }

    /// Receives only untagged frames of these types; an empty list means all frames.
    ///
    /// # Errors
    /// As [`Packet::open`].
    pub fn open_for(name: &str, types: &[EtherType]) -> Result<Packet, PortError> {
        let failed = |error| PortError::Interface { name: name.to_owned(), error };
        let types: Vec<u16> = types.iter().map(|ether_type| ether_type.0).collect();
        let index = interface::index_of(name).map_err(failed)?;
        let socket = interface::open_packet(index, RECEIVE_BUFFER_BYTES, &types).map_err(failed)?;
        let mut packet =
            Packet { socket, name: name.to_owned(), index, types, running: false, kernel_drops: 0, has_warned: false };
        packet.check_peer();
        Ok(packet)
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns whether the interface is up and has a carrier.
    pub fn has_peer(&self) -> bool {
        self.running
    }

    /// Updates the link state and the kernel's drop counter. An interface that was removed and
    /// created again has a new index: the socket is bound anew, and the port was down in between.
    pub fn check_peer(&mut self) {
        let PacketCount { dropped } = interface::packet_count(self.socket.as_fd()).unwrap_or_default();
        self.kernel_drops += u64::from(dropped);
        let running = interface::is_running(&self.name).unwrap_or(false);
        let Some(index) = interface::index_of(&self.name).ok().filter(|index| *index != self.index) else {
            self.running = running;
            return;
        };
        self.running = false;
        if let Ok(socket) = interface::open_packet(index, RECEIVE_BUFFER_BYTES, &self.types) {
            (self.socket, self.index) = (socket, index);
        }
    }

    /// Number of frames that the kernel dropped because its buffer was full.
    pub fn kernel_drops(&self) -> u64 {
        self.kernel_drops
    }

    /// Returns whether the kernel's receive buffer is filling up. `was`: the last answer. The rest
    /// of the buffer takes what the peer sends until it has read the pause.
    pub fn fills_up(&mut self, was: bool) -> bool {
        let memory = interface::receive_memory(self.socket.as_fd()).unwrap_or_default();
        if let Some(remedy) = remedy(memory.limit_bytes).filter(|_| !std::mem::replace(&mut self.has_warned, true)) {
            tracing::warn!(interface = self.name, "{remedy}");
        }
        Levels::of(memory.limit_bytes).fills_up(memory.used_bytes, was)
    }

    /// Receives frames, see [`batch::receive`].
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn receive(&mut self, buffers: &mut [FrameBuf]) -> io::Result<(usize, u32)> {
        batch::receive(self.socket.as_fd(), buffers, true)
    }

    /// Sends frames from the front of the queue.
    pub fn send(&mut self, frames: &VecDeque<Queued>) -> Sending {
        match batch::send(self.socket.as_fd(), frames.iter().map(|queued| queued.frame.bytes())) {
            Ok(sent) => Sending::Sent(sent),
            Err(error) => match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::WouldBlock, _) | (_, Some(libc::ENOBUFS)) => Sending::Blocked,
                (io::ErrorKind::Interrupted, _) => Sending::Sent(0),
                (_, Some(libc::EMSGSIZE)) => Sending::Refused,
                _ => {
                    self.running = false;
                    Sending::NoPeer
                }
            },
        }
    }
}

/// Returns the remedy for a receive buffer that cannot take what a peer sends until it pauses.
fn remedy(limit_bytes: u32) -> Option<String> {
    (limit_bytes < SMALLEST_BUFFER_BYTES).then(|| {
        format!(
            "the kernel's receive buffer of {} KiB is too small for pauses without loss, which need {} KiB; set \
             `sysctl -w net.core.rmem_max={RECEIVE_BUFFER_BYTES}`, or run with CAP_NET_ADMIN",
            limit_bytes >> 10,
            SMALLEST_BUFFER_BYTES >> 10
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH_BYTES: u32 = batch::BATCH as u32 * FRAME_MEMORY_BYTES;
    /// Buffers with the default of `net.core.rmem_max` and with CAP_NET_ADMIN; the kernel doubles
    /// both.
    const DEFAULT: u32 = 2 * 212_992;
    const LARGE: u32 = 2 * RECEIVE_BUFFER_BYTES as u32;

    /// Returns how often the answer changes while a batch arrives for each one that is read.
    fn changes(limit_bytes: u32, base_bytes: u32) -> u32 {
        let (levels, mut was, mut changes) = (Levels::of(limit_bytes), false, 0);
        for turn in 0..100 {
            let swing = if turn % 2 == 0 { BATCH_BYTES / 2 } else { 0 };
            let now = levels.fills_up(base_bytes + swing, was);
            changes += u32::from(now != was);
            was = now;
        }
        changes
    }

    #[test]
    fn a_batch_more_or_less_does_not_pause_and_resume_the_peer_each_time() {
        for limit_bytes in [DEFAULT, LARGE] {
            for base_bytes in (0..limit_bytes / 2).step_by(1_024) {
                assert!(changes(limit_bytes, base_bytes) <= 1, "{base_bytes} of {limit_bytes}");
            }
        }
    }

    #[test]
    fn the_rest_of_a_buffer_takes_what_arrives_until_the_peer_pauses() {
        for limit_bytes in [8_192, 100_000, DEFAULT, SMALLEST_BUFFER_BYTES, LARGE] {
            let Levels { begins, ends } = Levels::of(limit_bytes);
            assert!(ends < begins && begins <= limit_bytes / 4, "{limit_bytes}");
        }
        let large = Levels::of(LARGE);
        assert_eq!(large, Levels { begins: LARGE / 8, ends: LARGE / 32 });
    }

    #[test]
    fn a_small_buffer_has_a_remedy() {
        let text = remedy(DEFAULT).expect("the default is too small");
        assert!(text.contains("416 KiB") && text.contains("net.core.rmem_max=16777216"), "{text}");
        assert_eq!((remedy(SMALLEST_BUFFER_BYTES), remedy(LARGE)), (None, None));
    }
}
