//! `sanloom trace record`: the requests of a simulated or running lab as a trace.

use super::convert;
use crate::instance;
use sanloom_api::control::{Answer, Request};
use sanloom_api::words::plural;
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::output;
use sanloom_console::outputs::Sets;
use sanloom_console::report::file;
use sanloom_console::run::{self, View};
use sanloom_fc::san::Lab;
use sanloom_sim::run::{Control, MAX_STEP_PS};
use sanloom_sim::workload::RequestOp;
use sanloom_sim::world::{LoggedRequest, World};
use sanloom_storage::trace::{Format, TraceOp, TraceRequest, TraceWriter};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `sanloom trace record`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    #[command(flatten)]
    sets: Sets,
    /// New file; `-` is standard output
    #[arg(value_name = "OUTPUT", default_value = "-")]
    output: PathBuf,
    /// Format of the new file; fio-3 keeps flushes and the names of the LUNs
    #[arg(long = "to", value_name = "FORMAT", default_value = "fio-3", value_parser = convert::writable())]
    to_format: String,
    /// Record only the requests of this host; repeat the option for several. With --live, also the
    /// WWPN of a port, or the iSCSI name of an initiator
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Record the requests that the storage systems of the running lab receive. The instance writes
    /// the file until the same command without OUTPUT ends the trace
    #[arg(long)]
    live: bool,
    /// Send the request to the instance that runs only this switch
    #[arg(long, value_name = "NAME", requires = "live")]
    switch: Option<String>,
}

/// Writer of the requests of a world.
struct Recorder<'a, W> {
    lab: &'a Lab,
    /// Indices of the recorded hosts; all if it is empty.
    hosts: Vec<u16>,
    writer: TraceWriter<W>,
    /// Numbers of LUNs in the order of their first requests, with their names.
    devices: BTreeMap<(u16, u16), (u32, String)>,
    error: Option<io::Error>,
}

impl<W: Write> Recorder<'_, W> {
    fn write(&mut self, requests: &[LoggedRequest]) -> Control {
        for LoggedRequest { at_ps, host, request } in requests {
            if !self.hosts.is_empty() && !self.hosts.contains(host) {
                continue;
            }
            let lun = request.lun;
            let storage = &self.lab.storage[usize::from(lun.storage)];
            let count = self.devices.len() as u32;
            let entry = self.devices.entry((lun.storage, lun.lun));
            let (device, name) = entry.or_insert_with(|| (count, format!("{}:lun{}", storage.name, lun.lun)));
            let block_bytes = u64::from(storage.luns[usize::from(lun.lun)].block_bytes);
            let request = TraceRequest {
                arrival_ps: *at_ps,
                device: *device,
                op: match request.op {
                    RequestOp::Read => TraceOp::Read,
                    RequestOp::Write => TraceOp::Write,
                    RequestOp::Flush => TraceOp::Flush,
                },
                offset_bytes: request.lba * block_bytes,
                length_bytes: request.bytes.into(),
                response_ps: None,
                think_ps: None,
            };
            if let Err(error) = self.writer.write(&request, name) {
                self.error = Some(error);
                return Control::Stop;
            }
        }
        Control::Continue
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.live {
        return record_live(args);
    }
    let Some(format) = Format::from_word(&args.to_format) else { return Err(Failure::usage("--to names the format")) };
    let lab = Arc::new(input::load(&args.file, &args.sets.set)?.lab);
    let mut hosts = Vec::new();
    for name in &args.hosts {
        let found = (0..).zip(&lab.hosts).find(|(_, host)| host.name == *name);
        let unknown =
            || Failure::usage(format_args!("--host: the lab has no host `{name}`; `sanloom show` lists them"));
        hosts.push(found.ok_or_else(unknown)?.0);
    }
    let mut count = 0;
    let written = file::write(&args.output, |out| {
        let writer = TraceWriter::new(out, format).map_err(io::Error::other)?;
        let mut recorder = Recorder { lab: &lab, hosts, writer, devices: BTreeMap::new(), error: None };
        let mut inspect = |world: &mut World| {
            let requests = world.hosts.request_log.take();
            count += requests.len() as u64;
            recorder.write(&requests)
        };
        let mut finished =
            run::run(&lab, View { bar: true, inspect: Some((MAX_STEP_PS, &mut inspect)), ..View::default() });
        let rest = finished.world.hosts.request_log.take();
        count += rest.len() as u64;
        recorder.write(&rest);
        match recorder.error {
            Some(error) => Err(error),
            None => recorder.writer.finish().map(drop),
        }
    });
    output::written(written)?;
    if count == 0 {
        output::note("note: the lab issued no request; add a workload");
    } else {
        output::note(&format!("{} recorded", plural(count, "request")));
    }
    Ok(())
}

/// Starts or ends the trace of a running lab.
fn record_live(args: &Args) -> Result<(), Failure> {
    let lab = input::load_running(&args.file, &args.sets.set)?.lab;
    // The path must be absolute, because the instance has its own working directory.
    let file = (args.output != Path::new("-")).then(|| std::path::absolute(&args.output)).transpose();
    let file =
        file.map_err(|error| Failure::environment(format_args!("cannot resolve the path of the trace: {error}")))?;
    let file = file.map(|path| path.display().to_string());
    let format = file.is_some().then(|| args.to_format.clone());
    if file.is_none() && !args.hosts.is_empty() {
        return Err(Failure::usage("--host: hosts are selected when a trace starts; add OUTPUT, or remove the option"));
    }
    let request = Request::Trace { file: file.clone(), format, hosts: args.hosts.clone() };
    match (&file, instance::command(&lab, args.switch.as_deref(), &request)?) {
        (Some(file), Answer::Done) => output::note(&format!("trace to {file} started")),
        (None, Answer::Traced { requests }) => {
            output::note(&format!("trace ended, {} recorded", plural(requests, "request")));
        }
        _ => return Err(instance::unexpected_answer()),
    }
    Ok(())
}
