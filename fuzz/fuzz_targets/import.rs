#![no_main]

use sanloom_lab::import::{Choices, Source, draft};

// Files are separated by a form feed.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let named = |(index, text): (usize, &str)| Source { name: format!("{index}.txt"), text: text.to_owned() };
    let sources: Vec<Source> = text.split('\u{c}').enumerate().map(named).collect();
    let imported = draft(&sources, &Choices::default());
    for file in &imported.account.files {
        assert_eq!(file.lines, file.used + file.decoration + file.reported);
    }
    // The text is TOML, whatever the names in the inputs.
    assert!(sanloom_lab::format("lab.toml", &imported.lab).is_ok());
});
