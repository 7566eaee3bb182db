#![no_main]

use sanloom_api::results::{HostResult, Metrics, Results, is_metric_path};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(path) = std::str::from_utf8(data) else { return };
    let host = |name: &str| HostResult { name: name.into(), ..HostResult::default() };
    let results = Results { hosts: vec![host("server1"), host("db.example")], ..Results::default() };
    if Metrics::new(&results).get(path).is_some() {
        assert!(is_metric_path(path));
    }
});
