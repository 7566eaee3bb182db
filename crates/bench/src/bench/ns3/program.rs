//! Programs that use the library of ns-3: compilation, start and runs.

use crate::quote::quote;
use sanloom_console::exit::Failure;
use sanloom_console::report::file;
use serde::de::DeserializeOwned;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Header that stands for ns-3.
const HEADER: &str = "ns3/point-to-point-module.h";

/// Source of a program.
pub struct Source {
    /// Name of the program and, with `.cc`, of its file.
    pub name: &'static str,
    pub text: &'static str,
    pub libraries: &'static [&'static str],
    /// Arguments of a run that shows that the program starts.
    pub short: &'static [&'static str],
}

/// A compiled program, which is deleted when it is dropped.
pub struct Program {
    folder: PathBuf,
    path: PathBuf,
}

impl Program {
    /// Compiles a program, and starts it once with this standard input. `Ok(Err)` is the reason if
    /// the compiler or ns-3 is missing or does not work.
    ///
    /// # Errors
    /// If the file of the source cannot be written.
    pub fn compile(source: &Source, cxx: &str, input: &str) -> Result<Result<Program, String>, Failure> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if let Err(reason) = available(cxx) {
            return Ok(Err(reason));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("sanloom-ns3-{}-{number}", std::process::id()));
        file::make_folder(&folder)?;
        let program = Program { path: folder.join(source.name), folder };
        let text = program.path.with_extension("cc");
        file::write_text(&text, source.text)?;
        Ok(program.build(source, cxx, &text).and_then(|()| program.starts(source, input)).map(|()| program))
    }

    fn build(&self, source: &Source, cxx: &str, text: &Path) -> Result<(), String> {
        let compiled = Command::new(cxx)
            .args(["-std=c++17", "-O3", "-march=native", "-DNDEBUG"])
            .arg(text)
            .arg("-o")
            .arg(&self.path)
            .args(source.libraries)
            .output();
        match compiled {
            Ok(compiled) if compiled.status.success() => Ok(()),
            Ok(compiled) => Err(format!(
                "{cxx} cannot compile the ns-3 program ({}){}",
                compiled.status,
                quote("it", &compiled.stderr)
            )),
            Err(error) => Err(format!("the compiler {cxx} cannot be run: {error}")),
        }
    }

    /// Returns the reason if the program does not start, for example because a library is missing.
    fn starts(&self, source: &Source, input: &str) -> Result<(), String> {
        let run = self.output(source.short, input);
        let run = run.map_err(|error| format!("the ns-3 program cannot be started: {error}"))?;
        match run.status.success() {
            true => Ok(()),
            false => Err(format!("the ns-3 program does not start ({}){}", run.status, quote("it", &run.stderr))),
        }
    }

    /// Runs the program, and returns the values that it printed as JSON.
    ///
    /// # Errors
    /// If the program cannot be run, or its output cannot be read.
    pub fn run<T: DeserializeOwned>(&self, arguments: &[&str], input: &str) -> Result<T, Failure> {
        let path = self.path.display();
        let run = self
            .output(arguments, input)
            .map_err(|error| Failure::environment(format_args!("cannot run {path}: {error}")))?;
        serde_json::from_slice(&run.stdout).map_err(|error| {
            Failure::environment(format_args!(
                "the ns-3 program ended with {}, and its output cannot be read: {error}\n{}",
                run.status,
                String::from_utf8_lossy(&run.stderr).trim_end()
            ))
        })
    }

    /// Runs the program. It must read its whole input before it writes.
    fn output(&self, arguments: &[&str], input: &str) -> std::io::Result<Output> {
        let mut command = Command::new(&self.path);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut program = command.spawn()?;
        if let Some(mut standard_input) = program.stdin.take() {
            // If the program does not read its input, its exit status reports the failure.
            let _ = standard_input.write_all(input.as_bytes());
        }
        program.wait_with_output()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A folder that stays behind does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the reason if the compiler does not run, or the headers of ns-3 are missing.
fn available(cxx: &str) -> Result<(), String> {
    let preprocessor = Command::new(cxx)
        .args(["-std=c++17", "-E", "-x", "c++", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut preprocessor = preprocessor.map_err(|error| format!("the compiler {cxx} cannot be run: {error}"))?;
    if let Some(mut input) = preprocessor.stdin.take() {
        // If the compiler does not read its input, its exit status reports the failure.
        let _ = input.write_all(format!("#include <{HEADER}>\n").as_bytes());
    }
    match preprocessor.wait_with_output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains(HEADER) => {
            Err("the headers of ns-3 (Debian package libns3-dev) are not installed".to_owned())
        }
        Ok(output) => Err(format!("the compiler {cxx} failed ({}){}", output.status, quote("it", &output.stderr))),
        Err(error) => Err(format!("the compiler {cxx} cannot be run: {error}")),
    }
}
