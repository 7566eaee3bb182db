//! `sanloom down`: ends running instances.

use crate::instance;
use crate::running::{self, Running};
use sanloom_api::control::{Answer, Request};
use sanloom_console::exit::Failure;
use sanloom_console::input::LabFile;
use sanloom_console::outputs::Sets;
use sanloom_console::{interrupt, output};
use sanloom_fc::config::Picos;
use sanloom_live::control::{self, Control};
use sanloom_live::runtime::plan::LabPaths;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Options of `sanloom down`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Lab file, or the name of a lab in `sanloom ps`
    #[arg(value_name = "LAB", required_unless_present = "all", conflicts_with = "all")]
    lab: Option<PathBuf>,
    /// End all instances of this user
    #[arg(long)]
    all: bool,
    /// End only the instance that runs just this switch
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    switch: Option<String>,
    /// Maximum time for an instance to end
    #[arg(long, value_name = "TIME", value_parser = sanloom_lab::parse_time, default_value = "30s")]
    wait: Picos,
    #[command(flatten)]
    sets: Sets,
}

/// Interval between checks of an instance that is ending.
const STEP: Duration = Duration::from_millis(20);

/// An instance to end: its name, its control socket, and its process if that is known.
struct Target {
    name: String,
    control: PathBuf,
    process: Option<Running>,
}

/// Ends instances and waits until they are gone.
///
/// # Errors
/// If no such instance is running, one does not end in time, or one could not write a capture or
/// recording to its end.
pub fn run(args: &Args) -> Result<(), Failure> {
    let targets = targets(args)?;
    let mut incomplete = Vec::new();
    for target in &targets {
        match control::ask_within(args.timeout(), &target.control, &Request::Stop) {
            Ok(Answer::Failed(error)) => return Err(instance::rejected(error)),
            Ok(Answer::Incomplete { files }) => incomplete.extend(files),
            // The instance may close the connection before it has answered.
            _ => {}
        }
        wait(target, args.timeout())?;
        output::print(&format!("{} is down.\n", target.name))?;
    }
    match (targets.is_empty(), incomplete.is_empty()) {
        (true, _) => output::print("No instance is running.\n"),
        (false, true) => Ok(()),
        (false, false) => Err(Failure::environment(incomplete.join("\n"))),
    }
}

impl Args {
    fn timeout(&self) -> Duration {
        Duration::from_nanos(self.wait.0 / 1_000)
    }
}

fn targets(args: &Args) -> Result<Vec<Target>, Failure> {
    let of = |running: Running| Target {
        name: match &running.switch {
            Some(switch) => format!("{}, switch {switch},", running.lab),
            None => running.lab.clone(),
        },
        control: running.control.clone(),
        process: Some(running),
    };
    let Some(lab) = &args.lab else { return Ok(running::all().into_iter().map(of).collect()) };
    let is_wanted = |running: &Running| args.switch.is_none() || running.switch == args.switch;
    if !lab.is_file() && lab != Path::new("-") {
        let named = running::all().into_iter().filter(|running| lab == Path::new(&running.lab) && is_wanted(running));
        let named: Vec<Target> = named.map(of).collect();
        return match named.is_empty() {
            false => Ok(named),
            true => Err(Failure::environment(format_args!(
                "{} is neither a lab file nor the name of a running lab; `sanloom ps` lists those",
                lab.display()
            ))),
        };
    }
    let file = LabFile { path: lab.clone() };
    let loaded = sanloom_lab::load(&file.label(), &file.text()?, &args.sets.set)?.lab;
    let lab_paths = LabPaths::of(&loaded);
    let switches = loaded.switches.iter().map(|switch| Some(switch.name.as_str()));
    let wanted: Vec<Option<&str>> = match &args.switch {
        Some(switch) => vec![Some(switch)],
        None => [None].into_iter().chain(switches).collect(),
    };
    let paths: Vec<PathBuf> = wanted.into_iter().map(|switch| lab_paths.control(switch)).collect();
    let known = running::all();
    let target = |control: &PathBuf| match known.iter().find(|running| running.control == *control) {
        Some(running) => of(running.clone()),
        None => Target { name: loaded.name.clone(), control: control.clone(), process: None },
    };
    let found: Vec<Target> = paths.iter().filter(|path| Control::answers(path)).map(target).collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::environment(format_args!("no instance of {} is running", loaded.name))),
    }
}

/// Waits until an instance is gone: its socket does not answer, and its process has ended.
fn wait(target: &Target, timeout: Duration) -> Result<(), Failure> {
    let begun = Instant::now();
    let is_gone = || !Control::answers(&target.control) && target.process.as_ref().is_none_or(|one| !one.is_alive());
    while !is_gone() {
        if begun.elapsed() > timeout {
            return Err(Failure::environment(format_args!(
                "{} has not ended within {timeout:?}; `sanloom ps` shows its process",
                target.name
            )));
        }
        if !interrupt::pause(STEP) {
            return Err(Failure::interrupted(format_args!("{} is still ending", target.name)));
        }
    }
    Ok(())
}
