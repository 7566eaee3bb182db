//! `sanloom apply`: applies a changed lab file to its running instance.

use crate::instance;
use sanloom_api::apply::ApplyReport;
use sanloom_api::control::{Answer, Request};
use sanloom_api::zoning::PortPair;
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::report::format::clean;

/// Options of `sanloom apply`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// Only show what would change, and what cannot
    #[arg(long)]
    preview: bool,
    /// Send the request to the instance that runs only this switch
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    json: Json,
}

/// Applies a lab.
///
/// # Errors
/// When the lab is invalid, no instance of it is running, or the running instance cannot make a
/// change.
pub fn run(args: &Args) -> Result<(), Failure> {
    let text = args.file.text()?;
    let loaded = sanloom_lab::load(&args.file.label(), &text, &args.sets.set)?;
    input::warnings_running(&loaded).for_each(input::show);
    let set = args.sets.set.iter().map(|set| format!("{}={}", set.key, set.value)).collect();
    let request = Request::Apply { lab: text, preview: args.preview, set };
    let Answer::Applied(report) = instance::command(&loaded.lab, args.switch.as_deref(), &request)? else {
        return Err(instance::unexpected_answer());
    };
    args.json.write_or_print(&report, || shown(&report))?;
    match report.refused.is_empty() || args.preview {
        true => Ok(()),
        false => {
            Err(Failure::usage("nothing was changed, because the running instance cannot make all of these changes"))
        }
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
