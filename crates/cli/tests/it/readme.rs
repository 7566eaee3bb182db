//! The README's commands produce the output that it shows.

use sanloom_sim::run::{Blind, Options, simulate};
use std::sync::Arc;

const README: &str = include_str!("../../../../README.md");

/// The first block of the README in this language.
fn block(language: &str) -> &'static str {
    let start = README.find(&format!("```{language}\n")).expect("the README has such a block") + language.len() + 4;
    let len = README[start..].find("```").expect("a block ends");
    &README[start..start + len]
}

#[test]
fn the_lab_of_the_readme_runs_and_meets_its_expectation() {
    let loaded = sanloom_lab::load("README.md", block("toml"), &[]).unwrap_or_else(|found| panic!("{found}"));
    let results = simulate(&Arc::new(loaded.lab), &Options::default(), &mut Blind).results;
    assert!(results.totals.io.ios_completed > 10_000);
    assert_eq!(results.totals.io.ios_failed, 0);
    assert!(results.totals.commands_retried > 0, "the fault did nothing");
}

#[test]
fn the_diagnosis_of_the_readme_is_what_a_user_sees() {
    let wrong = block("toml").replacen("[switch.\"edge{1,2}\"]", "[switch.\"edge{1,2}\"]\nquueing = \"fifo\"", 1);
    let found = sanloom_lab::load("lab.toml", &wrong, &[]).expect_err("the key is wrong");
    assert_eq!(found.render(false).trim(), block("text").trim());
}

#[test]
fn the_readme_names_the_commands_that_ci_runs() {
    let ci = include_str!("../../../../.ci/run");
    assert!(block("sh").contains("cargo run --release -- sim examples/core-edge.toml"));
    assert!(ci.contains("cargo run --release --quiet -- sim examples/core-edge.toml"));
    assert!(block("sh").contains("cargo test --workspace"));
    assert!(ci.contains("cargo test --workspace"));
}
