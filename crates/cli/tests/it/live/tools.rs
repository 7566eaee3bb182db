//! `fipvlan` and `fcoeadm` of Debian's fcoe-utils in the guest, compared with ours at the same
//! switch.

use crate::live::bed::{Bed, check_capture};
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;

const LAB: &str = r#"
[switch.sw1]

[host.server2]
wwpn = "20:00:52:54:00:00:00:02"

[storage.disk1]
luns = 2
lun_size = "64MiB"

[[link]]
from = "server2"
to = "sw1"
ethernet = { carrier = "dgram", vlan = 152 }

[[link]]
from = "disk1"
to = "sw1"
"#;

/// Returns the texts after a label, one for each occurrence.
fn values<'t>(text: &'t str, label: &str) -> Vec<&'t str> {
    let lines = text.lines().map(str::trim);
    lines.filter_map(|line| Some(line.strip_prefix(label)?.strip_prefix(':')?.trim())).collect()
}

/// Labels of a listing in order, without blanks, because newer versions write "Fabric Name" for
/// "FabricName".
fn labels(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    // Units are listed in the kernel's order of discovery.
    lines.map(|(label, _)| label.replace(' ', "").replace(|letter: char| letter.is_ascii_digit(), "")).collect()
}

fn plain(texts: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = texts.iter().map(|text| text.to_lowercase().replace("ib", "b")).collect();
    all.sort();
    all
}

/// Both find the same VLAN and forwarder, and show the same target and units in the same layout.
#[needs("guest", "tshark")]
#[test]
fn debians_tools_and_ours_print_the_same() {
    let changes = [(
        "ethernet = { carrier = \"dgram\" }\n\n[switch",
        "ethernet = { carrier = \"dgram\", vlan = 152 }\n\n[switch",
    )];
    let mut bed = Bed::start_changed("tools", LAB, &changes, &["server1-sw1"]);
    let script = r#"
echo "== fipvlan"
fipvlan eth0 || exit 1
fipvlan -c -s eth0 || exit 2
fcoe-wait 30 || exit 3
disk-wait 30 2 >/dev/null || exit 4
for letter in i t l; do echo "== $letter"; fcoeadm -$letter || exit 5; done
echo "== s"
timeout 3 fcoeadm -s $(sed 's/.* over //' /sys/class/fc_host/host*/symbolic_name) 1
echo "== end"
"#;
    let output = bed.guest("server1", 1, script).end();
    let theirs = |name: &str| {
        let section = output.split(&format!("== {name}\n")).nth(1).unwrap_or_default();
        section.split("\n== ").next().unwrap_or_default().to_owned()
    };

    let folder = bed.folder.display().to_string();
    let port = format!("dgram:{folder}/server2-sw1.peer.sock,{folder}/server2-sw1.sock");
    let tool = SANLOOM;
    let found = run(tool, &["fipvlan", "--mac", "52:54:00:00:00:02", &port]);
    let theirs_found = theirs("fipvlan");
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    let (ours, others) = (lines(&found), lines(&theirs_found));
    assert_eq!(ours[..3], others[..3], "headings");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let (ours, others) = (cells(&ours[3]), cells(&others[3]));
    assert_eq!((others[0].as_str(), &ours[1], ours[1].as_str()), ("eth0", &others[1], "152"), "{found}{theirs_found}");
    // Each port of the switch has its own address, which differs in the port number.
    assert_eq!(ours[2][..14], others[2][..14]);

    let control = format!("{folder}/eth0.ctl");
    bed.start_initiator(
        "server2",
        &["{folder}/lab.toml", "--host", "server2", "--name", "eth0", "--control", &control],
    );
    let ours = |letter: &str| run(tool, &["fcoeadm", "--run-folder", &folder, &format!("-{letter}")]);
    for letter in ["i", "t", "l"] {
        let (ours, theirs) = (ours(letter), theirs(letter));
        // The guest's card has no PCI device with a description.
        let of_fc = |text: &str| labels(text.split("Symbolic Name").last().unwrap_or_default());
        assert_eq!(of_fc(&ours), of_fc(&theirs), "fcoeadm -{letter}:\n{ours}\n{theirs}");
        let same: &[&str] = match letter {
            "i" => &["State"],
            "t" => &["Roles", "Node Name", "Port Name", "Target ID", "FC-ID (Port ID)", "State"],
            _ => &[
                "Description",
                "Target FCID",
                "Target ID",
                "LUN ID",
                "Capacity",
                "Capacity in Blocks",
                "Block Size",
                "Status",
            ],
        };
        for label in same {
            // Newer versions write names in small letters, and binary units as MiB.
            let (one, other) = (plain(&values(&ours, label)), plain(&values(&theirs, label)));
            assert_eq!(one, other, "{label} of fcoeadm -{letter}:\n{ours}\n{theirs}");
            assert!(!values(&ours, label).is_empty(), "{label} of fcoeadm -{letter}:\n{ours}");
        }
    }
    // Three heading lines with the same columns. VLAN devices have other names by default.
    let ours_counted = run(tool, &["fcoeadm", "--run-folder", &folder, "-s", "eth0", "1", "--count", "2"]);
    let theirs_counted = theirs("s");
    let heading = |text: &str| {
        let lines = text.lines().skip_while(|line| !line.contains("interval:")).take(3);
        let same_name = lines.map(|line| line.replace("eth0.152-fcoe", "eth0.152     ").trim_end().to_owned());
        same_name.collect::<Vec<_>>()
    };
    assert_eq!(heading(&ours_counted).len(), 3, "{ours_counted}");
    assert_eq!(heading(&ours_counted), heading(&theirs_counted), "{ours_counted}{theirs_counted}");
    // The lines of the units differ in the device names.
    let rows = |text: &str| {
        let rows = text.lines().filter(|line| line.contains("(rev "));
        rows.map(|row| {
            row.split_whitespace().enumerate().filter(|(n, _)| *n != 1).map(|(_, word)| word.to_owned()).collect()
        })
        .collect::<Vec<Vec<String>>>()
    };
    let (mut ours, mut theirs) = (rows(&ours("t")), rows(&plain(&[&theirs("t")]).concat()));
    ours.sort();
    theirs.sort();
    assert_eq!(plain(&[&format!("{ours:?}")]), [format!("{theirs:?}")]);
    assert_eq!(ours.len(), 2);
    bed.stop_others();
    bed.stop();
    check_capture(&bed.capture("server1-sw1"), 50);
    check_capture(&bed.capture("server2"), 50);
}
