//! libiscsi's conformance tests against a disk with two portals, and what they say of it: [`Conformance`].

use crate::peer::try_run;
use std::collections::{BTreeMap, BTreeSet};

/// Tests that fail on a disk of ours, with their reasons.
const EXPECTED_FAILURES: &str = include_str!("expected_failures.txt");
/// Version 1.19 has so many.
const TESTS: u32 = 230;

/// What `iscsi-test-cu` says.
pub struct Conformance {
    /// Tests that fail, as in `Suite.Test`.
    failed: BTreeSet<String>,
    /// Why tests are left out, and how often. Such a test counts as passed.
    skips: Vec<String>,
    summary: String,
    text: String,
}

/// The lines of a list, without its head.
fn lines_of(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

/// Runs every test, the dangerous ones too, against a disk at both of its addresses.
pub fn test(program: &str, urls: [&str; 2]) -> Conformance {
    let arguments = [&["--dataloss", "--allow-sanitize", "--normal", "-t", "ALL"][..], &urls].concat();
    let (_, out, err) = try_run(program, &arguments);
    let text = out + &err;
    let failed = text.lines().filter_map(|line| {
        let (suite, test) =
            line.trim().strip_prefix("Suite ")?.strip_suffix(" had failures:")?.split_once(", Test ")?;
        Some(format!("{suite}.{test}"))
    });
    let failed: BTreeSet<String> = failed.collect();
    let mut skips = BTreeMap::<&str, usize>::new();
    for why in text.lines().filter_map(|line| Some(line.split_once("[SKIPPED] ")?.1.trim())) {
        *skips.entry(why).or_default() += 1;
    }
    let skips = skips.iter().map(|(why, count)| format!("{count:2} {why}")).collect();
    // Every test that is there ran.
    let summary = text.lines().find(|line| line.trim().starts_with("tests ")).unwrap_or_default().trim().to_owned();
    let numbers: Vec<u32> = summary.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.len() >= 4 && numbers[0] >= TESTS && numbers[0] == numbers[1], "{text}");
    assert_eq!(numbers[3], failed.len() as u32, "{text}");
    Conformance { failed, skips, summary, text }
}

impl Conformance {
    /// Exactly the listed tests fail, and exactly the listed ones are left out.
    pub fn assert(&self, expected_skips: &str) {
        let failed: BTreeSet<&str> = self.failed.iter().map(String::as_str).collect();
        let listed: BTreeSet<&str> =
            lines_of(EXPECTED_FAILURES).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(failed, listed, "{}", self.text);
        let listed: Vec<&str> = lines_of(expected_skips).collect();
        assert_eq!(self.skips, listed, "{}", self.text);
        println!("{}, {} left out", self.summary, self.text.matches("[SKIPPED] ").count());
    }
}
