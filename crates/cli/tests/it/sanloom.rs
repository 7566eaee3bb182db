//! The tool under test.

use sanloom_test_support::started::{Folder, Process};
use std::ffi::OsStr;
use std::process::Command;

/// Path of the tool.
pub const SANLOOM: &str = env!("CARGO_BIN_EXE_sanloom");

/// Starts the tool in a folder of a test.
pub trait Start {
    /// Starts the tool and waits until it reports that it is ready.
    fn sanloom(&self, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Process;
}

impl Start for Folder {
    fn sanloom(&self, arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Process {
        let mut command = Command::new(SANLOOM);
        command.args(arguments);
        self.start(command)
    }
}
