//! `sanloom man`: man pages and shell completions, from the definition of the command line.

use super::completions::visible;
use crate::args::Cli;
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use sanloom_console::exit::Failure;
use sanloom_console::output;
use sanloom_console::report::file;
use std::path::{Path, PathBuf};

/// Options of `sanloom man`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder for the man pages (man1) and completions; it is created if it does not exist
    /// [default: print sanloom(1)]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Writes the pages.
///
/// # Errors
/// If a file cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = &args.folder else { return output::print(&page(&command)?) };
    let (pages, completions) = (folder.join("man1"), folder.join("completions"));
    file::make_folder(&pages)?;
    file::make_folder(&completions)?;
    let mut count = 0;
    write_pages(&command, "sanloom", &pages, &mut count)?;
    for shell in Shell::value_variants() {
        let path = completions.join(format!("sanloom.{shell}"));
        file::write(&path, |mut out| {
            clap_complete::generate(*shell, &mut visible(), "sanloom", &mut out);
            Ok(())
        })?;
    }
    output::print(&format!(
        "{count} man pages in {}, completions for {} shells in {}\n",
        pages.display(),
        Shell::value_variants().len(),
        completions.display()
    ))
}

/// Writes the page of a command and those of its subcommands: sanloom-volume-create.1.
fn write_pages(command: &Command, name: &str, folder: &Path, count: &mut usize) -> Result<(), Failure> {
    file::write_text(&folder.join(format!("{name}.1")), &page(command)?)?;
    *count += 1;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        write_pages(sub, &format!("{name}-{}", sub.get_name()), folder, count)?;
    }
    Ok(())
}

fn page(command: &Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    let command = command.clone().version(env!("CARGO_PKG_VERSION"));
    Man::new(command).render(&mut page).map_err(Failure::bug)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
