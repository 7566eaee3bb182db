//! Arbitrated loops at switch ports, and INQUIRY data in the name server.

use super::trunks::run;
use sanloom_lab::import::NoteKind;

const LOOP: &str = "sw1:admin> switchshow
switchName:\tsw1
switchDomain:\t1
switchWwn:\t10:00:c4:f5:7c:01:02:03

Index Port Address Media Speed       State   Proto
==================================================
   4   4   010400   id    N4\t  Online      FC  L-Port  3 public
   5   5   010500   id    N8\t  Online      FC  F-Port  10:00:00:10:9b:40:01:a1
sw1:admin> nsshow
{
 Type Pid    COS     PortName                NodeName                 TTL(sec)
 NL   0104e1;      3;22:00:00:04:cf:00:00:01;20:00:00:04:cf:00:00:01; na
    FC4s: FCP [SEAGATE ST336607FC      0003]
 NL   0104e2;      3;22:00:00:04:cf:00:00:02;20:00:00:04:cf:00:00:02; na
    FC4s: FCP [FUJITSU MAP3367FC       0003]
 NL   0104e4;      3;22:00:00:04:cf:00:00:03;20:00:00:04:cf:00:00:03; na
    FC4s: FCP [IBM     ULT3580-TD4     0003]
 N    010500;      3;10:00:00:10:9b:40:01:a1;20:00:00:10:9b:40:01:a1; na
}
";

#[test]
fn devices_of_a_loop_are_reported_and_not_linked() {
    let imported = run(&[("loop.txt", LOOP.to_owned())]);
    assert_eq!(imported.lab.matches("[[link]]").count(), 1, "{}", imported.lab);
    assert!(!imported.lab.contains("22:00:00:04:cf"), "{}", imported.lab);
    let notes = &imported.account.notes;
    for (name, line) in
        [("22:00:00:04:cf:00:00:01", 13), ("22:00:00:04:cf:00:00:02", 15), ("22:00:00:04:cf:00:00:03", 17)]
    {
        let note = notes.iter().find(|note| note.text == name && note.reason.contains("loop"));
        let note = note.unwrap_or_else(|| panic!("{name}: {notes:?}"));
        assert_eq!(note.kind, NoteKind::Unplaced);
        let mut lines: Vec<u32> = note.places.iter().map(|place| place.line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [8, line]);
    }
}

#[test]
fn a_device_with_inquiry_data_is_storage() {
    let text = LOOP.replace("L-Port  3 public", "F-Port  22:00:00:04:cf:00:00:01");
    let text = text.lines().filter(|line| !line.contains("0104e2") && !line.contains("0104e4"));
    let text =
        text.filter(|line| !line.contains("FUJITSU") && !line.contains("ULT3580")).collect::<Vec<_>>().join("\n");
    let imported = run(&[("disk.txt", text)]);
    let lab = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}\n{}", imported.lab)).lab;
    assert_eq!((lab.hosts.len(), lab.storage.len()), (1, 1), "{}", imported.lab);
    assert!(imported.lab.contains("INQUIRY data, which only targets return"), "{}", imported.lab);
}
