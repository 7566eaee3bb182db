//! The rules of the house that a program can check.

use std::fs;
use std::path::{Path, PathBuf};

/// A file is one structure or one machine.
const MAX_LINES: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Every file under the root that is ours, with its text.
fn files() -> Vec<(PathBuf, String)> {
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

fn is(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

fn complain(what: &str, offenders: Vec<String>) {
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
    // Put together so that this file does not find itself.
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
fn the_core_reads_no_clock_and_does_no_io() {
    let forbidden = ["std::time", "std::fs", "std::net", "std::thread", "SystemTime", "HashMap", "HashSet"];
    let mut found = Vec::new();
    for (path, text) in files() {
        let inside = ["crates/core/src", "crates/wire/src"].iter().any(|folder| path.starts_with(root().join(folder)));
        if inside && is(&path, "rs") {
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let hit = forbidden.iter().find(|word| code.contains(**word));
            found.extend(hit.map(|word| format!("{}: {word}", path.display())));
        }
    }
    complain("sans-IO means", found);
}

#[test]
fn the_crates_depend_only_downwards() {
    // wire <- core <- api <- lab, sim, live; block beside core; cli on top.
    let allowed: [(&str, &[&str]); 8] = [
        ("wire", &[]),
        ("block", &["wire"]),
        ("core", &["wire"]),
        ("api", &["core", "wire"]),
        ("lab", &["api", "core", "wire"]),
        ("sim", &["api", "core", "wire"]),
        ("live", &["api", "block", "core", "wire"]),
        ("cli", &["api", "core", "lab", "live", "sim", "wire"]),
    ];
    let mut found = Vec::new();
    for (name, may_use) in allowed {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap_or_default();
        let own = text.split("[dev-dependencies]").next().unwrap_or_default();
        for line in own.lines().filter(|line| line.starts_with("sanloom-")) {
            let used = line.trim_start_matches("sanloom-").split(['.', ' ', '=']).next().unwrap_or_default();
            if !may_use.contains(&used) {
                found.push(format!("{name} uses {used}"));
            }
        }
    }
    complain("a room may not know the rooms above it", found);
}

#[test]
fn every_example_says_what_it_shows_and_expects_something() {
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| path.starts_with(root().join("examples"))) {
        if !text.starts_with("# ") {
            found.push(format!("{} does not begin with a comment", path.display()));
        }
        if !text.contains("[[expect]]") {
            found.push(format!("{} expects nothing", path.display()));
        }
    }
    complain("examples are documents and tests", found);
}

#[test]
fn the_house_has_its_papers() {
    let missing = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", ".ci/run"]
        .iter()
        .filter(|name| fs::metadata(root().join(name)).map_or(true, |meta| meta.len() == 0))
        .map(|name| (*name).to_owned())
        .collect();
    complain("missing or empty", missing);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| is(path, "md")) {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            let here = path.parent().map(|folder| folder.join(target));
            if !target.is_empty() && !target.contains("://") && here.is_some_and(|file| !file.exists()) {
                found.push(format!("{}: {target}", path.display()));
            }
        }
    }
    complain("dead links", found);
}
