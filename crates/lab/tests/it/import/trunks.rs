//! Trunks and port-channels keep the numbers of their ports.

use sanloom_fc::config::{Link, Node};
use sanloom_lab::import::{Choices, Imported, NoteKind, Source, import};
use std::collections::{BTreeMap, BTreeSet};

/// A trunk as its pairs of ports: `swA:8-swB:9`.
pub type Trunk = BTreeSet<String>;

pub fn run(files: &[(&str, String)]) -> Imported {
    let source = |(name, text): &(&str, String)| Source { name: (*name).to_owned(), text: text.clone() };
    import(&files.iter().map(source).collect::<Vec<_>>(), &Choices::default())
}

/// Trunks and single links between switches of the lab, each as its pairs of ports.
pub fn trunks(lab: &str) -> BTreeSet<Trunk> {
    let lab = sanloom_lab::load("lab.toml", lab, &[]).unwrap_or_else(|e| panic!("{e}\n{lab}")).lab;
    let end = |link: &Link, end: usize| match link.ends[end].node {
        Node::Switch(switch) => Some(format!("{}:{}", lab.switches[usize::from(switch)].name, link.ends[end].port)),
        _ => None,
    };
    let mut found: BTreeMap<(Option<u16>, usize), Trunk> = BTreeMap::new();
    for (index, link) in lab.links.iter().enumerate() {
        let mut ends = [end(link, 0), end(link, 1)];
        ends.sort();
        let [Some(a), Some(b)] = ends else { continue };
        let key = (link.bundle, if link.bundle.is_some() { 0 } else { index });
        found.entry(key).or_default().insert(format!("{a}-{b}"));
    }
    found.into_values().collect()
}

fn set(trunks: &[&[&str]]) -> BTreeSet<Trunk> {
    trunks.iter().map(|trunk| trunk.iter().map(|pair| (*pair).to_owned()).collect()).collect()
}

const NAMES: [(&str, &str); 2] = [("swA", "10:00:50:eb:1a:00:00:01"), ("swB", "10:00:50:eb:1a:00:00:02")];

/// Which outputs a file has.
#[derive(Clone, Copy, PartialEq)]
struct Outputs {
    switchshow: bool,
    islshow: bool,
    trunkshow: bool,
}

const ALL: Outputs = Outputs { switchshow: true, islshow: true, trunkshow: true };

/// Outputs of the switch `own`, whose trunks are lists of local and remote ports. The first is the
/// master.
fn outputs(own: usize, trunks: &[Vec<(u16, u16)>], which: Outputs) -> String {
    let ((name, wwn), (far, far_wwn)) = (NAMES[own], NAMES[1 - own]);
    let far_domain = 2 - own;
    let mut rows = vec![String::new(); 32];
    let (mut isls, mut groups) = (String::new(), String::new());
    for (number, trunk) in (1..).zip(trunks) {
        let (master, peer) = trunk[0];
        let kind = if trunk.len() > 1 { "(Trunk master)" } else { "" };
        rows[usize::from(master)] = format!("E-Port  {far_wwn} \"{far}\" {kind}");
        isls += &format!(
            " {number:>2}:{master:>3}->{peer:>3} {far_wwn} {far_domain:>3} {far}     sp: 16.000G bw: {}.000G {}\n",
            16 * trunk.len(),
            if trunk.len() > 1 { "TRUNK QOS" } else { "" }
        );
        for (index, (port, peer)) in trunk.iter().enumerate() {
            let label = if index == 0 { format!("{number:>3}:") } else { "    ".to_owned() };
            let word = if index == 0 { "MASTER" } else { "" };
            groups += &format!("{label}{port:>3}->{peer:>3} {far_wwn} {far_domain:>3} deskew 1{index} {word}\n");
            if index > 0 {
                rows[usize::from(*port)] = format!("E-Port  (Trunk port, master is Port  {master} )");
            }
        }
    }
    let mut text = String::new();
    if which.switchshow {
        text +=
            &format!("{name}:admin> switchshow\nswitchName:\t{name}\nswitchDomain:\t{}\nswitchWwn:\t{wwn}\n", own + 1);
        text += "Index Port Address Media Speed State Proto\n==========\n";
        for (port, row) in rows.iter().enumerate() {
            let state = if row.is_empty() { "No_Light" } else { "Online" };
            text += &format!("  {port}   {port}   {:02x}{port:02x}00   id    N16   {state}   FC  {row}\n", own + 1);
        }
    }
    if which.islshow {
        text += &format!("{name}:admin> islshow\n{isls}");
    }
    if which.trunkshow {
        text += &format!("{name}:admin> trunkshow\n{groups}");
    }
    text
}

fn reversed(trunks: &[Vec<(u16, u16)>]) -> Vec<Vec<(u16, u16)>> {
    trunks.iter().map(|trunk| trunk.iter().map(|(a, b)| (*b, *a)).collect()).collect()
}

/// Two trunks and a single link between scattered ports.
fn scattered() -> Vec<Vec<(u16, u16)>> {
    vec![vec![(8, 12), (9, 4), (10, 9)], vec![(12, 20), (13, 21)], vec![(3, 30)]]
}

fn expected() -> BTreeSet<Trunk> {
    set(&[&["swA:8-swB:12", "swA:9-swB:4", "swA:10-swB:9"], &["swA:12-swB:20", "swA:13-swB:21"], &["swA:3-swB:30"]])
}

#[test]
fn a_trunk_keeps_its_scattered_ports_at_both_ends() {
    let (a, b) = (outputs(0, &scattered(), ALL), outputs(1, &reversed(&scattered()), ALL));
    for files in [
        vec![("a", a.clone()), ("b", b.clone())],
        vec![("b", b.clone()), ("a", a.clone())],
        // One end alone tells the ports of both.
        vec![("a", a.clone())],
        vec![("b", b.clone())],
        // Outputs of one switch in several files.
        vec![
            ("a", outputs(0, &scattered(), Outputs { trunkshow: false, ..ALL })),
            ("b", b.clone()),
            ("t", outputs(0, &scattered(), Outputs { switchshow: false, islshow: false, ..ALL })),
        ],
    ] {
        let imported = run(&files);
        assert_eq!(trunks(&imported.lab), expected(), "{}", imported.lab);
        let bad = imported.account.notes.iter().find(|note| note.kind <= NoteKind::Unplaced);
        assert!(bad.is_none(), "{bad:?}");
        assert!(imported.account.notes.iter().all(|note| !note.reason.contains("paired")));
    }
}

#[test]
fn masters_of_the_two_ends_may_be_different_lines() {
    let mut b = reversed(&scattered());
    b[0].rotate_left(1);
    let imported = run(&[("a", outputs(0, &scattered(), ALL)), ("b", outputs(1, &b, ALL))]);
    assert_eq!(trunks(&imported.lab), expected(), "{}", imported.lab);
}

#[test]
fn without_trunkshow_the_ports_are_paired_in_order_and_a_note_says_so() {
    let which = Outputs { trunkshow: false, ..ALL };
    let straight = vec![vec![(8, 8), (9, 9), (10, 10)], vec![(12, 12), (13, 14)]];
    let files = [("a", outputs(0, &straight, which)), ("b", outputs(1, &reversed(&straight), which))];
    let imported = run(&files);
    let wanted = [&["swA:8-swB:8", "swA:9-swB:9", "swA:10-swB:10"][..], &["swA:12-swB:12", "swA:13-swB:14"]];
    assert_eq!(trunks(&imported.lab), set(&wanted), "{}", imported.lab);
    assert!(imported.lab.contains("from = \"swA:{8..10}\"\nto = \"swB:{8..10}\""), "{}", imported.lab);
    let notes: Vec<_> = imported.account.notes.iter().filter(|note| note.reason.contains("paired")).collect();
    // The trunk of two lines has one line beside that of its master, so only the other is a guess.
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].kind == NoteKind::Decision && notes[0].remedy.contains("trunkshow"));
    // Without the other switch, its slaves take free ports.
    let imported = run(&files[..1]);
    let found = trunks(&imported.lab);
    assert_eq!(found.iter().map(BTreeSet::len).collect::<BTreeSet<_>>(), BTreeSet::from([2, 3]), "{}", imported.lab);
    let all: Trunk = found.into_iter().flatten().collect();
    for pair in ["swA:8-swB:8", "swA:12-swB:12"] {
        assert!(all.contains(pair), "{pair} in {all:?}");
    }
    assert!(["swA:9-", "swA:10-", "swA:13-"].iter().all(|near| all.iter().any(|pair| pair.starts_with(near))));
}

#[test]
fn rows_of_trunkshow_that_cannot_be_read_are_reported() {
    let text = "swA:admin> trunkshow\n      4->  4 10:00:50:eb:1a:00:00:02   2 deskew 16\n  1:  x->  4 10:00:50:eb:1a:00:00:02   2 deskew 15 MASTER\n      5->  5 10:00:50:eb:1a:00:00:02   2 deskew 16\n  2:  6->  6 10:00:50:eb:1a:00:00:02   2 deskew 15 MASTER\n    Tx: Bandwidth 16.00Gbps, Throughput 1.63Gbps (11.84%)\n";
    let imported = run(&[("a", text.to_owned())]);
    let lines: BTreeMap<u32, &str> = imported
        .account
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::Unplaced && !note.places.is_empty())
        .map(|note| (note.places[0].line, note.reason.as_str()))
        .collect();
    let wanted = [
        (2, "belongs to no trunk that can be read"),
        (3, "is no row of trunkshow"),
        (4, "belongs to no trunk that can be read"),
    ];
    assert_eq!(lines, BTreeMap::from(wanted));
}

/// Configuration of a switch whose port-channels have members.
fn nx(name: &str, domain: u8, far: (&str, u8), channels: &[(u16, &[&str], u16)]) -> String {
    let mut text =
        format!("switchname {name}\nvsan database\n  vsan 10 name \"A\"\nfcdomain domain {domain} static vsan 10\n");
    for (number, members, _) in channels {
        text += &format!("interface port-channel{number}\n  switchport mode E\n");
        for member in *members {
            text += &format!("interface {member}\n  channel-group {number} force\n");
        }
    }
    text += &format!(
        "{name}# show topology vsan 10\n\nFC Topology for VSAN 10 :\n----\n Interface  Peer Domain Peer Interface     Peer IP Address(Switch Name)\n----\n"
    );
    for (number, _, peer) in channels {
        text += &format!(
            "  port-channel{number} 0x{:x}({}) port-channel{peer}  10.2.2.{}({})\n",
            far.1, far.1, far.1, far.0
        );
    }
    text
}

#[test]
fn a_port_channel_keeps_the_ports_of_its_members() {
    let a = nx("mds-a", 33, ("mds-b", 42), &[(1, &["fc1/47", "fc1/45"], 7), (2, &["fc1/3"], 8)]);
    let b = nx("mds-b", 42, ("mds-a", 33), &[(7, &["fc1/9", "fc1/20"], 1), (8, &["fc1/4"], 2)]);
    let wanted = [&["mds-a:44-mds-b:8", "mds-a:46-mds-b:19"][..], &["mds-a:2-mds-b:3"]];
    let imported = run(&[("a", a.clone()), ("b", b)]);
    assert_eq!(trunks(&imported.lab), set(&wanted), "{}", imported.lab);
    // The members of the far port-channel are not known.
    let imported = run(&[("a", a), ("b", "switchname mds-b\nfcdomain domain 42 static vsan 10\n".to_owned())]);
    let found: Trunk = trunks(&imported.lab).into_iter().flatten().collect();
    for near in ["mds-a:44-", "mds-a:46-", "mds-a:2-"] {
        assert!(found.iter().any(|pair| pair.starts_with(near)), "{near} in {found:?}");
    }
}
