//! LUN masking of iSCSI initiators: of disks, and of virtual disks on both paths.

use crate::iscsi_switch::bed::{self, Bed, HOSTS_TARGET, Switch};
use crate::iscsi_switch::host::Host;
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{fail, run};

/// Hosts one and two each see a disk and a volume. Host three sees a disk and a volume that is
/// created later. The raw host sees one volume. The table for a Fibre Channel port does not affect
/// iSCSI.
const MASKS: &str = r#"
[storage.plain]
luns = 3
lun_size = "8MiB"
iscsi = { portals = "{portal}" }

[storage.both]
luns = 2
lun_size = "8MiB"
iscsi = { portals = "{portal}" }

[[mask]]
hosts = "21:00:00:24:ff:00:00:01"
targets = "both:lun1"

[[mask]]
hosts = "iqn.2026-11.net.example:one"
targets = ["plain:lun0", "switch:lun0"]

[[mask]]
hosts = ["iqn.2026-11.net.example:two", "iqn.2026-11.net.example:raw"]
targets = ["plain:lun1", "switch:lun1"]

[[mask]]
hosts = "iqn.2026-11.net.example:three"
targets = ["plain:lun{1..2}", "switch:lun{5..9}"]

[volume.v]
pool = "disks"
size = "8MiB"
storage = "switch"
lun = 0

[volume.w]
pool = "disks"
size = "8MiB"
storage = "switch"
lun = 1

[pool.disks]
extent = "1MiB"
"#;

/// LUNs of a target that `iscsi-ls` lists for an initiator, at any portal.
fn listed(portal: &str, target: &str, initiator: &str) -> Vec<u16> {
    let output =
        run("iscsi-ls", &["-s", "-i", &format!("iqn.2026-11.net.example:{initiator}"), &format!("iscsi://{portal}")]);
    let mut luns = Vec::new();
    let mut here = false;
    for line in output.lines() {
        if let Some(rest) = line.strip_prefix("Target:") {
            here = rest.split_whitespace().next() == Some(target);
        } else if let Some(lun) = line.trim().strip_prefix("Lun:").filter(|_| here) {
            luns.push(lun.split_whitespace().next().unwrap().parse().unwrap());
        }
    }
    luns.sort_unstable();
    luns.dedup();
    luns
}

#[needs("iscsi-inq", "iscsi-ls", "qemu-iscsi")]
#[test]
fn initiators_see_the_luns_that_their_masks_name_on_both_paths() {
    let bed = Bed::new("masks");
    let (behind, other) = (free_port(), free_port());
    let _first = bed::storage(&bed, "first", &behind);
    let lab = MASKS.replace("{portal}", &other) + &bed::back_end("first", "disks", &[&behind]);
    let mut switch = Switch::start(&bed, &lab);
    switch.wait_for(&["v", "w"]);
    let plain = "iqn.2026-11.example.sanloom:plain";
    let see = |portal: &str, target: &str| {
        ["one", "two", "three", "nobody"].map(|initiator| listed(portal, target, initiator))
    };
    assert_eq!(see(&other, plain), [vec![0], vec![1], vec![1, 2], vec![]]);
    assert_eq!(see(&switch.portals[0], HOSTS_TARGET), [vec![0], vec![1], vec![], vec![]]);
    let both = vec![0, 1];
    assert_eq!(see(&other, "iqn.2026-11.example.sanloom:both"), [&both, &both, &both, &both].map(Clone::clone));
    switch.volume(&["create", "x", "--pool", "disks", "--size", "4MiB", "--storage", "switch", "--lun", "7"]);
    assert_eq!(see(&switch.portals[0], HOSTS_TARGET), [vec![0], vec![1], vec![7], vec![]]);
    // Third-party initiators do not see masked LUNs either.
    let of = |initiator: &str, lun: u16| {
        run("iscsi-inq", &["-i", &format!("iqn.2026-11.net.example:{initiator}"), &switch.url(lun)])
    };
    assert!(of("one", 0).contains("Peripheral Qualifier:CONNECTED"), "{}", of("one", 0));
    let hidden = fail("iscsi-inq", &["-i", "iqn.2026-11.net.example:two", &switch.url(0)]);
    assert!(hidden.contains("LOGICAL_UNIT_NOT_SUPPORTED"), "{hidden}");
    // QEMU uses a name that is in no mask.
    run("qemu-img", &["info", "-f", "raw", &format!("iscsi://{other}/iqn.2026-11.example.sanloom:both/0")]);
    fail("qemu-img", &["info", "-f", "raw", &switch.url(0)]);
    // The forwarding path forwards nothing to masked LUNs.
    let mut host = Host::log_in(&switch.portals[0], 1);
    host.read(0, 8);
    assert_eq!(host.answer().0, 2, "a read of LUN 0, which it does not see");
    let shown = run(SANLOOM, &["show", "luns", &bed.path("switch.toml"), "--live"]);
    assert!(shown.contains("iqn.2026-11.net.example:one") && shown.contains("all over iSCSI"), "{shown}");
    switch.stop();
    bed.folder.assert_no_errors();
}
