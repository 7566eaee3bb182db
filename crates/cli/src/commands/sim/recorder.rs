//! Captures of chosen links, as pcapng and as a text timeline, written during the run.

use sanloom_console::exit::Failure;
use sanloom_console::report::format::clean;
use sanloom_console::run::{Tap, Watch};
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
    watch: Watch,
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
    pub fn capture(&mut self, lab: &Lab, links: &Watch, window: Window, path: &Path) -> Result<(), Failure> {
        let mut sink = Sink::open(path)?;
        let mut begin = Vec::new();
        let capture = Capture::new(lab, &links.links, &mut begin);
        let capture = capture.with_ethernet(lab, &links.ethernet_links, &mut begin);
        let capture = capture.with_infiniband(lab, &links.infiniband_links, &mut begin).within(window);
        sink.write(&begin);
        self.capture = Some((capture, sink));
        self.watch.links.extend(&links.links);
        self.watch.ethernet_links.extend(&links.ethernet_links);
        self.watch.infiniband_links.extend(&links.infiniband_links);
        Ok(())
    }

    /// Writes the timeline of a link into a file.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn trace(&mut self, lab: &Lab, link: LinkOf, path: &Path) -> Result<(), Failure> {
        let mut sink = Sink::open(path)?;
        let mut begin = String::new();
        let trace = match link {
            LinkOf::FibreChannel(link) => Trace::new(lab, link, &mut begin),
            LinkOf::Ethernet(link) => Trace::of_ethernet(lab, link, &mut begin),
            LinkOf::Infiniband(link) => Trace::of_infiniband(lab, link, &mut begin),
        };
        sink.write(begin.as_bytes());
        self.trace = Some((trace, sink));
        link.add_to(&mut self.watch);
        Ok(())
    }

    /// The links to watch.
    pub fn watch(&self) -> Watch {
        let mut watch = self.watch.clone();
        for links in [&mut watch.links, &mut watch.ethernet_links, &mut watch.infiniband_links] {
            links.sort_unstable();
            links.dedup();
        }
        watch
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

/// A link with its plane, by its number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkOf {
    FibreChannel(u16),
    Ethernet(u16),
    Infiniband(u16),
}

impl LinkOf {
    /// All links of a lab with their names.
    fn all(lab: &Lab) -> impl Iterator<Item = (LinkOf, &String)> {
        let fibre_channel = (0..).zip(&lab.links).map(|(number, link)| (LinkOf::FibreChannel(number), &link.name));
        let ethernet = (0..).zip(&lab.ethernet_links).map(|(number, link)| (LinkOf::Ethernet(number), &link.name));
        let infiniband = (0..).zip(&lab.infiniband.links);
        let infiniband = infiniband.map(|(number, link)| (LinkOf::Infiniband(number), &link.name));
        fibre_channel.chain(ethernet).chain(infiniband)
    }

    /// Returns the link with a name; `None` if there is none.
    fn find(lab: &Lab, name: &str) -> Option<LinkOf> {
        LinkOf::all(lab).find_map(|(link, own)| (own == name).then_some(link))
    }

    fn add_to(self, watch: &mut Watch) {
        match self {
            LinkOf::FibreChannel(link) => watch.links.push(link),
            LinkOf::Ethernet(link) => watch.ethernet_links.push(link),
            LinkOf::Infiniband(link) => watch.infiniband_links.push(link),
        }
    }
}

/// Returns the link with a name.
///
/// # Errors
/// When there is no such link.
pub fn link(lab: &Lab, name: &str) -> Result<LinkOf, Failure> {
    LinkOf::find(lab, name).ok_or_else(|| {
        let known = || LinkOf::all(lab).map(|(_, name)| clean(name));
        let first: Vec<String> = known().take(12).collect();
        let more = if known().count() > first.len() { ", …" } else { "" };
        Failure::usage(format_args!("the lab has no link `{}`; its links are {}{more}", clean(name), first.join(", ")))
    })
}

/// Numbers of the links with these names; `all` means all.
///
/// # Errors
/// When there is no such link.
pub fn links(lab: &Lab, names: &[String]) -> Result<Watch, Failure> {
    let mut watch = Watch::default();
    for name in names {
        if name == "all" && LinkOf::find(lab, name).is_none() {
            LinkOf::all(lab).for_each(|(link, _)| link.add_to(&mut watch));
        } else {
            link(lab, name)?.add_to(&mut watch);
        }
    }
    Ok(watch)
}
