//! Results of libiscsi's conformance tests against a disk with two portals: [`Conformance`].

use sanloom_test_support::programs::try_run;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

/// Expected failures on our disks, with their reasons.
const EXPECTED_FAILURES: &str = include_str!("expected_failures.txt");
/// Number of tests in version 1.19.
const TESTS: u32 = 230;

/// Result of `iscsi-test-cu`.
pub struct Conformance {
    /// Failed tests, as `Suite.Test`.
    failed: BTreeSet<String>,
    /// Reasons of skipped tests, with their number. A skipped test counts as passed.
    skips: Vec<String>,
    summary: String,
    text: String,
}

/// Lines of a list, without its heading.
fn lines_of(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

/// Calls a function for each disk, all at the same time: most of the tests only wait, for responses
/// that must not come.
pub fn on_each<D: Copy + Send>(disks: &[D], test: impl Fn(D) + Sync) {
    thread::scope(|scope| {
        for disk in disks.iter().copied() {
            let test = &test;
            scope.spawn(move || test(disk));
        }
    });
}

/// Runs all tests, including destructive ones, against a disk at both of its portals.
pub fn test(urls: [&str; 2]) -> Conformance {
    let arguments = [&["--dataloss", "--allow-sanitize", "--normal", "-t", "ALL"][..], &urls].concat();
    let (_, out, err) = try_run("iscsi-test-cu", &arguments);
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
    // Requires that every test ran.
    let summary = text.lines().find(|line| line.trim().starts_with("tests ")).unwrap_or_default().trim().to_owned();
    let numbers: Vec<u32> = summary.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.len() >= 4 && numbers[0] >= TESTS && numbers[0] == numbers[1], "{text}");
    assert_eq!(numbers[3], failed.len() as u32, "{text}");
    Conformance { failed, skips, summary, text }
}

impl Conformance {
    /// Requires that exactly the listed tests failed and exactly the listed ones were skipped.
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
