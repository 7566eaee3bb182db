//! Project rules that a test can check.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of lines of a file, because a file holds one structure or one machine.
const MAX_LINES: usize = 600;

pub(crate) use crate::root;

/// Returns every text file of the project with its text, without build output and test data.
pub(crate) fn files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![root()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | "assets" | "corpus" | "artifacts" | "snapshots")
                    && !name.ends_with(".sanloom-report")
                {
                    open.push(path);
                }
            } else if let Ok(text) = fs::read_to_string(&path) {
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn is(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

pub(crate) fn complain(what: &str, offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{what}:\n{}", offenders.join("\n"));
}

#[test]
fn no_file_is_longer_than_one_machine() {
    let long = files()
        .iter()
        .filter(|(path, text)| is(path, "rs") && text.lines().count() > MAX_LINES)
        .map(|(path, text)| format!("{} has {} lines", path.display(), text.lines().count()))
        .collect();
    complain("split by role or phase", long);
}

#[test]
fn nothing_is_postponed_in_the_code() {
    // The words are joined at run time, so that this file does not match itself.
    let words =
        [["to", "do!("].concat(), ["unimplemen", "ted!("].concat(), ["TO", "DO"].concat(), ["FIX", "ME"].concat()];
    let ignored = ["#[ig", "nore"].concat();
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| is(path, "rs") || is(path, "sh")) {
        for (number, line) in text.lines().enumerate() {
            if words.iter().chain([&ignored]).any(|word| line.contains(word.as_str())) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    complain("finish it or delete it", found);
}

#[test]
fn every_source_file_begins_by_saying_what_it_is() {
    let silent = files()
        .iter()
        .filter(|(path, text)| is(path, "rs") && !text.starts_with("//!") && !text.starts_with("#!["))
        .map(|(path, _)| path.display().to_string())
        .collect();
    complain("a file begins with //! and what it holds", silent);
}

#[test]
fn the_crates_depend_only_downwards() {
    // wire <- scsi <- transport <- fc <- api <- lab, sim, live <- console <- bench <- cli, then
    // python; block and storage beside scsi, bare between sim and bench.
    let allowed: [(&str, &[&str]); 16] = [
        ("wire", &[]),
        ("storage", &[]),
        ("block", &["wire"]),
        ("scsi", &["wire"]),
        ("fc", &["scsi", "storage", "transport", "wire"]),
        ("transport", &["scsi", "wire"]),
        ("api", &["fc", "scsi", "wire"]),
        ("lab", &["api", "fc", "scsi", "storage", "wire"]),
        ("sim", &["api", "fc", "scsi", "storage", "transport", "wire"]),
        ("live", &["api", "block", "fc", "scsi", "storage", "transport", "wire"]),
        ("surface", &["api", "wire"]),
        ("console", &["api", "fc", "lab", "live", "scsi", "sim", "wire"]),
        ("bare", &["sim", "storage"]),
        (
            "bench",
            &["api", "bare", "console", "fc", "lab", "live", "scsi", "sim", "storage", "surface", "transport", "wire"],
        ),
        ("cli", &["api", "bench", "console", "fc", "lab", "live", "scsi", "sim", "storage", "surface", "wire"]),
        ("python", &["api", "console", "lab", "live", "sim"]),
    ];
    let mut found = Vec::new();
    for (name, may_use) in allowed {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap_or_default();
        for used in own_crates(&text) {
            if !may_use.contains(&used) {
                found.push(format!("{name} uses {used}"));
            }
        }
    }
    complain("a room may not know the rooms above it", found);
}

/// Crates of this workspace that a manifest names outside of `[dev-dependencies]`.
fn own_crates(manifest: &str) -> Vec<&str> {
    let mut dependencies = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            dependencies = line.ends_with("dependencies]") && line != "[dev-dependencies]";
        } else if let Some(rest) = line.strip_prefix("sanloom-").filter(|_| dependencies) {
            found.extend(rest.split(['.', ' ', '=']).next());
        }
    }
    found
}

#[test]
fn the_test_support_is_a_dev_dependency_only() {
    let support = root().join("crates/test-support");
    let users = files()
        .iter()
        .filter(|(path, _)| {
            path.ends_with("Cargo.toml") && !path.starts_with(&support) && **path != root().join("Cargo.toml")
        })
        .filter(|(_, text)| own_crates(text).iter().any(|name| name.starts_with("test-")))
        .map(|(path, _)| path.display().to_string())
        .collect();
    complain("name it in [dev-dependencies]", users);
}

#[test]
fn every_example_says_what_it_shows_and_expects_something() {
    let mut found = Vec::new();
    let is_trace = |path: &Path| path.starts_with(root().join("examples/traces"));
    let is_toml = |path: &Path| path.extension().is_some_and(|ending| ending == "toml");
    let is_example = |path: &Path| path.starts_with(root().join("examples")) && is_toml(path) && !is_trace(path);
    for (path, text) in files().iter().filter(|(path, _)| is_example(path)) {
        let text =
            text.strip_prefix("#:schema ").and_then(|rest| rest.split_once('\n')).map_or(&**text, |(_, rest)| rest);
        if !text.starts_with("# ") {
            found.push(format!("{} does not begin with a comment", path.display()));
        }
        // A parameter file of a disk belongs to a lab, which expects something.
        let is_lab = !path.starts_with(root().join("examples/disks"));
        if is_lab && !text.contains("[[expect]]") {
            found.push(format!("{} expects nothing", path.display()));
        }
    }
    complain("examples are documents and tests", found);
}

#[test]
fn the_repository_has_its_standard_documents() {
    let missing =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE-MIT", "LICENSE-APACHE", ".ci/run"]
            .iter()
            .filter(|name| fs::metadata(root().join(name)).map_or(true, |meta| meta.len() == 0))
            .map(|name| (*name).to_owned())
            .collect();
    complain("missing or empty", missing);
}
