//! `sanloom init`: a new lab file from a template.

use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::report::file;
use sanloom_console::report::terminal::grid::{Column, Grid};
use std::path::{Path, PathBuf};

/// Options of `sanloom init`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file to write; `-` writes to standard output
    #[arg(value_name = "LAB", required_unless_present = "list")]
    lab: Option<PathBuf>,
    /// Template to copy; `--list` describes them
    #[arg(long, short, value_name = "NAME", default_value = "dual-fabric", value_parser = names())]
    template: String,
    /// List the templates
    #[arg(long, conflicts_with_all = ["lab", "template", "force"])]
    list: bool,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// A lab file with `NAME` in place of the lab's name.
struct Template {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

macro_rules! template {
    ($name:literal, $about:literal) => {
        Template { name: $name, about: $about, text: include_str!(concat!("../../templates/", $name, ".toml")) }
    };
}

const TEMPLATES: [Template; 6] = [
    template!("minimal", "one host, one switch, one disk"),
    template!("dual-fabric", "hosts and arrays on two fabrics, with zones and multipath"),
    template!("core-edge", "edge switches around a core, with ISLs and a fault"),
    template!("fcoe", "a live fabric over Ethernet for virtual machines (sanloom up)"),
    template!("iscsi", "a live iSCSI target (sanloom up)"),
    template!("virtual-disks", "a live virtualization switch on two iSCSI back ends (sanloom up)"),
];

fn names() -> Vec<&'static str> {
    TEMPLATES.iter().map(|template| template.name).collect()
}

/// Writes a lab file.
///
/// # Errors
/// If the file exists or cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Some(path) = &args.lab else { return output::print(&list()) };
    let Some(template) = TEMPLATES.iter().find(|template| template.name == args.template) else {
        return Err(Failure::bug(format_args!("the template {} does not exist", args.template)));
    };
    let is_stdout = path == Path::new("-");
    output::replaceable(Some(path), args.force)?;
    let name = path.file_stem().filter(|_| !is_stdout).and_then(|stem| stem.to_str());
    output::written(file::write_text(path, &template.lab(name.unwrap_or(template.name))))?;
    match is_stdout {
        true => Ok(()),
        false => {
            let shown = output::shell_word(&path.display().to_string());
            output::print(&format!(
                "{} written from the template {}; check it with `sanloom check {shown}`\n",
                path.display(),
                template.name
            ))
        }
    }
}

impl Template {
    /// The text for a lab of this name; `FILE` in the comments is its file.
    fn lab(&self, name: &str) -> String {
        let safe: String =
            name.chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect();
        self.text.replacen("\"NAME\"", &format!("\"{safe}\""), 1)
    }
}

fn list() -> String {
    let mut grid = Grid::new(vec![Column::left("template"), Column::left("content")]);
    for template in &TEMPLATES {
        grid.row(vec![template.name.to_owned(), template.about.to_owned()]);
    }
    grid.render(output::width())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_a_lab_without_warnings_in_canonical_layout() {
        for template in &TEMPLATES {
            let text = template.lab("my lab");
            let loaded = sanloom_lab::load(template.name, &text, &[]).unwrap_or_else(|wrong| panic!("{wrong}"));
            assert_eq!(loaded.lab.name, "my-lab");
            let warnings: Vec<String> = (loaded.warnings.iter())
                .filter(|warning| warning.code != "no-workload")
                .map(|warning| warning.render(false))
                .collect();
            assert!(warnings.is_empty(), "{}: {warnings:?}", template.name);
            assert_eq!(sanloom_lab::format(template.name, &text).ok(), Some(text), "{}", template.name);
        }
    }
}
