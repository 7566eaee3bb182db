//! `sanloom up`: runs a lab on real Ethernet ports until it is terminated.

mod background;

use crate::instance;
use crate::running::{self, Record, Running};
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::Which;
use sanloom_api::view::{Table, View};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::{interrupt, output};
use sanloom_fc::config::{Carrier, Node};
use sanloom_fc::san::Lab;
use sanloom_live::control::Control;
use sanloom_live::ports::PortError;
use sanloom_live::record::Source;
use sanloom_live::runtime::plan::{LabPaths, Options, mac_of};
use sanloom_live::runtime::{Runtime, UpError};
use sanloom_live::state::Agreement;
use sanloom_wire::Wwpn;
use sanloom_wire::ether::MacAddr;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Write};
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
    let loaded = sanloom_lab::load(&args.file.label(), &text, &args.sets.set)?;
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
    for warning in input::warnings_running(&loaded).filter(|_| args.log_json) {
        let (code, line) = (warning.code, warning.line);
        tracing::warn!(code, line, remedy = warning.remedy, "{}", warning.reason);
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
    let options = Options { switch: args.switch.clone(), agreement, record, captures: args.capture.clone() };
    let mut runtime = Runtime::up(lab, &options).map_err(failure)?;
    #[cfg(feature = "surface")]
    let login = crate::web::Login::new(LabPaths::of(runtime.lab()).folder(), args.background.is_some());
    #[cfg(feature = "surface")]
    let (page, drawing) = page(args, &runtime, &control, &login, loaded.isolated)?;
    #[cfg(feature = "surface")]
    let management = management(args, &runtime, &control, &login, &drawing)?;
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

/// Serves the page, if it is requested.
#[cfg(feature = "surface")]
fn page(
    args: &Args,
    runtime: &Runtime,
    control: &Control,
    login: &crate::web::Login,
    isolated: Vec<usize>,
) -> Result<(Option<crate::web::Page>, Arc<crate::web::Drawing>), Failure> {
    use crate::web::{Drawing, LiveFabric, Source};
    let drawing = Arc::new(Drawing::new(runtime.shared_lab(), isolated));
    let (client, of_lab) = (control.local(), drawing.clone());
    let connect: sanloom_surface::web::Connect =
        Arc::new(move || Box::new(LiveFabric { client: client.clone(), drawing: of_lab.clone() }));
    let source = Source { connect, kind: "live", results: Vec::new() };
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
    runtime: &Runtime,
    control: &Control,
    login: &crate::web::Login,
    drawing: &Arc<crate::web::Drawing>,
) -> Result<Option<crate::management::Management>, Failure> {
    let (client, drawing) = (control.local(), drawing.clone());
    let connect = move || crate::web::LiveFabric { client: client.clone(), drawing: drawing.clone() };
    args.management.serve(login, runtime.lab(), args.switch.as_deref(), connect)
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
fn notify_service_manager() {
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

/// A free port, and the QEMU arguments of a virtual machine at this port.
#[derive(Serialize)]
struct FreePort {
    link: String,
    /// Argument of `-netdev`.
    netdev: String,
    /// Argument of `-device`.
    device: String,
}

impl fmt::Display for FreePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}\n-netdev {} -device {}", self.link, self.netdev, self.device)
    }
}

/// The free Ethernet ports whose other end is a host or storage system, and the stations of
/// segments without a switch. Without a name of a switch, those of all.
fn free_ports(lab: &Lab, switch: Option<&str>) -> Vec<FreePort> {
    let lab_paths = LabPaths::of(lab);
    let here = |node: &Node| match node {
        Node::Switch(number) => switch.is_none_or(|name| lab.switches[usize::from(*number)].name == name),
        Node::Host(_) | Node::Storage(_) | Node::Loop(_) => false,
    };
    let links = lab.live.ethernet.iter().filter_map(|(index, ethernet)| {
        let link = &lab.links[*index];
        let end = link.ends.iter().find(|end| !matches!(end.node, Node::Switch(_)))?;
        let ours = link.ends.iter().any(|end| here(&end.node));
        ours.then(|| (link.name.as_str(), ethernet, port_name(lab, end.node, end.port)))
    });
    let stations = lab.live.stations.iter().filter(|_| switch.is_none());
    let stations = stations.map(|(number, ethernet)| {
        (&*lab.storage[usize::from(*number)].name, ethernet, port_name(lab, Node::Storage(*number), 0))
    });
    let mut taken = BTreeSet::new();
    let lit = lit_links(lab, switch);
    let mut ports = Vec::new();
    for (number, (name, ethernet, port_name)) in links.chain(stations).enumerate() {
        let mac = own_mac(port_name, number, &mut taken);
        let (own, peer) = lab_paths.sockets(name, ethernet, false);
        if lit.contains(name) || ethernet.carrier == Carrier::Datagram && is_bound(&peer) {
            continue;
        }
        let (own, peer) = (own.display(), peer.display());
        let netdev = match ethernet.carrier {
            Carrier::Datagram => {
                format!("dgram,id=n{number},local.type=unix,local.path={peer},remote.type=unix,remote.path={own}")
            }
            Carrier::Stream => format!("stream,id=n{number},server=off,addr.type=unix,addr.path={own}"),
            Carrier::Tap | Carrier::Packet | Carrier::Descriptor => continue,
        };
        let device = format!("virtio-net-pci,netdev=n{number},host_mtu=2500,mac={mac}");
        ports.push(FreePort { link: name.to_owned(), netdev, device });
    }
    ports
}

/// Links of a running instance that have a peer; empty if none is running.
fn lit_links(lab: &Lab, switch: Option<&str>) -> BTreeSet<String> {
    let request = Request::Show { table: ShowTable::Fabric(Which::Ports), switch: None };
    match instance::ask(lab, switch, &request) {
        Ok(Answer::View(View { table: Table::Ports(view), .. })) => {
            view.ports.into_iter().filter(|row| row.light).map(|row| row.link).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// The socket is in use, regardless of its peer.
fn is_bound(path: &Path) -> bool {
    let tried = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    !tried.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

/// The name of the port at the other end of a link.
fn port_name(lab: &Lab, node: Node, port: u16) -> Option<Wwpn> {
    match node {
        Node::Host(host) => lab.hosts[usize::from(host)].hbas.get(usize::from(port)).map(|hba| hba.wwpn),
        Node::Storage(storage) => lab.storage[usize::from(storage)].ports.get(usize::from(port)).map(|port| port.wwpn),
        Node::Switch(_) | Node::Loop(_) => None,
    }
}

/// An Ethernet address that no other line has. From a name such as 20:00:52:54:00:00:00:01 it is
/// the last six bytes, because Linux makes the port name of that address. Without an address of its
/// own each virtual machine would get the same one from QEMU.
fn own_mac(port_name: Option<Wwpn>, number: usize, taken: &mut BTreeSet<MacAddr>) -> MacAddr {
    let spare = (number..=usize::from(u16::MAX)).map(|number| {
        let [high, low] = (number as u16).to_be_bytes();
        MacAddr([0x52, 0x54, 0x00, 0xfc, high, low])
    });
    let wanted = port_name.map(mac_of).into_iter().chain(spare);
    let free = wanted.clone().find(|mac| !taken.contains(mac)).unwrap_or(MacAddr([0x52, 0x54, 0, 0xfc, 0, 0]));
    taken.insert(free);
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_an_address_of_its_own() {
        let mut taken = BTreeSet::new();
        let mut mac = |name: u64, number| own_mac(Some(Wwpn(name)), number, &mut taken).to_string();
        assert_eq!(mac(0x2000_5254_0000_0001, 0), "52:54:00:00:00:01");
        assert_eq!(mac(0x5000_0972_0800_0001, 1), "02:72:08:00:00:01");
        // The same last bytes as before.
        assert_eq!(mac(0x5001_0972_0800_0001, 2), "52:54:00:fc:00:02");
        assert_eq!(own_mac(None, 3, &mut BTreeSet::new()).to_string(), "52:54:00:fc:00:03");
    }
}
