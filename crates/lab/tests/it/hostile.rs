//! Robustness against arbitrary text: no panic, an end within the common timeout, and no diagnostic
//! outside the text.

use proptest::prelude::*;
use sanloom_lab::Override;
use sanloom_test_support::wait::TIMEOUT;
use std::time::Instant;

const WORDS: &[&str] = &[
    "[lab]\n",
    "[run]\n",
    "[switch.sw1]\n",
    "[switch.\"*\"]\n",
    "[host.\"server{1..3}\"]\n",
    "[host.server2]\n",
    "[storage.disk1]\n",
    "[[link]]\n",
    "[[isl]]\n",
    "[[zone]]\n",
    "[zoning]\n",
    "[workload.reads]\n",
    "[workload.\"w{1..3}\"]\n",
    "[[fault]]\n",
    "[[expect]]\n",
    "[timers]\n",
    "from = ",
    "to = ",
    "name = ",
    "count = ",
    "rate = ",
    "length = ",
    "bundle = true\n",
    "hosts = ",
    "targets = ",
    "size = ",
    "arrivals = ",
    "depth = ",
    "members = ",
    "kind = ",
    "link = ",
    "port = ",
    "end = ",
    "switch = ",
    "at = ",
    "until = ",
    "for = ",
    "hbas = ",
    "ports = ",
    "domain = ",
    "wwpn = ",
    "duration = ",
    "warmup = ",
    "location = ",
    "stride = ",
    "hot = ",
    "bus = ",
    "luns = ",
    "spread = ",
    "metric = ",
    "max = ",
    "default = ",
    "preset = ",
    "probability = ",
    "delay = ",
    "\"server{1..3}\"\n",
    "\"server1\"\n",
    "\"disk1\"\n",
    "\"sw1\"\n",
    "\"server{1..9}:{0..9}\"\n",
    "\"x{1..65535}\"\n",
    "\"{1..65535}{1..65535}\"\n",
    "\"1s\"\n",
    "\"2GFC\"\n",
    "\"50m\"\n",
    "\"4KiB\"\n",
    "\"poisson 5/s\"\n",
    "\"ffffffffffffffff\"\n",
    "\"ISL1\"\n",
    "\"link-down\"\n",
    "\"lost-r-rdy\"\n",
    "\"slow-receiver\"\n",
    "\"switch-reset\"\n",
    "\"link-up\"\n",
    "\"strided\"\n",
    "\"auto\"\n",
    "\"\"\n",
    "0\n",
    "1\n",
    "16384\n",
    "65535\n",
    "-1\n",
    "1e308\n",
    "nan\n",
    "18446744073709551615\n",
    "true\n",
    "{ process = \"on-off\", rate = \"5/s\", on = \"1s\", off = \"0s\" }\n",
    "{ \"4KiB\" = 1, \"8KiB\" = 1e300 }\n",
    "[\"server1\", \"disk1\"]\n",
    "[1, 2]\n",
    "{ bits = 8 }\n",
    "# note\n",
    "\n",
    " ",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "é",
    "\u{0}",
    "\t",
    "\r\n",
];

fn check(text: &str, sets: &[Override]) {
    let began = Instant::now();
    match sanloom_lab::load("lab.toml", text, sets) {
        Ok(loaded) => {
            assert!(loaded.lab.validate().is_empty());
            let report = sanloom_lab::topology::Report::of(&loaded.lab, &loaded.isolated);
            assert!(!report.redundancy().is_empty());
            assert!(!sanloom_lab::topology::svg(&loaded.lab, &loaded.isolated, None).is_empty());
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            let rendered = diagnostics.render(false);
            assert!(!rendered.contains('\u{1b}'));
            for d in &diagnostics {
                let source = if d.source == "--set" { None } else { Some(text) };
                assert!(source.is_none_or(|text| text.get(d.span.clone()).is_some()));
            }
        }
    }
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,400}") {
        check(&text, &[]);
    }

    #[test]
    fn words_of_lab_files_in_any_order_never_panic(words in prop::collection::vec(0..WORDS.len(), 0..60)) {
        let text: String = words.into_iter().map(|w| WORDS[w]).collect();
        check(&text, &[]);
    }

    #[test]
    fn a_damaged_example_never_panics(at in 0.0..1.0_f64, remove in 0usize..40, insert in 0..WORDS.len()) {
        let text = include_str!("../../../../examples/workload-mix.toml");
        let mut start = (text.len() as f64 * at) as usize;
        while !text.is_char_boundary(start) { start -= 1; }
        let mut end = (start + remove).min(text.len());
        while !text.is_char_boundary(end) { end -= 1; }
        let damaged = format!("{}{}{}", &text[..start], WORDS[insert], &text[end.max(start)..]);
        check(&damaged, &[]);
    }

    #[test]
    fn arbitrary_overrides_never_panic(key in "[a-z.*{}0-9\"]{0,30}", value in ".{0,30}") {
        let text = include_str!("../../../../examples/tiny.toml");
        check(text, &[Override { key, value }]);
    }
}

#[test]
fn files_with_excessive_ranges_are_diagnosed_quickly() {
    let many = |line: &str, n: usize| line.repeat(n);
    let sections: String = (0..5_000)
        .map(|i| format!("[workload.\"w{i}x{{1..500}}\"]\nhosts = \"x{{1..60000}}\"\ntargets = \"y{{1..60000}}\"\n"))
        .collect();
    let zones = format!(
        "[host.\"h{{1..30000}}\"]\n[storage.\"d{{1..30000}}\"]\nluns = 16384\n{}",
        many("[[zone]]\nname = \"z{1..60000}\"\nmembers = [\"h{1..30000}\", \"d{1..30000}\"]\n", 50)
    );
    let mut texts = vec![
        sections,
        zones,
        format!("x = {}{}", many("[", 100_000), many("]", 100_000)),
        format!("x = {}", many("{a=", 100_000)),
        many("[[link]]\n", 100_000),
        many("a = 1\n", 100_000),
        many("a.", 100_000),
        many("=", 100_000),
        many("[host.x]\nnope = 5\n", 20_000),
        format!("[run]\nduration = \"{}s\"", many("9", 100_000)),
        format!("[workload.w]\nhosts = [{}]", many("\"h\",", 200_000)),
    ];
    texts.push("[switch.\"sw{1..65535}\"]\n[host.\"h{1..65535}\"]\nhbas = 256\n[storage.\"d{1..65535}\"]\nluns = 16384\nports = 256\n[[link]]\nfrom = \"h{1..65535}\"\nto = \"sw{1..65535}\"\ncount = 4096\n".to_owned());
    texts.push("[storage.\"d{1..30000}\"]\niscsi = { portals = \"127.0.0.1:3260\", initiators = \"iqn.2026-11.net.example:h{1..60000}\" }\n".to_owned());
    for text in texts {
        let began = Instant::now();
        let diagnostics = sanloom_lab::load("lab.toml", &text, &[]).unwrap_err();
        assert!(!diagnostics.render(false).is_empty());
        let start: String = text.chars().take(60).collect();
        assert!(began.elapsed() < TIMEOUT, "{start}: {:?}", began.elapsed());
    }
}

#[test]
fn the_largest_lab_loads_in_time() {
    let text = "[switch.\"edge{1..200}\"]\n[switch.core]\n[host.\"h{1..32000}\"]\n[storage.\"d{1..32000}\"]\n\
        [[link]]\nfrom = \"h{1..32000}\"\nto = \"edge{1..100}\"\n[[link]]\nfrom = \"d{1..32000}\"\nto = \"edge{101..200}\"\n\
        [[isl]]\nfrom = \"edge{1..200}\"\nto = \"core\"\ncount = 4\n\
        [workload.all]\nhosts = \"h{1..32000}\"\ntargets = \"d{1..32000}\"\n";
    let began = Instant::now();
    let lab = sanloom_lab::load("lab.toml", text, &[]).unwrap_or_else(|e| panic!("{e}")).lab;
    let report = sanloom_lab::topology::Report::of(&lab, &[]);
    assert_eq!(report.paths.iter().map(|p| p.pairs).sum::<u64>(), 32_000 * 32_000);
    assert!(sanloom_lab::topology::svg(&lab, &[], None).len() < 1_000_000);
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
}
