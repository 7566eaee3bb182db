//! `sanloom zone` at a running fabric of two switches.

use crate::control::instance::Instance;
use crate::control::zoned::two_disks;
use sanloom_api::zoning::{ZoneExplanation, ZonePreview, ZoneStatus};

const THIRD_DISK: &str = r#"
[storage.disk3]
lun_size = "1MiB"

[[link]]
from = "disk3"
to = "sw2"

[[isl]]
from = "sw1"
to = "sw2"
"#;

const EDITS: &str = r#"
[[edit]]
action = "create"
zone = "z13"
members = ["disk1", "disk3"]

[[edit]]
action = "delete"
zone = "z12"
"#;

fn fabric(name: &str) -> Instance {
    let two_disks = two_disks("[switch.\"sw{1..2}\"]\ndomain = 1\n", "sw1");
    let instance = Instance::start(name, &(two_disks + THIRD_DISK));
    instance.write("edits.toml", EDITS);
    instance.wait("three ports at each switch", |instance| {
        ["sw1", "sw2"].iter().all(|switch| instance.zones(switch).ports.len() == 3)
    });
    instance
}

fn status(text: &str) -> ZoneStatus {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_transaction_is_edited_previewed_committed_and_rolled_back_in_the_whole_fabric() {
    let mut instance = fabric("transaction");
    let before = instance.zones("sw1");
    assert_eq!((before.state.zones.as_slice(), before.kept), (["z12".to_owned()].as_slice(), true));
    assert_eq!(before.committed, instance.zones("sw2").committed);

    let shown = instance.run("zone edit LAB --edit @edits.toml --switch sw2").good();
    for part in ["transaction open", "new", "z13", "gone", "z12"] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    let open = status(&instance.run("zone show LAB --switch sw2 --json").good());
    assert!(open.working.is_some_and(|working| working.zones.contains_key("z13")));
    assert_eq!(open.committed, before.committed, "an edit changes nothing");

    let preview = instance.run("zone preview LAB --live --switch sw2 --json").good();
    let preview: ZonePreview = serde_json::from_str(&preview).unwrap();
    let pairs = |list: &[sanloom_api::zoning::PortPair]| -> Vec<String> {
        list.iter().map(|pair| format!("{} {}", pair.0, pair.1)).collect()
    };
    assert_eq!(pairs(&preview.gains), ["disk1:0 disk3:0"]);
    assert_eq!(pairs(&preview.loses), ["disk1:0 disk2:0"]);

    instance.run("zone commit LAB --switch sw2").good();
    // The other switch has the change when the commit is acknowledged.
    let (one, two) = (instance.zones("sw1"), instance.zones("sw2"));
    assert_eq!(one.state.zones, ["z13"]);
    assert_eq!(one.state.generation, two.state.generation);
    assert_eq!((two.working, one.can_roll_back), (None, true));
    let explain = |instance: &Instance| -> ZoneExplanation {
        let text = instance.run("zone explain LAB disk1 disk3 --live --switch sw1 --json").good();
        serde_json::from_str(&text).unwrap()
    };
    let answer = explain(&instance);
    assert!(answer.allowed && answer.pairs[0].second.switch == "sw2", "{answer:?}");

    instance.run("zone rollback LAB --switch sw1").good();
    assert_eq!(instance.zones("sw2").state, before.state);
    assert!(!explain(&instance).allowed);
    instance.stop();
}

#[test]
fn impossible_zone_requests_are_rejected_with_a_reason_and_without_effect() {
    let mut instance = fabric("refused");
    let before = instance.zones("sw1").state;
    instance.run("zone commit LAB").refused("no transaction is open at sw1");
    instance.run("zone abort LAB").refused("no transaction is open at sw1");
    instance.run("zone rollback LAB").refused("sw1 has no earlier zone database to roll back to");
    instance.run("zone show LAB --switch sw9").refused("this instance has no switch `sw9`; it has sw1, sw2");
    instance.write("bad.toml", "[[edit]]\naction = \"delete\"\nzone = \"z99\"\n");
    instance.run("zone edit LAB --edit @bad.toml").refused("no zone `z99`");
    instance.run("zone preview LAB").refused("--edit");

    // An aborted edit is discarded.
    instance.run("zone edit LAB --edit @edits.toml").good();
    let after = status(&instance.run("zone abort LAB --json").good());
    assert_eq!((after.working, after.state.clone()), (None, before.clone()));

    // Of two transactions based on the same database, the second is rejected.
    instance.run("zone edit LAB --edit @edits.toml --switch sw1").good();
    instance.write("other.toml", "[[edit]]\naction = \"default\"\ndefault = \"open\"\n");
    instance.run("zone edit LAB --edit @other.toml --switch sw2").good();
    instance.run("zone commit LAB --switch sw2").good();
    instance.run("zone commit LAB --switch sw1").refused("not committed");
    assert_eq!(instance.zones("sw1").state.zones, ["z12"]);
    instance.run("zone abort LAB --switch sw1").good();
    instance.run("zone edit LAB --edit @edits.toml --switch sw1").good();
    instance.run("zone commit LAB --switch sw1").good();
    assert_eq!(instance.zones("sw2").state.zones, ["z13"]);
    instance.stop();
}
