//! Packet captures of ports of a running instance: [`Captures`].

use crate::frame::FrameBuf;
use sanloom_api::view::CaptureRow;
use sanloom_scsi::time::Instant;
use sanloom_wire::delimiter::Disparity;
use sanloom_wire::ether::ETHER_BYTES;
use sanloom_wire::fcoe::Fcoe;
use sanloom_wire::pcapng::{
    Direction, Interface, LINKTYPE_ETHERNET, LINKTYPE_FC_2_WITH_FRAME_DELIMS, Packet, Resolution, Section,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
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

/// Captures by port: those that run, and those that a write error has ended.
#[derive(Debug, Default)]
pub struct Captures {
    running: BTreeMap<CapturePoint, Capture>,
    failed: Vec<FailedCapture>,
    /// Number of captures that a write error has ended, by the name of the port.
    failures: BTreeMap<String, u64>,
}

/// Receiver of the frames of a capture in this process. Each call of `write` passes one whole block
/// of the file; it must not wait. An error ends the capture.
pub struct FrameSink(pub Box<dyn Write + Send>);

impl fmt::Debug for FrameSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameSink")
    }
}

/// Destination of a capture.
#[derive(Debug)]
enum Output {
    File(BufWriter<File>),
    Sink(FrameSink),
}

impl Output {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Output::File(file) => file.write_all(bytes),
            Output::Sink(sink) => sink.0.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File(file) => file.flush(),
            Output::Sink(sink) => sink.0.flush(),
        }
    }
}

#[derive(Debug)]
struct Capture {
    /// Interface name in the file.
    name: String,
    path: PathBuf,
    file: Output,
    /// Wall-clock time of the instance's time zero, in nanoseconds since 1970.
    epoch_ns: u64,
    scratch: Vec<u8>,
    frames: u64,
}

/// Capture that a write error has ended. The file lacks some of its frames.
#[derive(Debug, thiserror::Error)]
#[error("the capture {} of {name} is not complete: {error}; free space, and start it again", path.display())]
pub struct FailedCapture {
    /// The port; `None` if it was closed since.
    point: Option<CapturePoint>,
    name: String,
    path: PathBuf,
    frames: u64,
    error: io::Error,
}

impl Captures {
    /// Rows of the table of captures: those that run, then those that a write error has ended.
    pub fn rows(&self) -> impl Iterator<Item = CaptureRow> + '_ {
        let row = |name: &str, path: &Path, frames: u64, error: Option<&io::Error>| CaptureRow {
            port: name.to_owned(),
            file: path.display().to_string(),
            frames,
            error: error.map(io::Error::to_string),
        };
        let running = self.running.values();
        let running = running.map(move |capture| row(&capture.name, &capture.path, capture.frames, None));
        let failed = self.failed.iter();
        running.chain(failed.map(move |failed| row(&failed.name, &failed.path, failed.frames, Some(&failed.error))))
    }

    /// Captures that a write error has ended, and that were neither stopped nor started again.
    pub fn failed(&self) -> &[FailedCapture] {
        &self.failed
    }

    /// Number of captures that a write error has ended, by the name of the port.
    pub fn failures(&self) -> impl Iterator<Item = (&str, u64)> {
        self.failures.iter().map(|(name, failures)| (name.as_str(), *failures))
    }

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
        self.start_into(now, point, name, path, None)
    }

    /// Like [`start`](Self::start). With a sink, `path` is only its name.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_into(
        &mut self,
        now: Instant,
        point: CapturePoint,
        name: &str,
        path: &Path,
        sink: Option<FrameSink>,
    ) -> io::Result<()> {
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
        let mut file = match sink {
            Some(sink) => Output::Sink(sink),
            None => Output::File(BufWriter::new(File::create(path)?)),
        };
        file.write_all(&head)?;
        file.flush()?;
        let (name, path) = (name.to_owned(), path.to_owned());
        self.failed.retain(|failed| failed.point != Some(point));
        self.failures.entry(name.clone()).or_insert(0);
        let epoch_ns = wall.saturating_sub(now.as_ns());
        self.running.insert(point, Capture { name, path, file, epoch_ns, scratch: Vec::new(), frames: 0 });
        Ok(())
    }

    /// Ends the capture of a port and returns its number of frames, or `None` if the port was not
    /// captured.
    ///
    /// # Errors
    /// The file could not be written to its end, now or before.
    pub fn stop(&mut self, point: CapturePoint) -> Option<Result<u64, FailedCapture>> {
        if let Some(capture) = self.running.get_mut(&point) {
            match capture.file.flush() {
                Ok(()) => return self.running.remove(&point).map(|capture| Ok(capture.frames)),
                Err(error) => self.fail(point, error),
            }
        }
        let failed = self.failed.iter().position(|failed| failed.point == Some(point))?;
        Some(Err(self.failed.remove(failed)))
    }

    /// Ends the capture of a port that is closed. If its file cannot be written, it remains among
    /// those that have failed.
    pub fn close(&mut self, point: CapturePoint) {
        if let Some(Err(failed)) = self.stop(point) {
            self.failed.push(FailedCapture { point: None, ..failed });
        }
    }

    fn fail(&mut self, point: CapturePoint, error: io::Error) {
        let Some(Capture { name, path, frames, file, .. }) = self.running.remove(&point) else { return };
        if matches!(file, Output::Sink(_)) {
            tracing::info!(port = name, frames, "the client of the capture has disconnected");
            return;
        }
        tracing::error!(port = name, path = %path.display(), %error, "capture ended");
        *self.failures.entry(name.clone()).or_insert(0) += 1;
        self.failed.push(FailedCapture { point: Some(point), name, path, frames, error });
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
            self.fail(point, error);
        }
    }

    /// Returns whether no port is captured.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns whether the port is captured.
    #[inline]
    pub fn has(&self, point: CapturePoint) -> bool {
        self.running.contains_key(&point)
    }

    /// Flushes all captures to their files, so that they can be read while they grow.
    pub fn flush(&mut self) {
        let flush = |(point, capture): (&CapturePoint, &mut Capture)| Some((*point, capture.file.flush().err()?));
        let failed: Vec<(CapturePoint, io::Error)> = self.running.iter_mut().filter_map(flush).collect();
        failed.into_iter().for_each(|(point, error)| self.fail(point, error));
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

#[cfg(test)]
mod tests {
    use super::*;

    const POINT: CapturePoint = CapturePoint::Ethernet(0);

    /// A capture whose disk is full, with a frame in its buffer.
    fn on_full_disk() -> Captures {
        let mut captures = Captures::default();
        captures.start(Instant::ZERO, POINT, "sw1:0", Path::new("/dev/null")).unwrap();
        let file = File::options().write(true).open("/dev/full").unwrap();
        captures.running.get_mut(&POINT).unwrap().file = Output::File(BufWriter::new(file));
        captures.running.get_mut(&POINT).unwrap().write(Instant::ZERO, true, &[0; 64]).unwrap();
        captures
    }

    fn errors(captures: &Captures) -> Vec<bool> {
        captures.rows().map(|row| row.error.is_some_and(|error| error.contains("No space left"))).collect()
    }

    #[test]
    fn a_capture_on_a_full_disk_is_shown_counted_and_reported_when_it_is_stopped() {
        let mut captures = on_full_disk();
        assert_eq!(errors(&captures), [false]);
        captures.flush();
        assert_eq!(errors(&captures), [true]);
        assert_eq!(captures.failures().collect::<Vec<_>>(), [("sw1:0", 1)]);
        let failed = captures.stop(POINT).unwrap().unwrap_err().to_string();
        assert!(failed.contains("/dev/null of sw1:0 is not complete: No space left"), "{failed}");
        assert!(captures.stop(POINT).is_none() && captures.rows().next().is_none());
        assert_eq!(captures.failures().collect::<Vec<_>>(), [("sw1:0", 1)]);
    }

    #[test]
    fn the_last_write_of_a_capture_can_fail() {
        assert!(on_full_disk().stop(POINT).unwrap().is_err());
        let mut captures = on_full_disk();
        captures.close(POINT);
        assert_eq!(captures.failed().len(), 1);
        // Another port with the same index is another one.
        assert!(captures.stop(POINT).is_none());
    }

    #[test]
    fn a_new_capture_of_the_port_replaces_a_failed_one() {
        let mut captures = on_full_disk();
        captures.flush();
        captures.start(Instant::ZERO, POINT, "sw1:0", Path::new("/dev/null")).unwrap();
        assert_eq!(errors(&captures), [false]);
        assert_eq!(captures.stop(POINT).unwrap().unwrap(), 0);
    }
}
