//! `sanloom up`: runs a lab on real Ethernet ports, or in virtual time, until it is terminated.

mod background;
mod ports;
mod simulated;

use crate::running::{self, Record, Running};
use ports::{FreePort, free_ports};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::paced::Pace;
use sanloom_console::quantity;
use sanloom_console::{interrupt, output};
use sanloom_fc::san::Lab;
use sanloom_lab::LoadedLab;
use sanloom_live::control::Control;
use sanloom_live::ports::PortError;
use sanloom_live::record::Source;
use sanloom_live::runtime::plan::{LabPaths, Options};
use sanloom_live::runtime::{Runtime, UpError};
use sanloom_live::state::Agreement;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Options of `sanloom up`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// Run the lab in virtual time, without Ethernet: its own hosts and workloads use the fabric
    #[arg(long, conflicts_with_all = ["switch", "apply", "reset", "print_qemu", "capture", "record"])]
    simulated: bool,
    /// Virtual seconds per second, for example 0.1 or 10; `max`: as fast as the machine permits
    #[arg(long, value_name = "RATIO", default_value = "1", requires = "simulated")]
    pace: Pace,
    /// Run only this switch of the lab, with its storage; the others run in other processes
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    /// Apply the changes of the lab file since the last start to the stored zones and addresses
    #[arg(long, conflicts_with = "reset")]
    apply: bool,
    /// Replace the stored zones and addresses with those of the lab file; volumes are kept
    #[arg(long)]
    reset: bool,
    /// Write `ready` and a newline to this descriptor when hosts can log in, and close it
    #[arg(long, value_name = "N")]
    ready_fd: Option<i32>,
    /// Print the QEMU arguments that connect a virtual machine to each free port, and end
    #[arg(long)]
    print_qemu: bool,
    #[command(flatten)]
    json: Json,
    /// Capture the port of a link, or a port such as sw1:0, to a file (pcapng); may be repeated
    #[arg(long, value_name = "PORT=FILE", value_parser = parse_capture)]
    capture: Vec<(String, PathBuf)>,
    /// Threads that share the work of Ethernet ports, and of iSCSI sessions with virtual disks; by
    /// default up to 4 for ports, if there are that many processors and at least 4 ports, and 1 for
    /// sessions
    #[arg(long, value_name = "N", value_parser = quantity::count::<usize>(1..=64))]
    threads: Option<usize>,
    /// Record the inputs and outputs of the protocol machines in a file, for `sanloom replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Filter of the log on standard error, for example info, debug or sanloom_live=debug
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log: String,
    /// Log one JSON object in each line
    #[arg(long)]
    log_json: bool,
    /// Run the instance in the background; the command ends when hosts can log in
    #[arg(long, conflicts_with_all = ["ready_fd", "print_qemu"])]
    detach: bool,
    /// Set by `--detach` for the process in the background: the file of its log
    #[arg(long, value_name = "FILE", hide = true)]
    background: Option<PathBuf>,
    #[cfg(feature = "surface")]
    #[command(flatten)]
    web: crate::web::WebArgs,
    #[cfg(feature = "surface")]
    #[command(flatten)]
    management: crate::management::ManagementArgs,
    #[command(flatten)]
    sets: Sets,
}

fn parse_capture(argument: &str) -> Result<(String, PathBuf), String> {
    let (link, file) = argument.split_once('=').ok_or("write it as PORT=FILE, for example server1-sw1=port.pcapng")?;
    Ok((link.to_owned(), file.into()))
}

/// Runs a lab.
///
/// # Errors
/// When the lab is invalid, or its ports cannot be opened.
pub fn run(args: &Args) -> Result<(), Failure> {
    let text = args.file.text()?;
    let loaded = interrupt::interruptible(|| sanloom_lab::load(&args.file.label(), &text, &args.sets.set))?;
    if !args.log_json || args.print_qemu {
        input::warnings_running(&loaded).for_each(input::show);
    }
    if args.print_qemu {
        let lab = &loaded.lab;
        let ports = free_ports(lab, args.switch.as_deref());
        return args.json.write_or_print(&ports, || ports.iter().map(FreePort::to_string).collect());
    }
    if args.json.json.is_some() {
        return Err(Failure::usage("--json requires --print-qemu; add it, or remove --json"));
    }
    if args.detach {
        return background::start(args, &loaded.lab, &text);
    }
    if args.background.is_some() {
        background::leave_terminal();
    }
    log_to_stderr(&args.log, args.log_json)?;
    log_warnings(args, &loaded);
    if args.simulated {
        return simulated::run(args, loaded);
    }
    let lab = Arc::new(loaded.lab);
    let agreement = match (args.apply, args.reset) {
        (true, _) => Agreement::Apply,
        (_, true) => Agreement::Reset,
        _ => Agreement::Ask,
    };
    let set = args.sets.set.iter().map(|set| format!("{}={}", set.key, set.value)).collect();
    let source = Source { label: args.file.label(), text, set };
    let record = args.record.clone().map(|path| (path, source));
    // Before anything is opened or written, because this fails if the lab is running already.
    let control = listen(&lab, args.switch.as_deref()).map_err(failure)?;
    let record_of_instance = record_of(&lab, args);
    let options = Options {
        switch: args.switch.clone(),
        agreement,
        record,
        captures: args.capture.clone(),
        threads: args.threads,
    };
    let mut runtime = Runtime::up(lab, &options).map_err(failure)?;
    #[cfg(feature = "surface")]
    let login = crate::web::Login::new(LabPaths::of(runtime.lab()).folder(), args.background.is_some());
    #[cfg(feature = "surface")]
    let (page, drawing) = page(args, runtime.shared_lab(), &control, &login, loaded.isolated)?;
    #[cfg(feature = "surface")]
    let management = management(args, runtime.lab(), &control, &login, &drawing)?;
    if let Some(number) = args.ready_fd {
        report_ready(number)?;
    }
    notify_service_manager();
    tracing::info!(lab = runtime.lab().name, ports = runtime.ethernet_ports(), "up");
    for (port, link) in runtime.unusable_ports() {
        tracing::warn!(port, link, "no host can use this port; add `ethernet = {{ carrier = \"dgram\" }}` to the link");
    }
    // Later versions of the lab file are read in the same manner.
    let label = args.file.label();
    let read = |text: &str, set: &[String]| {
        let later = set.iter().map(|set| input::parse_set(set)).collect::<Result<Vec<_>, _>>()?;
        let overrides = [&args.sets.set[..], &later].concat();
        sanloom_lab::load(&label, text, &overrides).map(|loaded| loaded.lab).map_err(|wrong| wrong.to_string())
    };
    let outcome = runtime.run(Some(control.bell()), |runtime| {
        let go_on = runtime.answer(&control, read);
        #[cfg(feature = "surface")]
        drawing.update(&runtime.shared_lab());
        go_on && !interrupt::requested()
    });
    #[cfg(feature = "surface")]
    drop((page, management));
    runtime.shut_down();
    drop(record_of_instance);
    tracing::info!("down");
    outcome.map_err(failure)?;
    match runtime.incomplete() {
        files if files.is_empty() => Ok(()),
        files => Err(Failure::environment(files.join("\n"))),
    }
}

/// Logs the warnings of a lab, if the log has lines of JSON. Otherwise they have been printed.
fn log_warnings(args: &Args, loaded: &LoadedLab) {
    for warning in input::warnings_running(loaded).filter(|_| args.log_json) {
        let (code, line) = (warning.code, warning.line);
        tracing::warn!(code, line, remedy = warning.remedy, "{}", warning.reason);
    }
}

/// Serves the page, if it is requested.
#[cfg(feature = "surface")]
fn page(
    args: &Args,
    lab: Arc<Lab>,
    control: &Control,
    login: &crate::web::Login,
    isolated: Vec<usize>,
) -> Result<(Option<crate::web::Page>, Arc<crate::web::Drawing>), Failure> {
    use crate::web::{Drawing, LiveFabric, Source};
    let drawing = Arc::new(Drawing::new(lab, isolated));
    let fabric = LiveFabric::new(control.local(), drawing.clone());
    let connect: sanloom_surface::web::Connect = Arc::new(move || Box::new(fabric.clone()));
    let kind = if args.simulated { "simulated" } else { "live" };
    let source = Source { connect, kind, results: Vec::new() };
    let page = args.web.serve(login, source)?;
    if let Some(page) = &page {
        tracing::info!(url = page.url(), "page");
    }
    Ok((page, drawing))
}

/// Serves the management interfaces of the switches, if they are requested.
#[cfg(feature = "surface")]
fn management(
    args: &Args,
    lab: &Lab,
    control: &Control,
    login: &crate::web::Login,
    drawing: &Arc<crate::web::Drawing>,
) -> Result<Option<crate::management::Management>, Failure> {
    let fabric = crate::web::LiveFabric::new(control.local(), drawing.clone());
    args.management.serve(login, lab, args.switch.as_deref(), &fabric)
}

/// Opens the control socket, unless this lab or the requested part of it is running already.
fn listen(lab: &Lab, switch: Option<&str>) -> Result<Control, UpError> {
    let lab_paths = LabPaths::of(lab);
    lab_paths.make()?;
    check_not_running(lab, switch)?;
    Ok(Control::listen(&lab_paths.control(switch), lab.live.metrics)?)
}

/// Returns an error if this lab or the requested part of it is running already.
fn check_not_running(lab: &Lab, switch: Option<&str>) -> Result<(), UpError> {
    let lab_paths = LabPaths::of(lab);
    // A process of the whole lab excludes those of its switches.
    let single = lab.switches.iter().map(|switch| Some(&*switch.name)).filter(|_| switch.is_none());
    for part in [None, switch].into_iter().chain(single) {
        let path = lab_paths.control(part);
        if Control::answers(&path) {
            return Err(PortError::InUse { path }.into());
        }
    }
    Ok(())
}

/// Writes the record for `sanloom ps`. The instance runs without it, too.
fn record_of(lab: &Lab, args: &Args) -> Option<Record> {
    let file = match args.file.path.as_path() {
        path if path == Path::new("-") => args.file.label(),
        path => std::path::absolute(path).map_or_else(|_| args.file.label(), |path| path.display().to_string()),
    };
    let running = Running {
        lab: lab.name.clone(),
        switch: args.switch.clone(),
        pid: std::process::id(),
        since_unix_s: running::now_unix_s(),
        file,
        control: LabPaths::of(lab).control(args.switch.as_deref()),
        log: args.background.clone(),
        simulated: args.simulated,
    };
    match running.record() {
        Ok(record) => Some(record),
        Err(error) => {
            tracing::warn!(%error, "`sanloom ps` will not list this instance: its record cannot be written");
            None
        }
    }
}

fn failure(error: UpError) -> Failure {
    match error.is_usage() {
        true => Failure::usage(error),
        false => Failure::environment(error),
    }
}

/// Writes `ready` to a descriptor of the parent process.
pub(super) fn report_ready(number: i32) -> Result<(), Failure> {
    let descriptor: Result<OwnedFd, _> = sanloom_live::sys::interface::inherited(number);
    let written = descriptor.and_then(|descriptor| File::from(descriptor).write_all(b"ready\n"));
    written.map_err(|error| Failure::environment(format_args!("cannot write to descriptor {number}: {error}")))
}

/// Reports to systemd that hosts can log in, if this process is a service of `Type=notify`.
pub(super) fn notify_service_manager() {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let send = || {
        let address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(&address)?,
        };
        UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address)
    };
    if let Err(error) = send() {
        tracing::warn!(%error, socket = ?address, "the service manager is not notified");
    }
}

/// Starts to log the events that pass `filter` on standard error.
pub(super) fn log_to_stderr(filter: &str, json: bool) -> Result<(), Failure> {
    let filter: Targets = filter.parse().map_err(|error| Failure::usage(format_args!("--log {filter}: {error}")))?;
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let registry = tracing_subscriber::registry().with(filter);
    // An error means that an earlier call has installed the subscriber.
    let _ = match json {
        true => registry.with(layer.json()).try_init(),
        false => registry.with(layer.with_ansi(output::colours())).try_init(),
    };
    Ok(())
}
