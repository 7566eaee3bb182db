//! `sanloom fabric merge-preview` compared with the behaviour of switches on a real link.

use crate::commands::tool::Bench;
use sanloom_api::view::{Table, View};
use sanloom_api::zoning::MergePreview;

/// A switch with a host and storage; `keys` are lines of the switch.
fn part(name: &str, keys: &str) -> String {
    format!(
        "[switch.{name}]\nports = 8\n{keys}\n[host.h{name}]\n[storage.d{name}]\n\
         [[link]]\nfrom = \"h{name}\"\nto = \"{name}\"\n[[link]]\nfrom = \"d{name}\"\nto = \"{name}\"\n"
    )
}

/// State and reason of each end of the link after 30 s of light.
fn simulated(bench: &Bench, a: &str, b: &str) -> Vec<(String, Option<String>)> {
    let link = "[[isl]]\nname = \"bridge\"\nfrom = \"a\"\nto = \"b\"\n\
                [[fault]]\nat = \"0s\"\nuntil = \"1s\"\nkind = \"link-down\"\nlink = \"bridge\"\n";
    bench.write("both.toml", &format!("[run]\nduration = \"32s\"\n{}{}{link}", part("a", a), part("b", b)));
    let ran = bench.run("show fabric both.toml --at 31s --json");
    let view: View = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let Table::Fabric(fabric) = view.table else { panic!("{}", ran.stdout) };
    fabric.switches.into_iter().flat_map(|switch| switch.isls).map(|isl| (isl.state, isl.reason)).collect()
}

#[test]
fn a_preview_agrees_with_the_behaviour_of_switches() {
    let bench = Bench::new("joins");
    let cases = [
        ("domain = 1", "domain = 2", None),
        ("domain = 1", "domain = 2\nfabric = { flow_control = \"vendor\" }", Some("flow-control")),
        ("domain = 1", "domain = 2\nfabric = { flow_control = \"vendor-first\" }", None),
        ("domain = 1", "domain = 2\nfabric = { zoning = \"no\" }", Some("zone-merge-failure")),
        ("domain = 1\nfabric = { priority = 255 }", "domain = 2\nfabric = { priority = 255 }", Some("no-principal")),
        ("domain = 1", "domain = 2\nfabric = { priority = 255 }", None),
        ("domain = 5", "domain = 5", Some("domain-overlap")),
        ("domain = 5\nfabric = { reconfigure = true }", "domain = 5", Some("domain-overlap")),
        ("domain = 5\nfabric = { reconfigure = true }", "domain = 5\nfabric = { reconfigure = true }", None),
    ];
    for (a, b, reason) in cases {
        bench.write("a.toml", &part("a", a));
        bench.write("b.toml", &part("b", b));
        let ran = bench.run("fabric merge-preview a.toml b.toml --json");
        let answer: MergePreview = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        let found: Vec<&str> = answer.isolation.iter().map(|cause| cause.reason.as_str()).collect();
        assert_eq!(found, Vec::from_iter(reason), "{a} | {b}: {answer:?}");
        assert!(answer.isolation.iter().all(|cause| !cause.remedy.is_empty() && !cause.text.is_empty()));
        let ends = simulated(&bench, a, b);
        let up = ends.iter().all(|(state, _)| state == "up");
        assert_eq!((answer.joins, ends.len()), (up, 2), "{a} | {b}: {ends:?}");
        if !up {
            assert!(ends.iter().any(|(state, reason)| state == "isolated" && reason.is_some()), "{a} | {b}: {ends:?}");
        }
    }
}

#[test]
fn a_fabric_in_enhanced_mode_joins_no_other() {
    let bench = Bench::new("join-mode");
    let enhanced = "[zoning]\nmerge = \"enhanced\"\n";
    for (of_b, joins) in [("", false), (enhanced, true)] {
        bench.write("a.toml", &format!("{enhanced}{}", part("a", "domain = 1")));
        bench.write("b.toml", &format!("{of_b}{}", part("b", "domain = 2")));
        let ran = bench.run("fabric merge-preview a.toml b.toml --json");
        let answer: MergePreview = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        assert_eq!((answer.joins, answer.isolation.len()), (joins, usize::from(!joins)), "{answer:?}");
        if let Some(cause) = answer.isolation.first() {
            assert_eq!(cause.reason, "zone-merge-failure");
            assert!(cause.text.contains("is in enhanced zoning mode"), "{}", cause.text);
        }
    }
}

#[test]
fn fabrics_in_enhanced_mode_agree_on_merge_control() {
    let bench = Bench::new("join-control");
    let zoning = |control: &str| format!("[zoning]\nmerge = \"enhanced\"\nmerge_control = \"{control}\"\n");
    bench.write("a.toml", &format!("{}{}", zoning("restrict"), part("a", "domain = 1")));
    for (of_b, joins) in [("allow", false), ("restrict", true)] {
        bench.write("b.toml", &format!("{}{}", zoning(of_b), part("b", "domain = 2")));
        let ran = bench.run("fabric merge-preview a.toml b.toml --json");
        let answer: MergePreview = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        assert_eq!((answer.joins, answer.isolation.len()), (joins, usize::from(!joins)), "{answer:?}");
        if let Some(cause) = answer.isolation.first() {
            assert_eq!(cause.reason, "zone-merge-failure");
            assert!(cause.text.contains("merge control is `"), "{}", cause.text);
        }
    }
}

#[test]
fn switches_with_one_name_are_named() {
    let bench = Bench::new("join-names");
    let wwn = |last: u8| format!("wwn = \"10:00:00:05:1e:00:00:{last:02x}\"\n");
    let labs = |of_a: &str, of_b: &str| {
        bench.write("a.toml", &part("a", &format!("domain = 1\n{of_a}")));
        bench.write("b.toml", &part("b", &format!("domain = 2\n{of_b}")));
        let ran = bench.run("fabric merge-preview a.toml b.toml --json");
        serde_json::from_str::<MergePreview>(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr))
    };
    let same = labs(&wwn(7), &wwn(7));
    assert_eq!((same.joins, same.isolation.len(), same.made_up_names.len()), (false, 1, 0), "{same:?}");
    let text = "`a` of the first fabric and `b` of the second have the same world-wide name, 10:00:00:05:1e:00:00:07";
    assert_eq!((same.isolation[0].reason.as_str(), same.isolation[0].text.as_str()), ("loopback", text));
    let more = labs(&format!("{}fabric = {{ flow_control = \"vendor\" }}", wwn(7)), &wwn(7));
    let reasons: Vec<&str> = more.isolation.iter().map(|cause| cause.reason.as_str()).collect();
    assert_eq!(reasons, ["loopback", "flow-control"], "what is behind it is found, too");
    let apart = labs(&wwn(7), &wwn(8));
    assert!(apart.joins && apart.made_up_names.is_empty(), "{apart:?}");
    let made_up = labs("", "");
    assert_eq!((made_up.joins, &made_up.made_up_names[..]), (true, &[["a", "b"].map(str::to_owned)][..]));
    let half = labs("", "wwn = \"10:00:02:53:4c:00:00:01\"");
    assert!(half.joins && half.made_up_names.len() == 1, "the first lab's name is made up: {half:?}");
}

#[test]
fn every_obstacle_is_named_with_the_values_of_both_sides() {
    let bench = Bench::new("join-all");
    bench.write("a.toml", &format!("[timers]\nr_a_tov = \"8s\"\n{}", part("a", "domain = 3")));
    let b = "domain = 3\nduplicate_names = \"old-wins\"\nfabric = { flow_control = \"vendor\", zoning = \"no\" }";
    bench.write("b.toml", &part("b", b));
    insta::assert_snapshot!(bench.run("fabric merge-preview a.toml b.toml").snapshot());
}

#[test]
fn a_lab_of_two_fabrics_requires_the_switch_of_the_link() {
    let bench = Bench::new("join-two");
    // A lab that is isolated from the beginning also counts as two.
    bench.write("apart.toml", include_str!("../../../../../examples/vendor-flow-control.toml"));
    let ran = bench.run("fabric merge-preview apart.toml apart.toml --from sanbox2");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("holds 2 fabrics: name the switch at the end of the link with --to"), "{}", ran.stderr);
    let text = bench.run("fabric merge-preview tiny.toml tiny.toml").stdout;
    assert!(text.contains("`hub` of the first lab and `hub` of the second would have one world-wide name"), "{text}");
    assert!(text.lines().all(|line| !line.trim_end().ends_with(':')), "nothing is announced that is not there: {text}");
    bench.write("two.toml", &(part("x", "domain = 7") + &part("y", "domain = 8")));
    bench.write("one.toml", &part("a", "domain = 8"));
    insta::assert_snapshot!("two_fabrics", bench.run("fabric merge-preview two.toml one.toml").snapshot());
    insta::assert_snapshot!("no_such_switch", bench.run("fabric merge-preview two.toml one.toml --from z").snapshot());
    for (from, code) in [("x", 0), ("y", 1)] {
        assert_eq!(bench.run(&format!("fabric merge-preview two.toml one.toml --from {from}")).code, code, "{from}");
    }
    // Only the fabric at the end of the link gains access.
    let ran = bench.run("fabric merge-preview two.toml one.toml --from x --json");
    let answer: MergePreview = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((answer.first_switch.as_str(), answer.second_switch.as_str()), ("x", "a"));
    assert!(answer.gains_between.iter().all(|pair| !pair.0.contains('y')), "{answer:?}");
    assert!(!answer.gains_between.is_empty());
}
