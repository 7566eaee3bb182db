//! Packet captures of ports of a running instance: [`Captures`].

use crate::frame::FrameBuf;
use sanloom_scsi::time::Instant;
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

/// Port whose frames can be captured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CapturePoint {
    /// An Ethernet port, by index. Captured as Ethernet.
    Ethernet(usize),
    /// A switch port behind which this process has storage or another switch. Captured as Fibre
    /// Channel, from SOF to EOF.
    Inner {
        /// Index of the switch.
        switch: usize,
        /// Port number on that switch.
        port: u16,
    },
}

/// Running captures, by port.
#[derive(Debug, Default)]
pub struct Captures {
    running: BTreeMap<CapturePoint, Capture>,
}

#[derive(Debug)]
struct Capture {
    file: BufWriter<File>,
    /// Wall-clock time of the instance's time zero, in nanoseconds since 1970.
    epoch_ns: u64,
    scratch: Vec<u8>,
    frames: u64,
}

impl Captures {
    /// Adds a pause of the instance's clock, so that later frames still carry the time of day.
    pub fn stood_still(&mut self, time: Duration) {
        for capture in self.running.values_mut() {
            capture.epoch_ns = capture.epoch_ns.saturating_add(time.as_nanos() as u64);
        }
    }

    /// Starts to write every frame of a port to a file. `name` is the interface name in the file.
    ///
    /// # Errors
    /// When the port is captured already, or the file cannot be written.
    pub fn start(&mut self, now: Instant, point: CapturePoint, name: &str, path: &Path) -> io::Result<()> {
        if self.running.contains_key(&point) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this port is captured already"));
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let mut head = Vec::new();
        Section { application: concat!("sanloom ", env!("CARGO_PKG_VERSION")), comment: None }.emit(&mut head);
        let link_type = match point {
            CapturePoint::Ethernet(_) => LINKTYPE_ETHERNET,
            CapturePoint::Inner { .. } => LINKTYPE_FC_2_WITH_FRAME_DELIMS,
        };
        Interface { name, description: None, link_type, resolution: Resolution::Nanoseconds }.emit(&mut head);
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&head)?;
        file.flush()?;
        let capture = Capture { file, epoch_ns: wall.saturating_sub(now.as_ns()), scratch: Vec::new(), frames: 0 };
        self.running.insert(point, capture);
        Ok(())
    }

    /// Ends the capture of a port and returns its number of frames, or `None` if the port was not
    /// captured.
    pub fn stop(&mut self, point: CapturePoint) -> Option<u64> {
        let mut capture = self.running.remove(&point)?;
        let _ = capture.file.flush();
        Some(capture.frames)
    }

    /// Records a frame that passes a port. A capture whose file cannot be written any more ends.
    #[inline]
    pub fn record(&mut self, now: Instant, point: CapturePoint, outbound: bool, frame: &FrameBuf) {
        if self.running.is_empty() {
            return;
        }
        let Some(capture) = self.running.get_mut(&point) else { return };
        let data = match point {
            CapturePoint::Ethernet(_) => with_tag(frame),
            CapturePoint::Inner { .. } => match with_delimiters(frame) {
                Some(data) => data.into(),
                None => return,
            },
        };
        if let Err(error) = capture.write(now, outbound, &data) {
            tracing::error!(%error, "capture ended");
            self.running.remove(&point);
        }
    }

    /// Returns whether the port is captured.
    #[inline]
    pub fn has(&self, point: CapturePoint) -> bool {
        self.running.contains_key(&point)
    }

    /// Flushes all captures to their files, so that they can be read while they grow.
    pub fn flush(&mut self) {
        self.running.retain(|_, capture| capture.file.flush().is_ok());
    }
}

/// Returns the Ethernet frame with its 802.1Q tag in place.
fn with_tag(frame: &FrameBuf) -> Cow<'_, [u8]> {
    let bytes = frame.bytes();
    match (frame.tag, bytes.split_at_checked(12)) {
        (Some(tag), Some((addresses, rest))) => {
            [addresses, &[0x81, 0x00], &tag.to_bits().to_be_bytes(), rest].concat().into()
        }
        _ => bytes.into(),
    }
}

/// Returns the Fibre Channel frame inside, from SOF to EOF, with its CRC unchanged.
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
