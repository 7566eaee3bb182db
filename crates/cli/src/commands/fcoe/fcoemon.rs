//! `fcoemon`: starts and stops FCoE instances according to the files of a folder and to requests of
//! `fcoeadm` (the Open-FCoE slides).
//!
//! ```text
//!   cfg-IF exists, FCOE_ENABLE="yes"      ──▶ sanloom initiator --port IF …     file changes ──▶ stopped and restarted
//!   fcoeadm -c IF                         ──▶ the same, without a file          file removed ──▶ stopped
//!   fcoeadm -d IF                         ──▶ stopped until -c or a change of its file
//!   an instance ends by itself            ──▶ restarted after one second
//!   AUTO_VLAN="yes", IF is an interface   ──▶ an instance IF.VLAN-fcoe for each VLAN that forwarders report
//! ```
//!
//! Each instance is a separate process, which follows the events of its link, its VLAN and DCBX.
//! The failure of one instance therefore does not affect others. If an interface has several
//! instances, a `Watch` discovers its VLANs and runs DCBX for all of them.

use super::files::{self, Wanted};
use super::watch::Watch;
use super::{MONITOR, RunFolder};
use crate::commands::up::log_to_stderr;
use sanloom_api::control::{Answer, Request};
use sanloom_api::fcoe::FcoeRequest;
use sanloom_console::exit::Failure;
use sanloom_console::{interrupt, output};
use sanloom_live::control::{Control, ControlRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Options of `fcoemon`.
#[derive(clap::Args, Debug)]
#[command(version, disable_version_flag = true)]
pub struct Args {
    /// Stay in the foreground
    #[arg(short, long)]
    foreground: bool,
    /// Log more
    #[arg(short, long)]
    debug: bool,
    /// Display version information
    #[arg(short, long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    /// Folder with the files cfg-IF
    #[arg(long, value_name = "FOLDER", default_value = "/etc/fcoe")]
    config_folder: PathBuf,
    /// Write `ready` and a newline to this descriptor when requests of fcoeadm are accepted, and
    /// close it
    #[arg(long, value_name = "N", requires = "foreground")]
    ready_fd: Option<i32>,
    #[command(flatten)]
    run: RunFolder,
}

/// Interval between checks of files and processes.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Delay before an instance that ended by itself is restarted.
const AGAIN: Duration = Duration::from_secs(1);
/// Maximum time for the logout of an instance.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Maximum time for an instance to answer a request while the monitor waits.
const PROMPT: Duration = Duration::from_millis(200);

/// A running instance.
struct Running {
    child: Child,
    plan: InstancePlan,
    /// Last DCBX permission sent to the instance.
    sent_permission: Option<bool>,
}

/// Parameters of an instance.
#[derive(Clone, PartialEq, Eq)]
struct InstancePlan {
    interface: String,
    /// True if the instance belongs to one VLAN of an interface with a [`Watch`].
    watched: bool,
    wanted: Wanted,
}

struct Monitor {
    run: RunFolder,
    running: BTreeMap<String, Running>,
    /// Watches of interfaces with several VLANs.
    watches: BTreeMap<String, Watch>,
    /// Content of the files at the last check.
    files: BTreeMap<String, Result<Wanted, String>>,
    /// Instances created by `fcoeadm -c`.
    made: BTreeMap<String, Wanted>,
    /// Instances stopped by `fcoeadm -d` although their file still enables them.
    ended: BTreeSet<String>,
    /// Earliest time at which an instance may be restarted.
    not_before: BTreeMap<String, Instant>,
}

/// Runs until the monitor is terminated.
///
/// # Errors
/// When the sockets cannot be opened, or another monitor is running.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.run.make()?;
    if !args.foreground {
        return into_background();
    }
    log_to_stderr(if args.debug { "debug" } else { "info" }, false)?;
    let control = Control::listen(&args.run.control(MONITOR), None).map_err(Failure::environment)?;
    if let Some(number) = args.ready_fd {
        crate::commands::up::report_ready(number)?;
    }
    let mut monitor = Monitor {
        run: args.run.clone(),
        running: BTreeMap::new(),
        watches: BTreeMap::new(),
        files: BTreeMap::new(),
        made: BTreeMap::new(),
        ended: BTreeSet::new(),
        not_before: BTreeMap::new(),
    };
    while !interrupt::requested() {
        monitor.apply_files(files::read(&args.config_folder));
        monitor.reconcile();
        for ControlRequest { request, answer, .. } in control.take() {
            let reply = monitor.answer(request);
            monitor.reconcile();
            let _ = answer.send(reply);
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    let names = monitor.running.keys().cloned().collect();
    monitor.end(names);
    Ok(())
}

/// Starts the same command in its own process group. Returns when that process answers requests.
fn into_background() -> Result<(), Failure> {
    let cannot = |error| Failure::environment(format_args!("cannot start in the background: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    // When called as `fcoemon`, the command has no subcommand to skip.
    let mut arguments = std::env::args_os().skip(1).peekable();
    let _subcommand = arguments.next_if(|first| first == "fcoemon");
    command.arg("fcoemon").args(["--foreground", "--ready-fd", "1"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(cannot)?;
    let mut reply = Vec::new();
    if let Some(mut ready) = child.stdout.take() {
        ready.read_to_end(&mut reply).map_err(cannot)?;
    }
    if reply != b"ready\n" {
        let _ = child.wait();
        return Err(Failure::environment("fcoemon did not start; its messages are above"));
    }
    output::note(&format!("fcoemon runs as process {}", child.id()));
    Ok(())
}

impl Monitor {
    fn apply_files(&mut self, files: BTreeMap<String, Result<Wanted, String>>) {
        if files == self.files {
            return;
        }
        for (interface, wanted) in &files {
            if self.files.get(interface) != Some(wanted) {
                // A change of the file enables the instance again.
                self.ended.retain(|name| name != interface && !is_vlan_of(name, interface));
                self.made.remove(interface);
                match wanted {
                    Ok(wanted) => tracing::info!(interface, enable = wanted.enable, "file read"),
                    Err(reason) => tracing::error!(interface, reason, "file cannot be used"),
                }
            }
        }
        for interface in self.files.keys().filter(|interface| !files.contains_key(*interface)) {
            tracing::info!(interface, "file removed");
        }
        self.files = files;
    }

    /// Returns the enabled configuration of each interface.
    fn wanted(&self) -> BTreeMap<String, Wanted> {
        let of_files = self.files.iter().filter_map(|(interface, wanted)| {
            let wanted = wanted.as_ref().ok().filter(|wanted| wanted.enable)?;
            (!self.ended.contains(interface)).then(|| (interface.clone(), wanted.clone()))
        });
        let mut all: BTreeMap<String, Wanted> = of_files.collect();
        all.extend(self.made.clone());
        all
    }

    /// Returns the instances of these interfaces by name, including those stopped by `fcoeadm -d`.
    fn plans(&self, wanted: BTreeMap<String, Wanted>) -> BTreeMap<String, InstancePlan> {
        let mut plans = BTreeMap::new();
        for (interface, wanted) in wanted {
            if !wanted.has_many_vlans() {
                plans.insert(interface.clone(), InstancePlan { interface, watched: false, wanted });
                continue;
            }
            let watch = self.watches.get(&interface).filter(|watch| watch.is_of(&wanted));
            let seen = watch.map(Watch::seen).unwrap_or_default();
            for vlan in seen.vlans {
                let wanted = Wanted { vlan: Some(vlan), ..wanted.clone() };
                let plan = InstancePlan { interface: interface.clone(), watched: true, wanted };
                plans.insert(super::fipvlan::instance_name(&interface, vlan), plan);
            }
        }
        plans
    }

    /// Stops instances that are no longer configured and starts missing ones.
    fn reconcile(&mut self) {
        for (name, running) in &mut self.running {
            if let Ok(Some(status)) = running.child.try_wait() {
                tracing::warn!(interface = name, %status, "instance ended");
                self.not_before.insert(name.clone(), Instant::now() + AGAIN);
            }
        }
        self.running.retain(|_, running| matches!(running.child.try_wait(), Ok(None)));
        let wanted = self.wanted();
        for (interface, wanted) in wanted.iter().filter(|(_, wanted)| wanted.has_many_vlans()) {
            self.watches.entry(interface.clone()).or_insert_with(|| Watch::begin(wanted));
        }
        let mut plans = self.plans(wanted.clone());
        plans.retain(|name, _| !self.ended.contains(name));
        let other =
            |(name, running): (&String, &Running)| (plans.get(name) != Some(&running.plan)).then(|| name.clone());
        let to_end: Vec<String> = self.running.iter().filter_map(other).collect();
        self.end(to_end);
        // The end of a watch ends DCBX on its interface, so its hosts have been logged out before.
        self.watches.retain(|interface, watch| wanted.get(interface).is_some_and(|wanted| watch.is_of(wanted)));
        for (name, plan) in plans {
            let waits = self.not_before.get(&name).is_some_and(|at| *at > Instant::now());
            if !waits && !self.running.contains_key(&name) {
                self.begin(name, plan);
            }
        }
        self.permit();
    }

    /// Sends the DCBX result to the instances of watched interfaces.
    fn permit(&mut self) {
        for (name, running) in &mut self.running {
            let Some(watch) = self.watches.get(&running.plan.interface) else { continue };
            let agreed = watch.seen().may_begin;
            if !running.plan.watched || !running.plan.wanted.dcb || running.sent_permission == Some(agreed) {
                continue;
            }
            let request = Request::Fcoe(FcoeRequest::Permit { agreed });
            // A newly started instance may have no socket yet; the next check repeats the request.
            if let Ok(Answer::Done) = sanloom_live::control::ask_within(PROMPT, &self.run.control(name), &request) {
                running.sent_permission = Some(agreed);
            }
        }
    }

    fn begin(&mut self, name: String, plan: InstancePlan) {
        let started = std::env::current_exe().and_then(|program| self.command(program, &name, &plan).spawn());
        match started {
            Ok(child) => {
                tracing::info!(interface = name, process = child.id(), "instance started");
                self.running.insert(name, Running { child, plan, sent_permission: None });
            }
            Err(error) => {
                tracing::error!(interface = name, %error, "instance cannot start");
                self.not_before.insert(name, Instant::now() + AGAIN);
            }
        }
    }

    fn command(&self, program: PathBuf, name: &str, plan: &InstancePlan) -> Command {
        let InstancePlan { interface, watched, wanted } = plan;
        let mut command = Command::new(program);
        command.args(["initiator", "--name", interface, "--port", &wanted.port.to_string()]);
        command.arg("--nbd").arg(self.run.nbd(name)).arg("--control").arg(self.run.control(name));
        if let Some(mac) = wanted.mac {
            command.args(["--mac", &mac.to_string()]);
        }
        match wanted.vlan {
            Some(vlan @ 1..) => command.args(["--vlan", &vlan.to_string()]),
            Some(0) => command.args(["--vlan", "none"]),
            None if wanted.auto_vlan => command.args(["--vlan", "auto"]),
            None => command.args(["--vlan", "none"]),
        };
        let dcbx = if *watched { "--dcbx-of-fcoemon" } else { "--dcbx" };
        let switches = [(wanted.vn2vn, "--vn2vn"), (wanted.dcb, dcbx), (wanted.responder, "--vlan-responder")];
        command.args(switches.iter().filter(|(on, _)| *on).map(|(_, switch)| switch));
        // If the monitor dies, the instance ends itself, because nothing else would stop it.
        command.args(["--parent", &std::process::id().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Stops instances in parallel, so that an unresponsive one does not delay the others.
    fn end(&mut self, names: Vec<String>) {
        let ending: Vec<(String, Running)> =
            names.into_iter().filter_map(|name| self.running.remove(&name).map(|running| (name, running))).collect();
        std::thread::scope(|scope| {
            for (name, running) in ending {
                tracing::info!(interface = name, "instance ends");
                let control = self.run.control(&name);
                scope.spawn(move || end(&control, running));
            }
        });
    }

    fn answer(&mut self, request: Request) -> Answer {
        let failed = |reason: String| Answer::failed(reason);
        match request {
            // The interface name is also the name of the instance's sockets.
            Request::Fcoe(FcoeRequest::Create { interface, .. })
                if interface.is_empty() || interface == MONITOR || interface.contains('/') =>
            {
                failed(format!("`{interface}` is not a valid interface name"))
            }
            Request::Fcoe(FcoeRequest::Create { interface, vn2vn }) => {
                let wanted = self.wanted();
                let is_vlan = self.plans(wanted.clone()).contains_key(&interface);
                let before = self.ended.len();
                self.ended.retain(|name| *name != interface && !is_vlan_of(name, &interface));
                let again = self.ended.len() < before;
                if again && (is_vlan || wanted.contains_key(&interface)) {
                    return Answer::Done;
                }
                if is_vlan || wanted.contains_key(&interface) {
                    return failed(format!("connection already created on interface {interface}"));
                }
                let above =
                    wanted.iter().find(|(above, wanted)| wanted.has_many_vlans() && is_vlan_of(&interface, above));
                if let Some((above, _)) = above {
                    return failed(format!(
                        "{interface} starts automatically when a forwarder at {above} reports its VLAN"
                    ));
                }
                let of_file = self.files.get(&interface).and_then(|wanted| wanted.as_ref().ok()).cloned();
                let wanted = of_file.map_or_else(|| Wanted::on(&interface, vn2vn), Ok);
                match wanted {
                    Ok(wanted) => {
                        let wanted = Wanted { enable: true, vn2vn: wanted.vn2vn || vn2vn, ..wanted };
                        self.made.insert(interface, wanted);
                        Answer::Done
                    }
                    Err(reason) => failed(reason),
                }
            }
            Request::Fcoe(FcoeRequest::Destroy { interface }) => {
                // An instance that fails repeatedly may not be running at this moment.
                let wanted = self.wanted();
                let known = wanted.contains_key(&interface) || self.plans(wanted).contains_key(&interface);
                if self.ended.contains(&interface) || !known && !self.running.contains_key(&interface) {
                    return failed(format!("no connection created on interface {interface}"));
                }
                self.made.remove(&interface);
                self.ended.insert(interface);
                Answer::Done
            }
            _ => failed("fcoemon accepts only requests to create and destroy connections".to_owned()),
        }
    }
}

/// Waits for the logout of an instance, and kills it after the time limit.
fn end(control: &Path, mut running: Running) {
    let begun = Instant::now();
    let stopping = sanloom_live::control::ask_within(TIME_LIMIT, control, &Request::Stop);
    while stopping.is_ok() && begun.elapsed() < TIME_LIMIT {
        if matches!(running.child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(CHECK_INTERVAL / 5);
    }
    let _ = running.child.kill();
    let _ = running.child.wait();
}

/// Returns whether the name is that of a VLAN instance of the interface
/// ([`super::fipvlan::instance_name`]).
fn is_vlan_of(name: &str, interface: &str) -> bool {
    let vlan = name.strip_prefix(interface).and_then(|rest| rest.strip_prefix('.')?.strip_suffix("-fcoe"));
    vlan.is_some_and(|vlan| vlan.parse::<u16>().is_ok())
}
