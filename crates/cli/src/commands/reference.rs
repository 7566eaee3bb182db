//! `sanloom reference`: the reference of the lab file.

use sanloom_console::exit::Failure;
use sanloom_console::output;

/// Options of `sanloom reference`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Prints the reference, which is made from the definitions that parse lab files.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(_args: &Args) -> Result<(), Failure> {
    output::print(&sanloom_lab::reference())
}
