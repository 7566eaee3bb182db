//! Captures of Ethernet ports while they run: [`Captures`].

use crate::frame::FrameBuf;
use sanloom_core::time::Instant;
use sanloom_wire::pcapng::{Direction, Interface, LINKTYPE_ETHERNET, Packet, Resolution, Section};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The captures that run, by Ethernet port.
#[derive(Debug, Default)]
pub struct Captures {
    running: BTreeMap<usize, Capture>,
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
    /// Writes every frame of a port to a file from now on, in place of an earlier capture of it. The name is for people.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn start(&mut self, now: Instant, port: usize, name: &str, path: &Path) -> io::Result<()> {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let mut head = Vec::new();
        Section { application: concat!("sanloom ", env!("CARGO_PKG_VERSION")), comment: None }.emit(&mut head);
        let link_type = LINKTYPE_ETHERNET;
        Interface { name, description: None, link_type, resolution: Resolution::Nanoseconds }.emit(&mut head);
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&head)?;
        file.flush()?;
        let capture = Capture { file, epoch_ns: wall.saturating_sub(now.as_ns()), scratch: Vec::new(), frames: 0 };
        self.running.insert(port, capture);
        Ok(())
    }

    /// Ends the capture of a port, and says how many frames it has; nothing if there was none.
    pub fn stop(&mut self, port: usize) -> Option<u64> {
        let mut capture = self.running.remove(&port)?;
        let _ = capture.file.flush();
        Some(capture.frames)
    }

    /// A frame passes a port. A capture that cannot be written any more ends.
    #[inline]
    pub fn record(&mut self, now: Instant, port: usize, outbound: bool, frame: &FrameBuf) {
        if self.running.is_empty() {
            return;
        }
        if let Some(capture) = self.running.get_mut(&port)
            && let Err(error) = capture.write(now, outbound, frame)
        {
            tracing::error!(%error, "capture ended");
            self.running.remove(&port);
        }
    }

    /// Brings everything to the files, so that somebody can read it while it grows.
    pub fn flush(&mut self) {
        self.running.retain(|_, capture| capture.file.flush().is_ok());
    }
}

impl Capture {
    fn write(&mut self, now: Instant, outbound: bool, frame: &FrameBuf) -> io::Result<()> {
        let direction = Some(if outbound { Direction::Outbound } else { Direction::Inbound });
        let bytes = frame.bytes();
        let mut tagged = Vec::new();
        let data = match (frame.tag, bytes.split_at_checked(12)) {
            (Some(tag), Some((addresses, rest))) => {
                tagged.extend_from_slice(addresses);
                tagged.extend_from_slice(&[0x81, 0x00]);
                tagged.extend_from_slice(&tag.to_bits().to_be_bytes());
                tagged.extend_from_slice(rest);
                &tagged[..]
            }
            _ => bytes,
        };
        self.scratch.clear();
        let time = self.epoch_ns + now.as_ns();
        Packet { interface: 0, time, direction, crc_error: false, comment: None, data }.emit(&mut self.scratch);
        self.frames += 1;
        self.file.write_all(&self.scratch)
    }
}
