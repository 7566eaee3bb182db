//! `sanloom show`: tables of the fabric of a lab, simulated or running.

use crate::instance;
use sanloom_api::control::{Answer, Request, ShowTable};
use sanloom_api::view::build::LiveWhich;
use sanloom_api::view::{PlaneWhich, View};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::report::terminal::view;
use sanloom_console::report::{file, json};
use sanloom_console::run;
use sanloom_console::{interrupt, output};
use sanloom_fc::config::Picos;
use sanloom_fc::san::Lab;
use sanloom_sim::view::{self as tables, Which};
use std::io::{IsTerminal, stdout};
use std::sync::Arc;
use std::time::Duration;

/// Options of `sanloom show`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// The table to show
    #[arg(value_enum, value_name = "TABLE")]
    what: What,
    /// Simulated time since the workloads began, with its unit, for example 500ms; faults of the
    /// lab are included [default: when every port has logged in and no workload has begun]
    #[arg(long, value_name = "TIME", value_parser = sanloom_lab::parse_time)]
    at: Option<Picos>,
    /// Show only this switch, with its own view of the name server and the zones
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    #[command(flatten)]
    sets: Sets,
    /// Show the running instance of the lab (`sanloom up`) instead of a simulation
    #[arg(long, conflicts_with = "at")]
    live: bool,
    /// Show the running instance repeatedly until Ctrl-C, at most ten times per second [default
    /// interval: 1s]
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1s",
        value_parser = sanloom_lab::parse_time,
        conflicts_with = "at"
    )]
    watch: Option<Picos>,
    #[command(flatten)]
    json: Json,
}

/// The tables.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum What {
    /// The switches: domain, ports, logins, requests
    Switch,
    /// Logins: port, address, names
    Flogi,
    /// The name server: addresses, names, types, features
    Ns,
    /// Host adapters that have registered with the management service: model, driver, ports
    Fdmi,
    /// The effective zones, and which of their members are logged in
    Zone,
    /// Domains, principal switch and ISLs, with the reason if an ISL is isolated
    Fabric,
    /// Paths between domains
    Routes,
    /// The ports of the switches: use, speed, credits, frames, discards
    Ports,
    /// The ports of hosts and storage systems: names, addresses, and the switch, loop or node at
    /// the other end of the cable
    Nodes,
    /// The event log: links, logins, switches, zones, operators
    Events,
    /// The LUNs of a running instance: medium, masks, reservations (with --live)
    Luns,
    /// Target port groups of a running instance, and their states (with --live)
    Groups,
    /// All counters of a running instance (with --live)
    Counters,
    /// Frame faults that `sanloom port inject` has set in a running instance (with --live)
    Injections,
    /// The captures of a running instance, also those that a full disk has ended (with --live)
    Captures,
    /// The virtual disks of a running instance, and its pools (with --live)
    Volumes,
    /// The back ends of virtual disks, and the paths to them (with --live)
    Paths,
    /// The iSCSI sessions of hosts (with --live)
    Sessions,
    /// Counters of virtual disks and back ends (with --live)
    Stats,
    /// The links of all planes: ends, rate, state
    Links,
    /// Ethernet switches with their memory; ports and interfaces with frames, pauses, marks, queues
    /// and discards
    Ethernet,
    /// TCP connections of iSCSI and FCIP: state, windows, round-trip time, repeated segments
    Connections,
    /// InfiniBand switches and adapters with GUIDs and LIDs; ports with routes, packets, credit of
    /// each lane, waits for credit, discards
    Infiniband,
    /// SRP channels: requests, responses, bytes moved by RDMA
    Channels,
}

/// Shows a table.
///
/// # Errors
/// When the lab is invalid, has no switch of that name, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let is_live = args.live || args.watch.is_some();
    let load = if is_live { input::load_running } else { input::load_to_explain };
    let loaded = load(&args.file, &args.sets.set)?;
    let lab = Arc::new(loaded.lab);
    let on = args.switch.as_deref().map(|name| number_of(&lab, name)).transpose()?;
    if let Some(at) = args.at.filter(|at| *at > lab.run.duration) {
        let end = lab.run.duration;
        return Err(Failure::usage(format_args!("the run ends at {end}, before {at}: choose an earlier --at")));
    }
    if let Some(interval) = args.watch {
        return watch(&lab, args, Duration::from_nanos(interval.0 / 1_000).max(MIN_INTERVAL));
    }
    let view = match args.what.which() {
        _ if is_live => live(&lab, args)?,
        ShowTable::Fabric(which) => tables::of(&run::world_at(&lab, args.at)?, which, on),
        ShowTable::Plane(which) => tables::of_planes(&run::world_at(&lab, args.at)?, which),
        ShowTable::Live(_) => {
            return Err(Failure::usage("a simulation has no such table; use --live with a running instance"));
        }
    };
    args.json.write_or_print(&view, || match is_live {
        true => view::render_live(&view, output::width()),
        false => view::render(&view, output::width()),
    })
}

/// Minimum interval of `--watch`.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Clears a terminal and moves its cursor to the first line.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints the table of the running instance repeatedly. Ctrl-C is the normal end.
fn watch(lab: &Lab, args: &Args, interval: Duration) -> Result<(), Failure> {
    let is_terminal = stdout().is_terminal();
    let mut is_first = true;
    while !interrupt::requested() {
        let view = live(lab, args)?;
        let text = view::render_live(&view, output::width());
        let separator = match (is_terminal, is_first) {
            (true, _) => CLEAR,
            (false, true) => "",
            (false, false) => "\n",
        };
        is_first = false;
        let written = match &args.json.json {
            Some(path) if args.json.is_stdout() => file::write(path, |out| json::write_line(out, &view)),
            Some(path) => file::write(path, |out| json::write_value(out, &view)),
            None => file::stdout(|out| write!(out, "{separator}{text}")),
        };
        match written {
            // The reader of the pipe has ended.
            Err(error) if error.is_closed_pipe() => return Ok(()),
            written => written?,
        }
        if args.json.json.is_some() && !args.json.is_stdout() {
            output::print(&format!("{separator}{text}"))?;
        }
        interrupt::pause(interval);
    }
    Ok(())
}

/// Returns the table of the running instance. If each switch of the lab runs in its own process,
/// `--switch` selects the process.
fn live(lab: &Lab, args: &Args) -> Result<View, Failure> {
    let request = Request::Show { table: args.what.which(), switch: args.switch.clone() };
    match instance::ask(lab, args.switch.as_deref(), &request)? {
        Answer::View(view) => Ok(view),
        Answer::Failed(error) => Err(instance::rejected(error)),
        _ => Err(instance::unexpected_answer()),
    }
}

fn number_of(lab: &Lab, name: &str) -> Result<u16, Failure> {
    let found = lab.switches.iter().position(|switch| switch.name == name);
    found.map(|number| number as u16).ok_or_else(|| {
        let names: Vec<&str> = lab.switches.iter().map(|switch| switch.name.as_str()).collect();
        let shown = match names.len() {
            0..=12 => names.join(", "),
            n => format!("{} and {} more", names[..8].join(", "), n - 8),
        };
        Failure::usage(format_args!("the lab has no switch `{name}`; it has {shown}"))
    })
}

impl What {
    fn which(self) -> ShowTable {
        let which = match self {
            What::Switch => Which::Switch,
            What::Flogi => Which::Flogi,
            What::Ns => Which::Ns,
            What::Fdmi => Which::Fdmi,
            What::Zone => Which::Zone,
            What::Fabric => Which::Fabric,
            What::Routes => Which::Routes,
            What::Ports => Which::Ports,
            What::Nodes => Which::Nodes,
            What::Events => Which::Events,
            What::Luns => return ShowTable::Live(LiveWhich::Luns),
            What::Groups => return ShowTable::Live(LiveWhich::Groups),
            What::Counters => return ShowTable::Live(LiveWhich::Counters),
            What::Injections => return ShowTable::Live(LiveWhich::Injections),
            What::Captures => return ShowTable::Live(LiveWhich::Captures),
            What::Volumes => return ShowTable::Live(LiveWhich::Volumes),
            What::Paths => return ShowTable::Live(LiveWhich::Paths),
            What::Sessions => return ShowTable::Live(LiveWhich::Sessions),
            What::Stats => return ShowTable::Live(LiveWhich::Stats),
            What::Links => return ShowTable::Plane(PlaneWhich::Links),
            What::Ethernet => return ShowTable::Plane(PlaneWhich::Ethernet),
            What::Connections => return ShowTable::Plane(PlaneWhich::Connections),
            What::Infiniband => return ShowTable::Plane(PlaneWhich::Infiniband),
            What::Channels => return ShowTable::Plane(PlaneWhich::Channels),
        };
        ShowTable::Fabric(which)
    }
}
