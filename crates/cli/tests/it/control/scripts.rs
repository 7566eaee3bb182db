//! Scripts of `sanloom export zones`, played into the console of a simulated switch.

use super::fos::Managed;
use crate::sanloom::SANLOOM;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The outputs of a switch. Both fabrics use the same names.
fn fabric(letter: char, number: u32) -> String {
    let (host, first, second) = (
        format!("10:00:00:10:9b:1c:0{number}:01"),
        format!("50:00:09:73:00:18:1c:0{number}"),
        format!("50:00:09:73:00:18:1d:0{number}"),
    );
    format!(
        "san{letter}:FID128:admin> switchshow\nswitchName:\tsan{letter}\nswitchDomain:\t1\n\
         switchWwn:\t10:00:88:94:71:6{number}:a3:0{number}\nIndex Port Address  Media  Speed   State         Proto\n\
         0   0   010000   id    N16\tOnline      FC  F-Port  {host}\n\
         1   1   010100   id    N16\tOnline      FC  F-Port  {first}\n\
         2   2   010200   id    N16\tOnline      FC  F-Port  {second}\n\
         san{letter}:FID128:admin> cfgshow\nDefined configuration:\n cfg:\tPROD\tp_esx; z_esx\n\
         \x20zone:\tp_esx\n\t\t00:02:00:00:00:03:01:02; arr; esx\n zone:\tz_esx\tesx; {first}\n\
         \x20alias:\tarr\t{first}; {second}\n alias:\tesx\t{host}\nEffective configuration:\n cfg:\tPROD\n\
         \x20zone:\tp_esx\n\t\t00:02:00:00:00:03:01:02\n\t\t{first}\n\t\t{second}\n\t\t{host}\n\
         \x20zone:\tz_esx\n\t\t{host}\n\t\t{first}\n"
    )
}

/// Plays lines into the console of a switch.
fn play(lab: &Managed, switch: &str, lines: &str) -> Output {
    let lab_file = lab.instance.path("lab.toml");
    let mut process = Command::new(SANLOOM);
    process.args(["console", &lab_file, switch]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = process.spawn().unwrap();
    process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

/// The zone database as the switch prints it.
fn shown(lab: &Managed, switch: &str) -> String {
    lab.instance.run(&format!("console LAB {switch} cfgshow")).good()
}

#[test]
fn a_script_and_its_undo_change_the_zones_of_a_simulated_fabric() {
    // The switches of fabric B, which have the names of fabric A, too.
    let folder = sanloom_test_support::started::Folder::new("scripts-import");
    let path = |name: &str| folder.path(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    let sanloom = |words: &[&str]| {
        let output = Command::new(SANLOOM).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    write("a.txt", &fabric('A', 1));
    write("b.txt", &fabric('B', 2));
    sanloom(&["import", &path("b.txt"), "-o", &path("b.toml")]);
    sanloom(&["import", &path("a.txt"), &path("b.txt"), "-o", &path("both.toml")]);
    let both = std::fs::read_to_string(path("both.toml")).unwrap();
    let b = std::fs::read_to_string(path("b.toml")).unwrap();
    let mut lab = Managed::start_lab("scripts", Some(18_080), &["--simulated"], &b, |_| {});
    let first = shown(&lab, "sanB");
    assert!(first.contains("00:02:00:00:00:03:01:02; arr; esx"), "{first}");

    // A member more in the zone of fabric B, and a new peer zone.
    let members = "members = [\"esx-2\", \"50:00:09:73:00:18:1c:02\"]";
    let zones = "zones = [\"p_esx-2\", \"z_esx-2\"]";
    assert!(both.contains(members) && both.contains(zones), "{both}");
    let new = "[[zone]]\nname = \"p_new\"\nmembers = [\"esx-2\"]\nprincipals = [\"arr-2\"]\n";
    let planned = both
        .replacen(members, "members = [\"esx-2\", \"50:00:09:73:00:18:1c:02\", \"1,7\"]", 1)
        .replacen(zones, "zones = [\"p_esx-2\", \"z_esx-2\", \"p_new\"]", 1)
        .replace(
            "zones = [\"p_esx\", \"z_esx\", \"p_esx-2\", \"z_esx-2\"]",
            "zones = [\"p_esx\", \"z_esx\", \"p_esx-2\", \"z_esx-2\", \"p_new\"]",
        )
        .replacen("[[zone]]\nname = \"p_esx\"", &format!("{new}\n[[zone]]\nname = \"p_esx\""), 1);
    write("planned.toml", &planned);
    let export = ["export", "zones", &path("planned.toml"), "--from", &path("both.toml"), "--format", "fos"];
    sanloom(&[&export[..], &["--config", "PROD-2", "-o", &path("change.txt")]].concat());
    let (script, undo) = (
        std::fs::read_to_string(path("change.txt")).unwrap(),
        std::fs::read_to_string(path("change.undo.txt")).unwrap(),
    );
    assert!(script.contains("zonecreate --peerzone \"p_new\" -principal \"arr\" -members \"esx\""), "{script}");
    assert!(!script.contains("-2") && !undo.contains("-2") && !undo.contains("cfgdisable"), "{script}{undo}");

    let played = play(&lab, "sanB", &script);
    assert!(played.status.success(), "{played:?}");
    let changed = shown(&lab, "sanB");
    for part in [
        " zone:\tz_esx\n\t\tesx; 50:00:09:73:00:18:1c:02; 1,7\n",
        " zone:\tp_new\n\t\t00:02:00:00:00:03:01:02; arr; esx\n",
        " zone:\tp_new\n\t\t00:02:00:00:00:03:01:02\n\t\t50:00:09:73:00:18:1c:02\n",
    ] {
        assert!(changed.contains(part), "no {part:?} in {changed}");
    }
    let played = play(&lab, "sanB", &undo);
    assert!(played.status.success(), "{played:?}");
    assert_eq!(shown(&lab, "sanB"), first);

    // Edits of peer zones, and a question without an answer.
    let edits = "zonecreate --peerzone \"p_more\" -principal \"arr\" -members \"esx; 1,8\"\n\
                 zoneadd --peerzone \"p_more\" -members \"1,9\"\nzoneremove --peerzone \"p_more\" -members \"1,8\"\n\
                 zoneadd --peerzone \"p_more\" -principal \"10:00:00:10:9b:1c:02:77\"\nzoneshow p_more\n";
    let played = play(&lab, "sanB", edits);
    assert_eq!(
        String::from_utf8_lossy(&played.stdout),
        " zone:\tp_more\n\t\t00:02:00:00:00:03:01:03; arr; 10:00:00:10:9b:1c:02:77; esx; \n\t\t1,9\n",
        "{played:?}"
    );
    for (lines, part) in [
        ("cfgsave\n", "question"),
        ("zonecreate --peerzone \"p\"\n", "failed"),
        ("zoneadd --peerzone \"none\" -members \"1,1\"\n", "failed"),
        ("zonecreate --peerzone \"p\" stray\n", "failed"),
        // A failure before commands that succeed.
        ("reboot\nreboot\nuptime\n", "2 commands at sanB have failed"),
        ("reboot; uptime\nuptime\n", "a command at sanB has failed"),
    ] {
        let played = play(&lab, "sanB", lines);
        assert!(!played.status.success() && String::from_utf8_lossy(&played.stderr).contains(part), "{played:?}");
    }
    lab.instance.stop();
}
