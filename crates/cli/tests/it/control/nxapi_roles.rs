//! NX-API: changes of roles, and of the kind of an alias, as scripts of `export zones` make them.

use super::nxapi::{configure, show, start};
use std::collections::BTreeSet;

#[test]
fn the_undo_of_a_change_of_roles_restores_the_zone_and_an_alias_changes_its_kind() {
    let mut lab = start("nxapi-roles");
    let [a, b, c] = ["10:01", "20:01", "30:01"].map(|end| format!("pwwn 50:25:a0:00:00:00:{end}"));
    let member = |line: &str| format!("member {line}");
    let grp = format!("device-alias name grp {a}");
    configure(&lab, &["device-alias database", &grp, "device-alias commit", "zone name trio vsan 1"]);
    let plain = ["zone name trio vsan 1", "member device-alias grp", &member(&b), &member(&c)];
    configure(&lab, &plain);
    let before = lab.state();
    configure(
        &lab,
        &[
            "zone smart-zoning enable vsan 1",
            "zone name trio vsan 1",
            "no member device-alias grp",
            "member device-alias grp target",
            &format!("no member {b}"),
            &format!("member {b} init"),
            &format!("no member {c}"),
            &format!("member {c} init"),
        ],
    );
    assert!(lab.state().iter().any(|line| line.starts_with("zone trio *grp;")), "{:?}", lab.state());
    configure(
        &lab,
        &[
            "zone name trio vsan 1",
            &format!("no member {c} init"),
            &member(&c),
            "no member device-alias grp target",
            "member device-alias grp",
            &format!("no member {b} init"),
            &member(&b),
            "no zone smart-zoning enable vsan 1",
        ],
    );
    let sorted = |lines: &BTreeSet<String>| {
        let parts = |line: &String| line.split([';', ' ']).map(str::to_owned).collect::<BTreeSet<_>>();
        lines.iter().map(parts).collect::<Vec<_>>()
    };
    assert_eq!(sorted(&lab.state()), sorted(&before));
    // Explicit roles of both kinds stay roles, because a further target may follow.
    configure(
        &lab,
        &[
            "zone name pair vsan 1",
            "zone smart-zoning enable vsan 1",
            "zone name pair vsan 1",
            &format!("member {b} both"),
        ],
    );
    configure(&lab, &["zone name pair vsan 1", &format!("member {c} target"), &format!("no member {c} target")]);
    assert!(show(&lab, "show zone name pair vsan 1").contains(" both\n"), "{}", show(&lab, "show zone vsan 1"));
    // The role is gone with the member, so that the zone is plain again.
    let changes = [&*format!("member {c} target"), &format!("no member {b}"), &member(&b), &format!("no member {c}")];
    configure(&lab, &[&["zone name pair vsan 1"][..], &changes].concat());
    assert!(!show(&lab, "show zone name pair vsan 1").contains(" both\n"), "{}", show(&lab, "show zone vsan 1"));
    // The alias gets a second member: a script of the exporter deletes it before it is an fcalias.
    configure(&lab, &["no zone name pair vsan 1", "zone name trio vsan 1", &member(&a), "no member device-alias grp"]);
    configure(&lab, &["device-alias database", "no device-alias name grp", "device-alias commit"]);
    configure(&lab, &["fcalias name grp vsan 1", &member(&a), "member pwwn 50:25:a0:00:00:00:40:01"]);
    configure(&lab, &["zone name trio vsan 1", "member fcalias grp", &format!("no member {a}")]);
    assert!(lab.state().iter().any(|line| line.starts_with("zone trio") && line.contains("grp")), "{:?}", lab.state());
    lab.instance.stop();
}
