//! `sanloom apply`: a changed lab file for the instance that runs it.

use crate::exit::Failure;
use crate::input::{self, LabFile};
use crate::instance;
use crate::output;
use crate::report::format::clean;
use crate::report::{file, json};
use sanloom_api::apply::ApplyReport;
use sanloom_api::control::{Answer, Request};
use sanloom_api::zoning::PortPair;

/// Options of `sanloom apply`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// Only show what would change, and what cannot
    #[arg(long)]
    preview: bool,
    /// Ask the instance that runs this switch alone
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Applies a lab.
///
/// # Errors
/// When the lab is wrong, no instance of it runs, or something of it cannot change while it runs.
pub fn run(args: &Args) -> Result<(), Failure> {
    let text = args.file.text()?;
    let loaded = sanloom_lab::load(&args.file.label(), &text, &[])?;
    input::warnings_running(&loaded).for_each(input::show);
    let request = Request::Apply { lab: text, preview: args.preview };
    let Answer::Applied(report) = instance::command(&loaded.lab, args.switch.as_deref(), &request)? else {
        return Err(Failure::protocol("the instance answered something else than what it has applied"));
    };
    match args.json {
        true => output::written(file::stdout(|out| json::write_value(out, &report)))?,
        false => output::print(&shown(&report))?,
    }
    match report.refused.is_empty() || args.preview {
        true => Ok(()),
        false => Err(Failure::usage("nothing was changed: the instance cannot do all of it while it runs")),
    }
}

fn shown(report: &ApplyReport) -> String {
    let mut text = format!("{}\n", clean(&report.lab));
    let mut list = |what: &str, lines: &[String]| {
        text.extend(lines.iter().map(|line| format!("{what:<14}  {}\n", clean(line))));
    };
    list(if report.applied { "changed" } else { "would change" }, &report.changes);
    for preview in &report.zones {
        let pairs = |list: &[PortPair]| -> Vec<String> {
            list.iter().map(|PortPair(one, other)| format!("{one} and {other}")).collect()
        };
        list("  gain sight", &pairs(&preview.gains));
        list("  lose sight", &pairs(&preview.loses));
    }
    list("cannot change", &report.refused);
    list("no effect", &report.without_effect);
    if report.changes.is_empty() && report.refused.is_empty() {
        text += "nothing to change\n";
    }
    text
}
