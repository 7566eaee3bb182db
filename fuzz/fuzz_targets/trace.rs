#![no_main]

#[path = "../../crates/storage/tests/it/trace_entry_points/mod.rs"]
mod entry_points;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry_points::trace(data));
