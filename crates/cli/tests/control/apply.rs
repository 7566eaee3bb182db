//! `sanloom apply`: a lab file that was changed while its instance runs.

use crate::instance::Instance;
use crate::peer::{self, find, run};
use sanloom_api::apply::ApplyReport;
use sanloom_api::view::{LunRow, Table, View};

const LAB: &str = r#"
[switch.sw1]

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
luns = 1
lun_size = "1MiB"

[storage.file]
lun_size = "1MiB"
medium = "file"

[zoning]
default = "closed"

[[zone]]
name = "z1"
members = ["server1", "ram"]

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "{ram,file}"
to = "sw1"
"#;

/// More LUNs, larger ones, another zone, a mask.
fn changed() -> String {
    let more = LAB.replace("luns = 1\nlun_size = \"1MiB\"", "luns = 2\nlun_size = \"1MiB\"");
    let larger = more.replace("lun_size = \"1MiB\"\nmedium", "lun_size = \"3MiB\"\nmedium");
    assert_ne!(more, larger);
    let zone = "[[zone]]\nname = \"z2\"\nmembers = [\"server1\", \"file\", \"ram\"]\n";
    format!("{larger}\n{zone}\n[[mask]]\nhosts = \"server1\"\ntargets = [\"ram:lun1\"]\n")
}

fn report(text: &str) -> ApplyReport {
    serde_json::from_str(text).unwrap()
}

fn luns(instance: &Instance) -> Vec<LunRow> {
    let shown = instance.run("show luns LAB --live --json").good();
    match serde_json::from_str::<View>(&shown).unwrap().table {
        Table::Luns(table) => table.luns,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_can_change_live_changes_and_is_there_after_a_restart() {
    let mut instance = Instance::start("apply", LAB);
    instance.start_initiator("server1");
    instance.write_lab(&changed());
    let before = (instance.zones("sw1").state, luns(&instance));
    let preview = report(&instance.run("apply LAB --preview --json").good());
    let expected = [
        "ram:lun1 is new, which hosts are told",
        "masking of ram: initiators that see other LUNs than before are told",
        "file:lun0 grows to 3145728 bytes, which hosts are told",
        "zones, committed at sw1: of the ports that are logged in 2 pairs gained, 0 pairs lost",
    ];
    assert_eq!((preview.changes.as_slice(), preview.applied), (expected.map(str::to_owned).as_slice(), false));
    assert_eq!(before, (instance.zones("sw1").state, luns(&instance)), "a preview changes nothing");

    let said = instance.run("apply LAB").good();
    for part in ["changed", "ram:lun1 is new", "gain sight", "server1:0 and file:0"] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    assert_eq!(instance.zones("sw1").state.zones, ["z1", "z2"]);
    let rows: Vec<(String, u64, String)> =
        luns(&instance).into_iter().map(|row| (row.storage, row.size_bytes, row.seen_by.join(" "))).collect();
    let row = |storage: &str, size, seen: &str| (storage.to_owned(), size, seen.to_owned());
    assert_eq!(rows, [row("ram", 1 << 20, ""), row("ram", 1 << 20, "server1"), row("file", 3 << 20, "")]);
    assert_eq!(std::fs::metadata(instance.folder.join("file-lun0.img")).unwrap().len(), 3 << 20);
    // The host hears of the storage that it could not see before, and has its disk, as large as it is now.
    if find("nbdinfo").is_some() {
        let uri = peer::uri(&instance.folder.join("nbd.sock"), "");
        instance.wait("a disk more", |_| run("nbdinfo", &["--list", &uri]).contains("export-size: 3145728"));
    }
    assert!(instance.run("apply LAB").good().contains("nothing to change"));
    // The store has agreed with the file.
    instance.stop();
    instance.up(&[]);
    assert_eq!(instance.zones("sw1").state.zones, ["z1", "z2"]);
    instance.stop();
}

#[test]
fn what_cannot_change_live_refuses_the_whole_with_reasons() {
    let mut instance = Instance::start("apply-refused", LAB);
    let before = (instance.zones("sw1").state, luns(&instance));
    let fixed = changed()
        .replace("[switch.sw1]", "[timers]\nhold_time = \"2s\"\n\n[switch.sw1]\nfcoe = { priority = 5 }")
        .replace("luns = 2\nlun_size = \"1MiB\"", "luns = 2\nlun_size = \"512KiB\"");
    instance.write_lab(&fixed);
    let refused = instance.run("apply LAB --json");
    let report = report(&refused.stdout);
    let about: Vec<&str> = report.refused.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(about, ["timers", "`fcoe` of switches", "size of ram"]);
    assert!(report.refused.iter().all(|line| line.contains("end the instance and start it again")), "{report:?}");
    assert!(!report.applied);
    refused.refused("nothing was changed");
    assert_eq!(before, (instance.zones("sw1").state, luns(&instance)));
    assert_eq!(instance.run("apply LAB --preview").code, 0);
    instance.write_lab("[switch]\n");
    assert_eq!(instance.run("apply LAB").code, 2);
    // What only a simulation looks at.
    instance.write_lab(&format!("{LAB}\n[workload.w]\nhosts = \"server1\"\ntargets = \"ram\"\n"));
    let idle = instance.run("apply LAB").good();
    assert!(idle.contains("no effect") && idle.contains("workloads"), "{idle}");
    instance.stop();
}

/// Two fabrics that begin with equal zones.
const TWO_FABRICS: &str = r#"
[switch."sw{1..2}"]

[storage."disk{1..2}"]
lun_size = "1MiB"
ports = 2

[[link]]
from = "disk{1..2}"
to = "sw1"

[[link]]
from = "disk{1..2}"
to = "sw2"
"#;

#[test]
fn zones_of_every_fabric_change_even_where_they_are_equal() {
    let mut instance = Instance::start("apply-fabrics", TWO_FABRICS);
    let zones = "[zoning]\ndefault = \"closed\"\n[[zone]]\nname = \"z1\"\nmembers = [\"disk1\", \"disk2\"]\n";
    instance.write_lab(&format!("{TWO_FABRICS}{zones}"));
    let said = instance.run("apply LAB").good();
    for switch in ["sw1", "sw2"] {
        assert_eq!(instance.zones(switch).state.zones, ["z1"], "{switch}: {said}");
    }
    instance.stop();
}
