//! Captures of chosen links, as pcapng and as a text timeline, written during the run.

use sanloom_console::exit::Failure;
use sanloom_console::report::format::clean;
use sanloom_console::run::Tap;
use sanloom_fc::san::Lab;
use sanloom_sim::capture::{Capture, Window};
use sanloom_sim::net::Observed;
use sanloom_sim::run::Control;
use sanloom_sim::trace::Trace;
use sanloom_sim::world::World;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes captures and timelines.
#[derive(Default)]
pub struct Recorder {
    capture: Option<(Capture, Sink)>,
    trace: Option<(Trace, Sink)>,
    links: Vec<u16>,
}

/// Destination of the bytes, and its first error.
struct Sink {
    path: PathBuf,
    out: Box<dyn Write>,
    error: Option<io::Error>,
}

impl Recorder {
    /// Captures these links into a file, in a part of the run.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn capture(&mut self, lab: &Lab, links: &[u16], window: Window, path: &Path) -> Result<(), Failure> {
        let mut sink = Sink::open(path)?;
        let mut begin = Vec::new();
        let capture = Capture::new(lab, links, &mut begin).within(window);
        sink.write(&begin);
        self.capture = Some((capture, sink));
        self.links.extend(links);
        Ok(())
    }

    /// Writes the timeline of this link into a file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn trace(&mut self, lab: &Lab, link: u16, path: &Path) -> Result<(), Failure> {
        let mut sink = Sink::open(path)?;
        let mut begin = String::new();
        let trace = Trace::new(lab, link, &mut begin);
        sink.write(begin.as_bytes());
        self.trace = Some((trace, sink));
        self.links.push(link);
        Ok(())
    }

    /// The links to watch.
    pub fn links(&self) -> Vec<u16> {
        let mut links = self.links.clone();
        links.sort_unstable();
        links.dedup();
        links
    }

    /// Flushes buffered bytes. Returns false if a pipe was closed by its reader.
    ///
    /// # Errors
    /// When a file could not be written, now or before.
    pub fn finish(self) -> Result<bool, Failure> {
        let mut whole = true;
        if let Some((capture, mut sink)) = self.capture {
            let mut rest = Vec::new();
            capture.finish(&mut rest);
            sink.write(&rest);
            whole &= sink.close()?;
        }
        if let Some((trace, mut sink)) = self.trace {
            let mut rest = String::new();
            trace.finish(&mut rest);
            sink.write(rest.as_bytes());
            whole &= sink.close()?;
        }
        Ok(whole)
    }
}

impl Tap for Recorder {
    fn take(&mut self, world: &World, observed: &[Observed]) -> Control {
        let mut stop = false;
        if let Some((capture, sink)) = &mut self.capture {
            let mut bytes = Vec::new();
            capture.add(world, observed, &mut bytes);
            stop |= sink.write(&bytes);
        }
        if let Some((trace, sink)) = &mut self.trace {
            let mut text = String::new();
            trace.add(world, observed, &mut text);
            stop |= sink.write(text.as_bytes());
        }
        if stop { Control::Stop } else { Control::Continue }
    }
}

impl Sink {
    fn open(path: &Path) -> Result<Sink, Failure> {
        let out: Box<dyn Write> = if path == Path::new("-") {
            Box::new(BufWriter::new(io::stdout()))
        } else {
            let file = File::create(path)
                .map_err(|error| Failure::environment(format_args!("cannot create {}: {error}", path.display())))?;
            Box::new(BufWriter::new(file))
        };
        Ok(Sink { path: path.to_owned(), out, error: None })
    }

    /// Returns whether a write has failed.
    fn write(&mut self, bytes: &[u8]) -> bool {
        if self.error.is_none() {
            self.error = self.out.write_all(bytes).err();
        }
        self.error.is_some()
    }

    fn close(mut self) -> Result<bool, Failure> {
        let flushed = match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        };
        match flushed {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) if self.path == Path::new("-") => {
                Err(Failure::environment(format_args!("cannot write to standard output: {error}")))
            }
            Err(error) => Err(Failure::environment(format_args!("cannot write {}: {error}", self.path.display()))),
        }
    }
}

/// Numbers of the links with these names; `all` means all.
///
/// # Errors
/// When there is no such link.
pub fn links(lab: &Lab, names: &[String]) -> Result<Vec<u16>, Failure> {
    let count = lab.links.len() as u16;
    let mut links = Vec::new();
    for name in names {
        if let Some(found) = (0..count).find(|link| lab.links[usize::from(*link)].name == *name) {
            links.push(found);
        } else if name == "all" {
            links.extend(0..count);
        } else {
            let known: Vec<String> = lab.links.iter().take(12).map(|link| clean(&link.name)).collect();
            let more = if lab.links.len() > known.len() { ", …" } else { "" };
            return Err(Failure::usage(format_args!(
                "the lab has no link `{}`; its links are {}{more}",
                clean(name),
                known.join(", ")
            )));
        }
    }
    Ok(links)
}
