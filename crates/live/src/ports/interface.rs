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

/// Part of the receive buffer at which it is taken to fill up, and from which it no longer is.
const FILL_BEGINS: u32 = 8;
const FILL_ENDS: u32 = 16;

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
        let mut packet = Packet { socket, name: name.to_owned(), index, types, running: false, kernel_drops: 0 };
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
    pub fn fills_up(&self, was: bool) -> bool {
        let memory = interface::receive_memory(self.socket.as_fd()).unwrap_or_default();
        let part = if was { FILL_ENDS } else { FILL_BEGINS };
        memory.used_bytes > memory.limit_bytes / part
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
