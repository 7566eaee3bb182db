#![no_main]
//! Bodies and paths of the REST interface. A body that is read is written and read again.

use sanloom_surface::fos::tree::Element;
use sanloom_surface::fos::{check_path, json, xml};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    check_path(text);
    if let Ok(elements) = json::read(text) {
        let root = Element::container("Response", elements);
        json::write(&root, true);
        xml::write(&root);
    }
    if let Ok(elements) = xml::read(text) {
        let root = Element::container("Response", elements);
        assert_eq!(xml::read(&xml::write(&root)).map(|read| read.len()), Ok(1));
    }
    sanloom_surface::fos::commands::parse(text);
});
