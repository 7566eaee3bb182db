#![no_main]

use sanloom_fc::san::Lab;
use std::sync::LazyLock;

/// A lab with zones of every kind.
static LAB: LazyLock<Lab> = LazyLock::new(|| {
    let text = include_str!("../../examples/zoning-peer.toml");
    sanloom_lab::load("zoning-peer.toml", text, &[]).unwrap_or_else(|mistakes| panic!("{mistakes}")).lab
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        match sanloom_lab::edit_zones("fuzz.toml", text, &LAB) {
            Ok(transaction) => drop(transaction.outcome()),
            Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
        }
    }
});
