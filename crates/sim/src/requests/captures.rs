//! Captures of links of a running world, into files or for clients: [`Captures`].

use super::port_named;
use crate::capture::Capture;
use crate::world::operator;
use crate::world::{World, ethernet};
use sanloom_api::control::{Answer, RequestError};
use sanloom_api::view::{CaptureRow, CapturesView};
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Receiver of the frames of a capture. Each call of `write` passes one whole block of the file; an
/// error ends the capture.
pub type Sink = Box<dyn Write + Send>;

/// Maximum number of captures at a time.
const MAX_CAPTURES: usize = 16;

/// Captures that run, and those that a write error has ended.
#[derive(Default)]
pub(super) struct Captures {
    running: Vec<Running>,
    failed: Vec<CaptureRow>,
}

/// A link that is captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Watched {
    FibreChannel(u16),
    Ethernet(u16),
}

struct Running {
    link: Watched,
    /// The file is a stream to a client.
    is_stream: bool,
    row: CaptureRow,
    capture: Capture,
    out: Sink,
}

impl Captures {
    /// Starts to write the frames of a link from now on. With a sink, `file` is only its name.
    pub fn start(&mut self, world: &mut World, name: &str, file: &str, sink: Option<Sink>) -> Answer {
        match self.begin(world, name, file, sink) {
            Ok(()) => Answer::Done,
            Err(error) => Answer::Failed(error),
        }
    }

    fn begin(&mut self, world: &mut World, name: &str, file: &str, sink: Option<Sink>) -> Result<(), RequestError> {
        let link = link_named(world, name)?;
        if self.running.iter().any(|running| running.link == link) {
            return Err(format!("`{name}` is captured already; end that capture first").into());
        }
        if self.running.len() >= MAX_CAPTURES {
            return Err(format!("{MAX_CAPTURES} captures run, which is the maximum; end one of them").into());
        }
        let mut head = Vec::new();
        let capture = match link {
            Watched::FibreChannel(link) => Capture::new(&world.lab, &[link], &mut head),
            Watched::Ethernet(link) => {
                Capture::new(&world.lab, &[], &mut head).with_ethernet(&world.lab, &[link], &mut head)
            }
        };
        let failed = |error: io::Error| RequestError::environment(format!("cannot write the capture {file}: {error}"));
        let is_stream = sink.is_some();
        let mut out = match sink {
            Some(sink) => sink,
            None => Box::new(BufWriter::new(File::create(file).map_err(failed)?)),
        };
        out.write_all(&head).and_then(|()| out.flush()).map_err(failed)?;
        self.failed.retain(|row| row.port != name);
        let row = CaptureRow { port: name.to_owned(), file: file.to_owned(), ..CaptureRow::default() };
        // Records from before belong to the other captures.
        self.advance(world);
        match link {
            Watched::FibreChannel(link) => world.watch(link),
            Watched::Ethernet(link) => ethernet::watch(world, link),
        }
        self.running.push(Running { link, is_stream, row, capture, out });
        if let Some(operator) = operator::state_mut(world) {
            operator.is_captured = true;
        }
        Ok(())
    }

    /// Ends the capture of a link.
    pub fn stop(&mut self, world: &mut World, name: &str) -> Answer {
        let link = match link_named(world, name) {
            Ok(link) => link,
            Err(error) => return Answer::Failed(error),
        };
        self.advance(world);
        if let Some(at) = self.running.iter().position(|running| running.link == link) {
            let running = self.running.remove(at);
            self.unwatch(world, running.link);
            return match running.end() {
                Ok(row) => Answer::Captured { frames: row.frames },
                Err(row) => Answer::Failed(incomplete(&row)),
            };
        }
        match self.failed.iter().position(|row| row.port == name) {
            Some(at) => Answer::Failed(incomplete(&self.failed.remove(at))),
            None => Answer::failed(format!("no capture of `{name}` is running")),
        }
    }

    /// Writes the frames since the last call.
    pub fn advance(&mut self, world: &mut World) {
        if !operator::state(world).is_some_and(|operator| operator.is_captured) {
            return;
        }
        let observed = world.net.fc.recorder.take_observed();
        let mut ended = Vec::new();
        for (at, running) in self.running.iter_mut().enumerate() {
            let mut bytes = Vec::new();
            running.capture.add(world, &observed, &mut bytes);
            if let Err(error) = write(&mut running.out, &mut running.row, &bytes) {
                running.row.error = Some(error.to_string());
                ended.push(at);
            }
        }
        world.net.ethernet.forget_observed();
        world.iscsi.iter_mut().for_each(|iscsi| iscsi.forget());
        world.fcip.iter_mut().for_each(|fcip| fcip.forget());
        world.net.fc.fcoe.forget();
        for at in ended.into_iter().rev() {
            let running = self.running.remove(at);
            self.unwatch(world, running.link);
            // The client of a stream has disconnected.
            if !running.is_stream {
                self.failed.push(running.row);
            }
        }
    }

    /// Ends the record of a link whose capture has ended, and of everything that the other captures
    /// do not need.
    fn unwatch(&self, world: &mut World, link: Watched) {
        match link {
            Watched::FibreChannel(link) => {
                for lane in [2 * u32::from(link), 2 * u32::from(link) + 1] {
                    world.net.fc.lane_mut(lane).watched = false;
                }
            }
            Watched::Ethernet(link) => {
                world.net.ethernet.watch(link, false);
                if !world.net.ethernet.is_watched() {
                    world.net.fc.fcoe.unwatch();
                    world.iscsi.iter_mut().for_each(|iscsi| iscsi.unwatch());
                    world.fcip.iter_mut().for_each(|fcip| fcip.unwatch());
                }
            }
        }
        if self.running.is_empty()
            && let Some(operator) = operator::state_mut(world)
        {
            operator.is_captured = false;
        }
    }

    /// Rows of the table of captures: those that run, then those that have failed.
    pub fn view(&self) -> CapturesView {
        let running = self.running.iter().map(|running| &running.row);
        CapturesView { captures: running.chain(&self.failed).cloned().collect() }
    }

    /// Ends all captures. Returns a description of each whose file is not complete.
    pub fn end(&mut self, world: &mut World) -> Vec<String> {
        self.advance(world);
        let failed = self.running.drain(..).filter_map(|running| running.end().err());
        let failed: Vec<CaptureRow> = failed.collect();
        self.failed.drain(..).chain(failed).map(|row| incomplete(&row).reason).collect()
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        for running in self.running.drain(..) {
            // The run is over, so nobody receives an error.
            let _ = running.end();
        }
    }
}

impl Running {
    /// Writes the rest. Returns the row with its error if the file is not complete.
    fn end(self) -> Result<CaptureRow, CaptureRow> {
        let Running { is_stream, mut row, capture, mut out, .. } = self;
        let mut rest = Vec::new();
        capture.finish(&mut rest);
        match write(&mut out, &mut row, &rest) {
            Err(error) if !is_stream => Err(CaptureRow { error: Some(error.to_string()), ..row }),
            _ => Ok(row),
        }
    }
}

/// Writes whole blocks of pcapng, and counts them.
fn write(out: &mut Sink, row: &mut CaptureRow, mut blocks: &[u8]) -> io::Result<()> {
    let length = |blocks: &[u8]| Some(u32::from_le_bytes(blocks.get(4..8)?.try_into().ok()?) as usize);
    while let Some((block, rest)) = length(blocks).and_then(|length| blocks.split_at_checked(length.max(1))) {
        out.write_all(block)?;
        row.frames += 1;
        blocks = rest;
    }
    out.flush()
}

fn incomplete(row: &CaptureRow) -> RequestError {
    let CaptureRow { port, file, error, .. } = row;
    let error = error.as_deref().unwrap_or("unknown");
    RequestError::environment(format!(
        "the capture {file} of {port} is not complete: {error}; free space, and start it again"
    ))
}

/// Returns the link with this name, or the one of a port such as `sw1:0`.
fn link_named(world: &World, name: &str) -> Result<Watched, RequestError> {
    let of = |mut names: &mut dyn Iterator<Item = &str>| {
        (0u16..).zip(&mut names).find(|(_, one)| *one == name).map(|(at, _)| at)
    };
    let lab = &world.lab;
    let is_virtual = |link: u16| lab.links[usize::from(link)].fcoe.is_some();
    if let Some(link) = of(&mut lab.ethernet_links.iter().map(|link| &*link.name)) {
        return Ok(Watched::Ethernet(link));
    }
    if of(&mut lab.infiniband.links.iter().map(|link| &*link.name)).is_some() {
        return Err(format!(
            "`{name}` is a link of InfiniBand, whose messages are kept from the start of a run only; use `sanloom sim \
             LAB --pcap FILE --capture {name}`"
        )
        .into());
    }
    let found = match of(&mut lab.links.iter().map(|link| &*link.name)) {
        Some(link) => link,
        None if name.contains(':') => port_named(world, name)?.link,
        None => return Err(format!("there is no port or link `{name}`; write a port such as sw1:0").into()),
    };
    match is_virtual(found) {
        true => Err(format!(
            "the frames of `{name}` travel over Ethernet; name one of its Ethernet links: {}",
            lab.ethernet_links.iter().map(|link| &*link.name).collect::<Vec<_>>().join(", ")
        )
        .into()),
        false => Ok(Watched::FibreChannel(found)),
    }
}
