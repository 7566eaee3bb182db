//! `sanloom zone` at a running fabric of two switches.

use crate::control::instance::Instance;
use crate::control::zoned::two_disks;
use sanloom_api::control::{Answer, ZoneAction, ZoneClient};
use sanloom_api::zone_database::Edit;
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

fn client(session: &str, timeout_s: Option<u32>) -> ZoneClient {
    let (session, user, interface) = (session.to_owned(), "admin".to_owned(), "REST".to_owned());
    ZoneClient { session, user, interface, timeout_s, ..ZoneClient::default() }
}

fn zones(instance: &Instance, client: &ZoneClient, checksum: Option<&str>, action: ZoneAction) -> Answer {
    let (client, checksum) = (client.clone(), checksum.map(str::to_owned));
    instance.zone(Some("sw1"), ZoneAction::As { client, checksum, action: Box::new(action) }).unwrap()
}

#[track_caller]
fn status_of(answer: Answer) -> ZoneStatus {
    match answer {
        Answer::Zones(status) => *status,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(answer: Answer, why: &str) {
    let Answer::Failed(error) = answer else { panic!("{answer:?}") };
    assert!(error.reason.contains(why), "no `{why}` in {}", error.reason);
}

#[test]
fn a_transaction_belongs_to_its_client_and_ends_when_it_is_not_used() {
    let mut instance = fabric("owner");
    let alias = |name: &str| {
        let edit = Edit::CreateAlias { name: name.to_owned(), members: vec!["1,1".to_owned()] };
        ZoneAction::Edit { edits: vec![edit] }
    };
    let (one, two) = (client("1", None), client("2", Some(1)));
    let before = instance.zones("sw1");
    assert_eq!((before.checksum.len(), before.transaction), (32, None));

    // A wrong checksum changes nothing.
    refused(zones(&instance, &one, Some("00"), alias("a")), "the checksum 00 is not that of the zone database of sw1");
    let open = status_of(zones(&instance, &one, Some(&before.checksum), alias("a"))).transaction.unwrap();
    assert_eq!((open.token, open.timeout_s, open.remaining_s), (1, Some(300), Some(300)));
    for action in [alias("b"), ZoneAction::Commit, ZoneAction::Abort, ZoneAction::Rollback] {
        refused(zones(&instance, &two, None, action), "an outstanding transaction of the user admin of REST");
    }
    instance.run("zone clear LAB --switch sw1").refused("an outstanding transaction");
    let shown = instance.run("zone show LAB --switch sw1").good();
    assert!(shown.contains("transaction 1 belongs to admin (REST, )"), "{shown}");
    assert!(shown.contains(&format!("checksum {}", before.checksum)), "{shown}");
    let after = status_of(zones(&instance, &one, Some(&before.checksum), ZoneAction::Commit));
    assert_ne!(after.checksum, before.checksum);
    assert_eq!((after.transaction, &after.committed.aliases["a"]), (None, &vec!["1,1".to_owned()]));
    assert_eq!(instance.zones("sw2").checksum, after.checksum);

    // Without a request of its client, a transaction ends.
    assert_eq!(status_of(zones(&instance, &two, None, alias("c"))).transaction.unwrap().token, 2);
    instance.wait("the end of the transaction", |instance| instance.zones("sw1").transaction.is_none());
    let late = "no transaction is open at sw1: that of this client has ended, because it was not used for 1 s";
    refused(zones(&instance, &two, None, ZoneAction::Commit), late);
    refused(zones(&instance, &two, None, ZoneAction::Commit), "no transaction is open at sw1; begin one");
    // The administrator ends a transaction, and so does a change from another switch.
    assert_eq!(status_of(zones(&instance, &one, None, alias("d"))).transaction.unwrap().token, 3);
    instance.run("zone abort LAB --switch sw1").good();
    refused(zones(&instance, &one, None, alias("e")), "because a user of the control socket has aborted it");
    assert_eq!(status_of(zones(&instance, &one, None, alias("e"))).transaction.unwrap().token, 4);
    instance.commit_alias(Some("sw2"), "f", vec!["1,2".to_owned()]).unwrap();
    assert_eq!(instance.zones("sw1").transaction, None);
    refused(zones(&instance, &client("", None), None, alias("g")), "has no session");
    instance.stop();
}

#[test]
fn definitions_are_expunged_cleared_and_replaced_by_commands() {
    let mut instance = fabric("whole");
    instance.run("zone expunge LAB zone nothing").refused("there is no zone `nothing`");
    let open = status(&instance.run("zone expunge LAB zone z12 --json").good());
    let working = open.working.unwrap();
    assert!(working.zones.is_empty() && working.configs.values().all(Vec::is_empty), "{working:?}");
    let cleared = status(&instance.run("zone clear LAB --json").good());
    let working = cleared.working.unwrap();
    assert_eq!((working.configs.len(), working.effective.is_some()), (0, true));
    let other = two_disks("[switch.\"sw{1..2}\"]\ndomain = 1\n", "sw1").replace("z12", "z21");
    instance.write("other.toml", &(other + THIRD_DISK));
    let replaced = status(&instance.run("zone replace LAB --with @other.toml --json").good());
    assert_eq!(replaced.working.unwrap().zones.keys().collect::<Vec<_>>(), ["z21"]);
    instance.run("zone commit LAB").good();
    let zones = instance.zones("sw2");
    assert_eq!(zones.committed.zones.keys().collect::<Vec<_>>(), ["z21"]);
    assert_eq!(zones.state.zones, ["z12"], "the effective zones change when a configuration is enabled");
    instance.stop();
}
