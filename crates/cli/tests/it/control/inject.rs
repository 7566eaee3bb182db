//! Faults injected at ports of a running switch, with our own initiator.

use crate::control::instance::Instance;
use sanloom_api::view::{CountersView, Table, View};
use sanloom_test_support::needs;
use sanloom_test_support::programs;
use sanloom_test_support::programs::run;

const LAB: &str = r#"
[switch.sw1]
fcoe = { keep_alive = "1s" }

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
luns = 2
lun_size = "1MiB"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "ram"
to = "sw1"
"#;

fn view(text: &str) -> View {
    serde_json::from_str(text).unwrap()
}

fn counters(instance: &Instance) -> CountersView {
    match view(&instance.run("show counters LAB --live --json").good()).table {
        Table::Counters(counters) => counters,
        other => panic!("{other:?}"),
    }
}

fn counter(instance: &Instance, of: &str, name: &str) -> u64 {
    let rows = counters(instance).counters;
    let row = rows.iter().find(|row| row.of == of).unwrap_or_else(|| panic!("no {of} in {rows:?}"));
    row.counters.get(name).copied().unwrap_or(0)
}

/// Two data frames with a bad CRC: the initiator counts them by reason and its tool reports them.
#[test]
fn frames_that_an_initiator_drops_are_counted_by_reason() {
    let mut instance = Instance::start("inject-drops", LAB);
    let added = instance.run("port inject sw1:0 LAB --match fcp==DATA&&direction==out --do corrupt --count 2").good();
    assert_eq!(added, "sw1:0: rule added for 2 matching frames\n");
    instance.start_initiator_with("server1", &["--name", "eth0", "--control", &instance.path("eth0.ctl")]);
    let folder = instance.folder.display().to_string();
    let shown = instance.run(&format!("fcoeadm --run-folder {folder} -s eth0 1 --count 1 --json")).good();
    let statistics: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(statistics["drops"], serde_json::json!({ "bad CRC": 2 }), "{statistics}");
    assert_eq!((&statistics["invalid_crcs"], &statistics["error_frames"]), (&2.into(), &2.into()), "{statistics}");
    instance.stop();
}

/// The fabric login is rejected, the login to the name server takes a second, data are damaged, and
/// REPORT LUNS is delayed. The host still finds its disks, and every fault is counted.
#[needs("nbdinfo", "tshark")]
#[test]
fn an_initiator_meets_what_is_injected_and_finds_its_disks() {
    let mut instance = Instance::start("inject", LAB);
    let capture = instance.path("port.pcapng");
    instance.run(&format!("capture server1-sw1 LAB --to {capture}")).good();
    for (port, matches, act) in [
        ("sw1:0", "els==FLOGI", "reject:09/29"),
        ("sw1:0", "els==PLOGI&&d_id==fffffc", "delay:1s"),
        ("sw1:0", "fcp==DATA&&direction==out", "corrupt"),
        ("sw1:1", "scsi==REPORT_LUNS", "delay:300ms"),
    ] {
        instance.run(&format!("port inject {port} LAB --match {matches} --do {act} --count 1")).good();
    }
    instance.start_initiator("server1");
    let uri = programs::uri(&instance.folder.join("nbd.sock"), "");
    assert_eq!(run("nbdinfo", &["--list", &uri]).matches("export=").count(), 2);
    let shown = instance.run("show injections LAB --live --json").good();
    let Table::Injections(rules) = view(&shown).table else { panic!("{shown}") };
    let done: Vec<(u64, Option<u64>)> = rules.rules.iter().map(|rule| (rule.injected, rule.left)).collect();
    assert_eq!(done, [(1, Some(0)); 4], "{shown}");
    assert_eq!(counter(&instance, "sw1:0", "dropped: injected reject"), 1);
    let table = instance.run("show injections LAB --live").good();
    assert!(table.contains("reject:09/29") && table.contains("els==FLOGI"), "{table}");
    assert!(counter(&instance, "sw1:0", "frames in") > 10 && counter(&instance, "ram", "commands") > 4);

    // A rule without an end is removed when it is cleared; one line confirms it.
    instance.run("port inject sw1:0 LAB --match fip==1 --do drop").refused("there is no field `fip`");
    instance.run("port inject sw1:0 LAB --match els==ADISC --do drop").good();
    let cleared = instance.run("port inject sw1:0 LAB --clear").good();
    assert_eq!(cleared, "sw1:0: 4 rules removed, which had changed 3 frames\n");
    let cleared = instance.run("port inject sw1:0 LAB --clear").good();
    assert_eq!(cleared, "sw1:0: 0 rules removed, which had changed 0 frames\n");
    let left = instance.run("show injections LAB --live").good();
    assert!(!left.contains("sw1:0") && left.contains("sw1:1"), "{left}");
    instance.stop();

    let fields = |filter: &str, field: &str| -> Vec<String> {
        run("tshark", &["-r", &capture, "-Y", filter, "-T", "fields", "-e", field]).lines().map(str::to_owned).collect()
    };
    assert_eq!(
        fields("fcels.opcode == 1 && fcels.rjt.reason == 9 && fcels.rjt.detail == 0x29", "frame.number").len(),
        1
    );
    assert_eq!(fields("fcoe.crc.status == 0", "frame.number").len(), 1, "the frame that was damaged");
    let seconds = |filter: &str| fields(filter, "frame.time_relative")[0].parse::<f64>().unwrap();
    let asked = seconds("fcels.opcode == 3 && fc.d_id == ff.ff.fc");
    let answered = seconds("fcels.opcode == 2 && fc.s_id == ff.ff.fc");
    assert!((1.0..3.0).contains(&(answered - asked)), "{asked} {answered}");
}

#[test]
fn invalid_rules_are_rejected_with_their_position() {
    let mut instance = Instance::start("rules", LAB);
    let bad = instance.run("port inject sw1:0 LAB --match els==PLOGY --do drop");
    assert!(bad.stderr.contains("^^^^^") && bad.stderr.contains("such as PLOGI"), "{bad:?}");
    bad.refused("`PLOGY` is not a value of `els`");
    instance.run("port inject sw1:0 LAB --match els==PLOGI --do reject").refused("reject:09/29");
    instance.run("port inject sw1:0 LAB --match els==PLOGI --do drop --count 0").refused("--count");
    instance.run("port inject sw1:0 LAB --match els==PLOGI").refused("--do");
    instance.run("port inject sw1:99 LAB --match els==PLOGI --do drop").refused("there is no port `sw1:99` here");
    instance.run("show injections LAB").refused("--live");
    // A request that bypasses the command line is checked by the instance.
    let request = sanloom_api::control::Request::Inject {
        port: "sw1:0".to_owned(),
        matches: "s_id==1".to_owned(),
        act: "drop".to_owned(),
        count: None,
    };
    let answer = format!("{:?}", instance.ask(&request).unwrap());
    assert!(answer.contains("six hexadecimal digits"), "{answer}");
    instance.stop();
}
