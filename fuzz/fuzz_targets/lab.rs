#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        match sanloom_lab::load("fuzz.toml", text, &[]) {
            Ok(loaded) => assert_eq!(loaded.text, text),
            Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
        }
    }
});
