//! Bundles of links between switches during line failures: their cost, and in-order delivery.

use crate::labs::{check, lab_with, link, run, watched};
use sanloom_fc::fabric::Leg;
use sanloom_sim::net::ObservedKind;
use sanloom_sim::run::{Blind, world_at};
use std::collections::BTreeMap;

fn example(name: &str) -> String {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn down(lines: &[&str], at: &str, until: &str) -> String {
    let one = |line: &&str| {
        format!("[[fault]]\nat = \"{at}\"\nuntil = \"{until}\"\nkind = \"link-down\"\nlink = \"{line}\"\n")
    };
    lines.iter().map(one).collect()
}

/// By Cisco's rule, four lines cost 125 and the detour costs 250.
#[test]
fn a_bundle_costs_more_with_each_line_that_fails_and_less_when_they_are_back() {
    let lines = ["direct1", "direct2", "direct3", "direct4"];
    // Failed lines, and whether the paths from end to end then include the bundle and the detour.
    for (failed, bundle, detour) in
        [(0, true, false), (1, true, false), (2, true, true), (3, false, true), (4, false, true)]
    {
        let lab = lab_with(&example("fspf-costs-cisco"), &down(&lines[..failed], "50ms", "200ms"), &[]);
        let legs = |at_ms: u64| {
            let world = world_at(&lab, Some(at_ms * 1_000_000_000), &mut Blind);
            let legs = world.control.switches[0].machine.paths().routes().find(|(domain, _)| *domain == 3);
            let legs = legs.map(|(_, legs)| legs.to_vec()).unwrap_or_default();
            let bundles = legs.iter().filter(|leg| matches!(leg, Leg::Bundle(_))).count();
            (bundles == 1, legs.len() > bundles)
        };
        assert_eq!(legs(40), (true, false), "before");
        assert_eq!(legs(150), (bundle, detour), "{failed} lines have failed");
        // If all lines fail, the switches lose each other and the fabric is rebuilt.
        if failed < 4 {
            assert_eq!(legs(290), (true, false), "{failed} lines are back");
        }
    }
    let crossed = |failed: usize| {
        let lab = lab_with(&example("fspf-costs-cisco"), &down(&lines[..failed], "60ms", "290ms"), &[]);
        let results = run(&lab);
        let detour = results.links.iter().find(|link| link.name == "first").unwrap();
        detour.forward.data_bytes + detour.backward.data_bytes
    };
    assert_eq!(crossed(1), 0);
    assert!(crossed(3) > 1_000_000, "data take the detour when it is cheaper");
}

/// Frames of an exchange arrive in the order of sending, although the line that carries them fails
/// and recovers.
#[test]
fn frames_of_an_exchange_keep_their_order_while_a_line_of_the_bundle_fails() {
    let faults = down(&["T2"], "60ms", "70ms") + &down(&["T1"], "80ms", "85ms") + &down(&["T4"], "83ms", "95ms");
    // Lines of 2 km always carry some frames.
    let short = ["run.duration=100ms", "host.*.command_timeout=20ms", "isl.*.length=2km"];
    let lab = lab_with(&example("trunk-vs-spray"), &faults, &short);
    let of_trunk = (1..=4).flat_map(|n| [format!("server{n}-trunk1"), format!("disk{n}-trunk2")]);
    // The N_Port is the first end of its link, so this is the lane from the switch to the N_Port.
    let lanes: Vec<u32> = of_trunk.map(|name| 2 * u32::from(link(&lab, &name)) + 1).collect();
    let mut last: BTreeMap<_, u16> = BTreeMap::new();
    let (mut frames, mut overtaken) = (0, 0);
    let finished = watched(&lab, &mut |_, observed| {
        for one in observed.iter().filter(|one| lanes.contains(&one.lane)) {
            let ObservedKind::Frame { frame, .. } = &one.kind else { continue };
            if !frame.is_data() {
                continue;
            }
            let exchange = (frame.s_id(), frame.d_id(), frame.ox_id(), frame.rx_id(), frame.seq_id());
            // A reused exchange number starts again at SEQ_CNT 0.
            let before = last.insert(exchange, frame.seq_cnt()).filter(|_| frame.seq_cnt() > 0);
            frames += 1;
            overtaken += u64::from(before.is_some_and(|before| before >= frame.seq_cnt()));
        }
    });
    check(&finished);
    let lost = finished.results.drops.get("link_down").copied().unwrap_or(0);
    assert!(frames > 10_000 && lost > 0, "{frames} frames, {lost} of them lost with their lines");
    assert_eq!(overtaken, 0);
}
