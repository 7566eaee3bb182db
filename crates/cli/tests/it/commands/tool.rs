//! Runs the command in a folder of its own.

use crate::sanloom::SANLOOM;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with the labs of the tests, which is removed on drop.
pub struct Bench {
    folder: PathBuf,
}

/// Result of a command.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Bench {
    pub fn new(name: &str) -> Bench {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/commands/labs");
        for lab in std::fs::read_dir(labs).expect("the labs of the tests") {
            let lab = lab.expect("a lab").path();
            std::fs::copy(&lab, folder.join(lab.file_name().expect("its name"))).expect("a copy");
        }
        Bench { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file that the command has written")
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file for the test");
    }

    /// The command with words separated by blanks.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(SANLOOM);
        command
            .args(words.split_whitespace())
            .current_dir(&self.folder)
            .env("NO_COLOR", "1")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &str) -> Ran {
        self.ran(self.command(words).output().expect("the command runs"))
    }

    pub fn ran(&self, output: Output) -> Ran {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("text in UTF-8");
            text.replace(&self.folder.display().to_string(), "[FOLDER]")
        };
        Ran {
            code: output.status.code().expect("an exit code, not a signal"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Ran {
    /// Exit code and both outputs, without values that depend on real time.
    pub fn snapshot(&self) -> String {
        let mut out = format!("exit code: {}\n", self.code);
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let _ = writeln!(out, "----- {name}");
            for line in text.lines() {
                let _ = writeln!(out, "{}", if line.contains(" of CPU time: ") { "[COST]" } else { line });
            }
        }
        out
    }
}

/// A results file without values that depend on real time.
pub fn without_engine(json: &str) -> serde_json::Value {
    let mut value: serde_json::Value = serde_json::from_str(json).expect("JSON");
    value.as_object_mut().expect("an object").remove("engine").expect("the part called engine");
    value
}
