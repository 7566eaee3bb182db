//! Bad lab files. Each file of `tests/it/bad` begins with its expected diagnostics, in order:
//! `# expect: LINE:COLUMN CODE` for errors and `# warn: …` for warnings. The location in an
//! override is `--set:COLUMN`; overrides are lines `# set: KEY=VALUE`.

use sanloom_lab::{Diagnostic, Override};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn fixtures() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/bad");
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

fn diagnose(text: &str) -> Vec<Diagnostic> {
    let sets: Vec<Override> =
        text.lines().filter_map(|l| l.strip_prefix("# set: ")).filter_map(Override::parse).collect();
    match sanloom_lab::check("lab.toml", text, &sets) {
        Ok((loaded, _)) => loaded.warnings,
        Err(diagnostics) => diagnostics.iter().cloned().collect(),
    }
}

fn describe(diagnostic: &Diagnostic) -> String {
    let word = match diagnostic.severity {
        sanloom_lab::Severity::Error => "expect",
        sanloom_lab::Severity::Warning => "warn",
    };
    let Diagnostic { source, line, column, code, .. } = diagnostic;
    match source.as_str() {
        "--set" => format!("# {word}: --set:{column} {code}"),
        _ => format!("# {word}: {line}:{column} {code}"),
    }
}

#[test]
fn every_bad_file_has_the_diagnostics_that_its_comments_list() {
    for (name, text) in fixtures() {
        let expected: Vec<&str> =
            text.lines().filter(|l| l.starts_with("# expect: ") || l.starts_with("# warn: ")).collect();
        assert!(!expected.is_empty(), "{name} lists no expected diagnostics");
        let found: Vec<String> = diagnose(&text).iter().map(describe).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn diagnostics_have_the_expected_text() {
    for (name, text) in fixtures() {
        let rendered: Vec<String> = diagnose(&text).iter().map(|d| d.render(false)).collect();
        insta::assert_snapshot!(name, rendered.join("\n"));
    }
}

#[test]
fn every_diagnosis_has_reason_remedy_and_a_place_inside_the_text() {
    for (name, text) in fixtures() {
        for d in diagnose(&text) {
            assert!(!d.reason.is_empty() && !d.reason.ends_with('.'), "{name}: {}", d.reason);
            assert!(!d.remedy.is_empty() && !d.remedy.ends_with('.'), "{name}: {}", d.remedy);
            if d.source != "--set" {
                assert!(text.get(d.span.clone()).is_some(), "{name}: {:?}", d.span);
                let line = text.lines().nth(d.line - 1).unwrap_or("");
                assert!(d.column <= line.chars().count() + 1, "{name}: column {}", d.column);
            }
        }
    }
}

#[test]
fn every_sort_of_mistake_has_an_example() {
    let mut shown: BTreeSet<&str> = BTreeSet::new();
    for (_, text) in fixtures() {
        shown.extend(diagnose(&text).iter().map(|d| d.code));
    }
    let long = format!("# {}", "x".repeat(9 << 20));
    shown.extend(diagnose(&long).iter().map(|d| d.code));
    // No lab file can cause this, because a bundle comes from one table, so its links are equal.
    // The validation of the lab has a test for it.
    shown.insert("bad-bundle");
    // Only a file of zone edits can cause this; see `zone_edits.rs`.
    shown.insert("bad-edit");
    let all: BTreeSet<&str> = sanloom_lab::codes().into_iter().collect();
    assert_eq!(shown, all);
}

#[test]
fn colour_changes_nothing_but_colour() {
    let (_, text) = &fixtures()[0];
    for diagnostic in diagnose(text) {
        let plain = diagnostic.render(false);
        let coloured = diagnostic.render(true);
        assert!(coloured.contains("\u{1b}[") && !plain.contains('\u{1b}'));
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some(start) = rest.find("\u{1b}[") {
            stripped.push_str(&rest[..start]);
            let end = rest[start..].find('m').unwrap();
            rest = &rest[start + end + 1..];
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain);
    }
}
