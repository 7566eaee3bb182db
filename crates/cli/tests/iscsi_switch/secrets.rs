//! Secrets of CHAP, which a switch proves to its back ends and asks of its hosts, in both directions: they stand in files and in nothing
//! else that is logged, shown, counted, recorded or kept.

use crate::bed::{Bed, HOSTS_TARGET, SANLOOM, free_port};
use crate::peer::{find, run, try_run, uri};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Files and what is in them. No two begin alike.
const SECRETS: [(&str, &str); 5] = [
    ("back.secret", "kdA8-from-switch"),
    ("array.secret", "Zq3!to-the-switch"),
    ("host.secret", "w7xU-from-hosts-"),
    ("gate.secret", "9fLp?to-the-hosts"),
    ("wrong.secret", "Vn52-nobody-knows"),
];

/// A target and a switch in front of it, in one process. Both ask for a proof, and give one.
fn lab(portals: &[String; 2], own: &str, proof: &str) -> String {
    format!(
        r#"
[storage.disk]
lun_size = "32MiB"

[storage.disk.iscsi]
portals = "{}"
chap_name = "switch"
chap_secret_file = "back.secret"
own_chap_name = "array"
own_chap_secret_file = "array.secret"

[storage.switch]
medium = "volumes"

[storage.switch.iscsi]
portals = "{}"
chap_name = "host"
chap_secret_file = "host.secret"
own_chap_name = "gate"
own_chap_secret_file = "gate.secret"

[pool.disks]
extent = "1MiB"

[back_end.disk]
pool = "disks"
target = "iqn.2026-11.example.sanloom:disk"
portals = "{}"
chap_name = "switch"
chap_secret_file = "{own}"
target_chap_name = "array"
target_chap_secret_file = "{proof}"

[volume.v]
pool = "disks"
size = "16MiB"
storage = "switch"
"#,
        portals[0], portals[1], portals[0]
    )
}

/// A folder with the secrets, and the lab in it.
fn bed(name: &str, portals: &[String; 2], own: &str, proof: &str) -> Bed {
    let bed = Bed::new(name);
    for (file, secret) in SECRETS {
        fs::write(bed.path(file), format!("{secret}\n")).unwrap();
    }
    let head = format!("[live]\nfolder = \"{}\"\n", bed.folder.display());
    fs::write(bed.path("switch.toml"), head + &lab(portals, own, proof)).unwrap();
    bed
}

/// Lines with this.
fn count(log: &str, what: &str) -> usize {
    log.lines().filter(|line| line.contains(what)).count()
}

#[test]
fn a_switch_and_its_back_ends_prove_who_they_are_in_both_directions() {
    for (name, own, proof, why) in [
        ("chap-good", "back.secret", "array.secret", None),
        ("chap-own", "wrong.secret", "array.secret", Some("the target refuses the login")),
        ("chap-proof", "back.secret", "wrong.secret", Some("the target does not prove who it is")),
    ] {
        let portals = [free_port(), free_port()];
        let bed = bed(name, &portals, own, proof);
        let lab = bed.path("switch.toml");
        let mut up = bed.folder.sanloom(["up", &lab, "--log", "debug"]);
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let paths = run(SANLOOM, &["show", "paths", &lab, "--live", "--json"]);
            let volumes = run(SANLOOM, &["show", "volumes", &lab, "--live"]);
            let there = volumes.lines().any(|line| line.starts_with('v'));
            match why {
                None if there => break,
                Some(why) if paths.contains(why) && count(&bed.log(), "still no session through a portal") > 1 => {
                    assert!(!there, "{volumes}");
                    // It is tried again and again, and said once.
                    let log = bed.log();
                    let said: Vec<&str> = log.lines().filter(|line| line.contains(" WARN no session")).collect();
                    assert!(said.len() == 1 && said[0].contains(why), "{log}");
                    assert!(said[0].contains(&format!("portal={}", portals[0])) && said[0].contains("next="), "{log}");
                    assert_eq!(count(&log, "the session is gone"), 0, "{log}");
                    break;
                }
                _ => assert!(Instant::now() < until, "{paths}\n{}", bed.log()),
            }
            thread::sleep(Duration::from_millis(50));
        }
        up.stop();
    }
}

#[test]
fn discovery_asks_for_a_proof_where_all_targets_do_and_whoever_may_log_in_to_one_may_ask() {
    let Some(ls) = find("iscsi-ls") else { return };
    let portals = [free_port(), free_port()];
    let bed = bed("chap-discovery", &portals, "back.secret", "array.secret");
    let mut up = bed.up("switch.toml");
    let ask = |user: &str| {
        let (_, out, err) = try_run(ls, &[&format!("iscsi://{user}{}", portals[1])]);
        (out.contains(HOSTS_TARGET), out + &err)
    };
    for (user, is_told) in [
        ("", false),
        ("host%Vn52-nobody-knows@", false),
        ("nobody%w7xU-from-hosts-@", false),
        ("host%w7xU-from-hosts-@", true),
        // As the switch itself is known to its back end.
        ("switch%kdA8-from-switch@", true),
    ] {
        let (told, said) = ask(user);
        assert_eq!(told, is_told, "{user}: {said}");
    }
    up.stop();
    // One that asks nobody, and discovery asks nobody either.
    let open = free_port();
    let lab = fs::read_to_string(bed.path("switch.toml")).unwrap();
    let more = format!("[storage.open]\nlun_size = \"1MiB\"\niscsi = {{ portals = \"{open}\" }}\n");
    fs::write(bed.path("switch.toml"), lab + &more).unwrap();
    let mut up = bed.up("switch.toml");
    let (told, said) = ask("");
    assert!(told, "{said}");
    up.stop();
}

/// All ways to write a secret, and their beginnings: whoever writes a part of one tells too much.
fn forms(secret: &str) -> Vec<String> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let list = |bytes: &[u8]| bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let begin = &secret.as_bytes()[..9];
    vec![
        secret[..9].to_owned(),
        hex(begin),
        hex(begin).to_uppercase(),
        STANDARD.encode(begin),
        list(begin),
        list(begin).replace(' ', ""),
    ]
}

/// No form of any secret is in this.
fn assert_tells_nothing(what: &str, bytes: &[u8]) {
    assert!(!bytes.is_empty(), "{what} is empty");
    for (file, secret) in SECRETS {
        for form in forms(secret) {
            let found = bytes.windows(form.len()).any(|window| window == form.as_bytes());
            assert!(!found, "{what} has the secret of {file} as {form}");
        }
    }
}

#[test]
fn no_secret_is_found_outside_of_its_file() {
    for json in [false, true] {
        let portals = [free_port(), free_port()];
        let bed = bed(if json { "secrets-json" } else { "secrets" }, &portals, "back.secret", "array.secret");
        tells_nothing(&bed, &portals[1], json);
    }
}

fn tells_nothing(bed: &Bed, portal: &str, json: bool) {
    let (lab, recording) = (bed.path("switch.toml"), bed.path("run.jsonl"));
    let logged: &[&str] = if json { &["--log", "trace", "--log-json"] } else { &["--log", "trace"] };
    let mut up = bed.folder.sanloom([&["up", &lab, "--record", &recording], logged].concat());
    let until = Instant::now() + Duration::from_secs(20);
    while !run(SANLOOM, &["show", "volumes", &lab, "--live"]).lines().any(|line| line.starts_with('v')) {
        assert!(Instant::now() < until, "{}", bed.log());
        thread::sleep(Duration::from_millis(50));
    }
    let mut said = Vec::new();
    // Our initiator, with the right secrets and with wrong ones.
    let target = format!("{portal}/{HOSTS_TARGET}");
    for (own, proof) in [("host", "gate"), ("wrong", "gate"), ("host", "wrong")] {
        let socket = bed.path(&format!("{own}-{proof}.sock"));
        let [own_file, proof_file] = [own, proof].map(|name| bed.path(&format!("{name}.secret")));
        let arguments = [
            &["initiator", "--iscsi", &target, "--nbd", &socket, "--chap-name", "host"][..],
            &["--chap-secret-file", &own_file, "--target-chap-name", "gate", "--target-secret-file", &proof_file],
            logged,
        ];
        let log = fs::File::create(bed.path("initiator.log")).unwrap();
        let mut command = Command::new(SANLOOM);
        command.args(arguments.concat()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut initiator = crate::started::Process(command.spawn().unwrap());
        let right = (own, proof) == ("host", "gate");
        if let Some(qemu_io) = find("qemu-io").filter(|_| right) {
            let export = uri(Path::new(&socket), "iqn.2026-11.example.sanloom:switch-lun-0");
            let until = Instant::now() + Duration::from_secs(20);
            let commands = ["-f", "raw", "-c", "write -P 0x33 1M 1M", "-c", "read -P 0x33 1M 1M", &export];
            while !try_run(qemu_io, &commands).0 {
                assert!(Instant::now() < until, "{}", fs::read_to_string(bed.path("initiator.log")).unwrap());
                thread::sleep(Duration::from_millis(100));
            }
        } else {
            thread::sleep(Duration::from_millis(800));
        }
        initiator.kill();
        said.push((
            format!("log of the initiator with {own} and {proof}"),
            fs::read(bed.path("initiator.log")).unwrap(),
        ));
    }
    // Those of somebody else.
    if let Some(inq) = find("iscsi-inq") {
        for user in ["host%w7xU-from-hosts-", "host%Vn52-nobody-knows", "nobody%Vn52-nobody-knows"] {
            let (_, out, err) = try_run(inq, &[&format!("iscsi://{user}@{portal}/{HOSTS_TARGET}/0")]);
            assert_eq!((out + &err).contains("SANLOOM"), user == "host%w7xU-from-hosts-");
        }
    }
    for table in ["sessions", "volumes", "paths", "stats", "luns", "counters"] {
        for form in [&[][..], &["--json"]] {
            let shown = run(SANLOOM, &[&["show", table, &lab, "--live"], form].concat());
            said.push((format!("show {table} {form:?}"), shown.into_bytes()));
        }
    }
    if let Some(curl) = find("curl") {
        let socket = bed.path("control.sock");
        let told = run(curl, &["-s", "--unix-socket", &socket, "http://localhost/metrics"]);
        said.push(("the metrics".to_owned(), told.into_bytes()));
    }
    up.stop();
    // What is refused, with the secret at fault in a file.
    for (file, secret) in [("host.secret", &SECRETS[2].1[..11]), ("gate.secret", SECRETS[2].1)] {
        let before = fs::read(bed.path(file)).unwrap();
        fs::write(bed.path(file), secret).unwrap();
        let (good, out, err) = try_run(SANLOOM, &["up", &lab]);
        assert!(!good && err.contains(".secret"), "{out}{err}");
        said.push((format!("the refusal of {file}"), err.into_bytes()));
        fs::write(bed.path(file), before).unwrap();
    }
    // Everything that is in the folder but for the files themselves: logs, the recording, the store with its journal.
    let mut kept = 0;
    for entry in fs::read_dir(&*bed.folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_file() && !name.ends_with(".secret") && entry.metadata().unwrap().len() > 0 {
            kept += 1;
            said.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    let there = |name: &str| said.iter().any(|(what, _)| what == name);
    assert!(kept >= 3 && there("log") && there("run.jsonl") && there("state.sqlite"), "{kept} files");
    assert!(bed.log().contains("DEBUG") || bed.log().contains("TRACE"), "nothing is logged in detail");
    said.iter().for_each(|(what, bytes)| assert_tells_nothing(what, bytes));
}
