//! The reference page of the REST interface.

use std::path::Path;

#[test]
fn the_page_of_rest_resources_is_made_from_the_table() {
    let page = sanloom_surface::fos::reference();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/rest.md");
    if std::env::var_os("SANLOOM_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/src/reference/rest.md is out of date: run SANLOOM_BLESS=1 cargo test -p sanloom-surface"
    );
}
