//! Captures of ports while they run: [`Captures`].

use crate::frame::FrameBuf;
use sanloom_core::time::Instant;
use sanloom_wire::delimiter::Disparity;
use sanloom_wire::ether::ETHER_BYTES;
use sanloom_wire::fcoe::Fcoe;
use sanloom_wire::pcapng::{
    Direction, Interface, LINKTYPE_ETHERNET, LINKTYPE_FC_2_WITH_FRAME_DELIMS, Packet, Resolution, Section,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A port that frames pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// An Ethernet port, by index. Captured as Ethernet.
    Ethernet(usize),
    /// A port of a switch with storage or another switch of this process behind it. Captured as Fibre Channel, from SOF to EOF.
    Inner {
        /// The switch, by index.
        switch: usize,
        /// Its port.
        port: u16,
    },
}

/// The captures that run.
#[derive(Debug, Default)]
pub struct Captures {
    running: BTreeMap<Place, Capture>,
}

#[derive(Debug)]
struct Capture {
    file: BufWriter<File>,
    /// What the clock of the instance calls zero, in nanoseconds since 1970.
    epoch_ns: u64,
    scratch: Vec<u8>,
    frames: u64,
}

impl Captures {
    /// The clock of the instance has stood still for so long; frames have the time of day all the same.
    pub fn stood_still(&mut self, time: Duration) {
        for capture in self.running.values_mut() {
            capture.epoch_ns = capture.epoch_ns.saturating_add(time.as_nanos() as u64);
        }
    }

    /// Writes every frame of a port to a file from now on, in place of an earlier capture of it. The name is for people.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn start(&mut self, now: Instant, place: Place, name: &str, path: &Path) -> io::Result<()> {
        if self.running.contains_key(&place) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this port is captured already"));
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let mut head = Vec::new();
        Section { application: concat!("sanloom ", env!("CARGO_PKG_VERSION")), comment: None }.emit(&mut head);
        let link_type = match place {
            Place::Ethernet(_) => LINKTYPE_ETHERNET,
            Place::Inner { .. } => LINKTYPE_FC_2_WITH_FRAME_DELIMS,
        };
        Interface { name, description: None, link_type, resolution: Resolution::Nanoseconds }.emit(&mut head);
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&head)?;
        file.flush()?;
        let capture = Capture { file, epoch_ns: wall.saturating_sub(now.as_ns()), scratch: Vec::new(), frames: 0 };
        self.running.insert(place, capture);
        Ok(())
    }

    /// Ends the capture of a port, and says how many frames it has; nothing if there was none.
    pub fn stop(&mut self, place: Place) -> Option<u64> {
        let mut capture = self.running.remove(&place)?;
        let _ = capture.file.flush();
        Some(capture.frames)
    }

    /// A frame passes a port. A capture that cannot be written any more ends.
    #[inline]
    pub fn record(&mut self, now: Instant, place: Place, outbound: bool, frame: &FrameBuf) {
        if self.running.is_empty() {
            return;
        }
        let Some(capture) = self.running.get_mut(&place) else { return };
        let data = match place {
            Place::Ethernet(_) => with_tag(frame),
            Place::Inner { .. } => match with_delimiters(frame) {
                Some(data) => data.into(),
                None => return,
            },
        };
        if let Err(error) = capture.write(now, outbound, &data) {
            tracing::error!(%error, "capture ended");
            self.running.remove(&place);
        }
    }

    /// A port is captured.
    #[inline]
    pub fn has(&self, place: Place) -> bool {
        self.running.contains_key(&place)
    }

    /// Brings everything to the files, so that somebody can read it while it grows.
    pub fn flush(&mut self) {
        self.running.retain(|_, capture| capture.file.flush().is_ok());
    }
}

/// The Ethernet frame with its tag inside.
fn with_tag(frame: &FrameBuf) -> Cow<'_, [u8]> {
    let bytes = frame.bytes();
    match (frame.tag, bytes.split_at_checked(12)) {
        (Some(tag), Some((addresses, rest))) => {
            [addresses, &[0x81, 0x00], &tag.to_bits().to_be_bytes(), rest].concat().into()
        }
        _ => bytes.into(),
    }
}

/// The Fibre Channel frame inside, from SOF to EOF, with the CRC that it has.
fn with_delimiters(frame: &FrameBuf) -> Option<Vec<u8>> {
    let pdu = Fcoe::parse(frame.bytes().get(ETHER_BYTES..)?).ok()?;
    let (sof, eof) = (pdu.sof()?.ordered_set(), pdu.eof()?.ordered_set(Disparity::Negative));
    Some([&sof[..], pdu.frame, &pdu.crc, &eof].concat())
}

impl Capture {
    fn write(&mut self, now: Instant, outbound: bool, data: &[u8]) -> io::Result<()> {
        let direction = Some(if outbound { Direction::Outbound } else { Direction::Inbound });
        self.scratch.clear();
        let time = self.epoch_ns + now.as_ns();
        Packet { interface: 0, time, direction, crc_error: false, comment: None, data }.emit(&mut self.scratch);
        self.frames += 1;
        self.file.write_all(&self.scratch)
    }
}
