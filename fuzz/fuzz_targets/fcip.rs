#![no_main]

#[path = "../../crates/wire/tests/it/entry_points/mod.rs"]
mod entry_points;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry_points::fcip(data));
