#![no_main]

use sanloom_lab::Override;

const LAB: &str = include_str!("../../examples/tiny.toml");

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let sets: Vec<Override> = text.lines().filter_map(Override::parse).collect();
    if let Err(diagnostics) = sanloom_lab::load("fuzz.toml", LAB, &sets) {
        assert!(!diagnostics.to_string().is_empty());
    }
});
