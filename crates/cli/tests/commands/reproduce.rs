//! `sanloom reproduce`, as a user meets it.

use crate::tool::Bench;
use std::collections::BTreeSet;

#[test]
fn gives_every_number_of_the_paper_as_json() {
    let bench = Bench::new("reproduce-json");
    let ran = bench.run("reproduce sansim --duration 40ms --no-report --json -");
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let numbers = list.as_array().expect("a list");
    let fields = ["id", "note", "ok", "ours", "paper", "tolerance", "unit", "what"];
    let mut ids = BTreeSet::new();
    for number in numbers {
        let number = number.as_object().expect("an object");
        assert_eq!(
            number.keys().collect::<BTreeSet<_>>(),
            fields.iter().map(|f| f.to_string()).collect::<Vec<_>>().iter().collect()
        );
        assert!(ids.insert(number["id"].as_str().expect("an id").to_owned()), "{number:?} stands there twice");
        assert!(number["paper"].is_number());
        assert_eq!(number["ok"].is_boolean(), number["tolerance"].is_number(), "{number:?}");
        assert!(number["ok"].is_boolean() || number["ok"].is_null());
        assert!(!number["note"].as_str().unwrap_or("").is_empty(), "{number:?}");
    }
    for id in [
        "case-i-32k-s1-4",
        "case-ii-32k-s5-8",
        "case-iii-32k-s5-8",
        "case-iv-32k-s1-4",
        "case-iv-2k-mean",
        "case-iv-2k-s1-4",
        "case-iv-2k-s5-8",
        "case-iv-2k-response",
        "device-32k",
        "device-transactions",
        "case-i-32k-s1-4-default",
    ] {
        assert!(ids.contains(id), "{id}");
    }
    assert!(numbers.iter().any(|number| number["ok"].is_null()), "the open numbers are not judged");
    let missed = numbers.iter().any(|number| number["ok"] == false);
    assert_eq!(ran.code, i32::from(missed));
}

#[test]
fn draws_figure_9_with_four_panels() {
    let bench = Bench::new("reproduce-figure");
    let ran = bench.run("reproduce sansim --duration 20ms --figure9 figure.json --html page.html");
    assert!(ran.code <= 1, "{}", ran.stderr);
    let figure: serde_json::Value = serde_json::from_str(&bench.read("figure.json")).expect("JSON");
    let panels = figure["panels"].as_array().expect("panels");
    assert_eq!(panels.len(), 4);
    for panel in panels {
        let curves = panel["curves"].as_array().expect("curves");
        assert_eq!(curves.len(), 4);
        for curve in curves {
            assert_eq!(curve["offered"].as_array().map(Vec::len), curve["throughput"].as_array().map(Vec::len));
        }
    }
    assert!(bench.read("page.html").contains("Case IV: ISL1 and ISL8 failure"));
    for file in ["report.html", "numbers.json", "figure9.svg", "figure9.json"] {
        assert!(!bench.read(&format!("sansim.sanloom-report/{file}")).is_empty(), "{file}");
    }
}

#[test]
fn reproduces_the_npiv_paper_with_its_figures() {
    let bench = Bench::new("reproduce-npiv");
    let ran = bench.run("reproduce npiv --report out --json -");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let ours = |id: &str| {
        let found = list.as_array().expect("a list").iter().find(|number| number["id"] == id);
        found.unwrap_or_else(|| panic!("{id}"))["ours"].as_f64().expect("a number")
    };
    for (id, comparisons) in [
        ("comparisons-port2-1", 512.0),
        ("comparisons-port2-2", 768.0),
        ("comparisons-port2-255", 65_536.0),
        ("comparisons-port3-255", 131_072.0),
        ("comparisons-port2-modified", 256.0),
        ("comparisons-port3-modified", 512.0),
    ] {
        assert_eq!(ours(id), comparisons, "{id}");
    }
    let figures: serde_json::Value = serde_json::from_str(&bench.read("out/figures.json")).expect("JSON");
    let curves: Vec<usize> =
        figures.as_array().expect("plots").iter().map(|plot| plot["curves"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(curves, [8, 5, 2, 4]);
    let page = bench.read("out/report.html");
    for text in
        ["Figure 11", "Figure 8, means over port 1: FDISC to", "npiv-migration.toml", "4 of 4 expectations hold"]
    {
        assert!(page.contains(text), "{text}");
    }
    // Of the machine that moved only the last login stands, of those of the storm only what was not repeated.
    let logins = |lab: &str| {
        let sentence = page.split(&format!("examples/{lab}.toml (")).nth(1).unwrap_or_else(|| panic!("{lab}"));
        let number = |before: &str| {
            let text = sentence.split(before).next().and_then(|text| text.rsplit(' ').next());
            text.and_then(|text| text.parse::<u64>().ok()).unwrap_or_else(|| panic!("{lab}: {before}"))
        };
        (number(" logins accepted"), number(" of them stand at the end"))
    };
    bench.write("migration.toml", include_str!("../../../../examples/npiv-migration.toml"));
    let shown = bench.run("show flogi migration.toml --at 2s --json");
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let standing = shown["table"]["logins"].as_array().or(shown["logins"].as_array()).expect("a table").len() as u64;
    assert_eq!(logins("npiv-migration").1, standing);
    for lab in ["npiv-migration", "npiv-login-storm"] {
        let (accepted, standing) = logins(lab);
        assert!(0 < standing && standing < accepted, "{lab}: {standing} of {accepted}");
    }
    // Where the paper stops: the first login that takes longer than E_D_TOV, its repetition, and what follows.
    for text in [
        "the FDISC of virtual port 204 on port 5 is the first that takes longer than E_D_TOV",
        "a logout and a login, each with all comparisons",
        "never gets done: after a minute",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let of = |id: &str, field: &str| {
        let found = list.as_array().expect("a list").iter().find(|number| number["id"] == id);
        found.and_then(|number| number[field].as_str()).unwrap_or_else(|| panic!("{id}: {field}")).to_owned()
    };
    assert!(of("latency-port3-modified", "note").contains("the other 30 ms are not explained by the paper"));
    assert!(of("comparisons-port2-255", "note").contains("leaves the storage port out of its counts"));
    assert!(
        of("comparisons-port2-255", "what").contains("(256 more with the storage)"),
        "{}",
        of("comparisons-port2-255", "what")
    );
}
