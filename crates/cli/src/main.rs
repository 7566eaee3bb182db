//! The `sanloom` command.

use sanloom_console::{exit, output};
use std::process::ExitCode;

fn main() -> ExitCode {
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        show(panic);
        output::note(exit::REPORT_IT);
        std::process::exit(i32::from(exit::BUG));
    }));
    ExitCode::from(sanloom::main(std::env::args_os()))
}
