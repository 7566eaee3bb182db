//! CHAP secrets of a switch, for its back ends and its hosts, in both directions: they are stored
//! in files, and never logged, shown, counted, recorded or stored elsewhere.

use crate::iscsi_switch::bed::{Bed, HOSTS_TARGET};
use crate::sanloom::{SANLOOM, Start};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sanloom_test_support::needs;
use sanloom_test_support::ports::free_port;
use sanloom_test_support::programs::{run, try_run, uri};
use sanloom_test_support::wait;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Files and their secrets. No two secrets share a prefix.
const SECRETS: [(&str, &str); 5] = [
    ("back.secret", "kdA8-from-switch"),
    ("array.secret", "Zq3!to-the-switch"),
    ("host.secret", "w7xU-from-hosts-"),
    ("gate.secret", "9fLp?to-the-hosts"),
    ("wrong.secret", "Vn52-nobody-knows"),
];

/// A target and a switch in front of it, in one process. Both require authentication and
/// authenticate themselves.
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

#[test]
fn a_switch_and_its_back_ends_prove_who_they_are_in_both_directions() {
    for (name, own, proof, why) in [
        ("chap-good", "back.secret", "array.secret", None),
        ("chap-own", "wrong.secret", "array.secret", Some("the target refuses the login")),
        ("chap-proof", "back.secret", "wrong.secret", Some("the CHAP response of the target is wrong or missing")),
    ] {
        let portals = [free_port(), free_port()];
        let bed = bed(name, &portals, own, proof);
        let lab = bed.path("switch.toml");
        let mut up = bed.folder.sanloom(["up", &lab, "--log", "debug"]);
        let paths = || run(SANLOOM, &["show", "paths", &lab, "--live", "--json"]);
        let is_there = || run(SANLOOM, &["show", "volumes", &lab, "--live"]).lines().any(|line| line.starts_with('v'));
        match why {
            None => wait::until(paths, is_there),
            Some(why) => {
                wait::until(paths, || paths().contains(why));
                bed.folder.wait_for_log("still no session through a portal", 2);
                assert!(!is_there(), "there is a volume without a back end");
                // The login is retried, but logged once.
                let log = bed.log();
                let output: Vec<&str> = log.lines().filter(|line| line.contains(" WARN no session")).collect();
                assert!(output.len() == 1 && output[0].contains(why), "{output:?}");
                assert!(
                    output[0].contains(&format!("portal={}", portals[0])) && output[0].contains("next="),
                    "{output:?}"
                );
                assert_eq!(bed.folder.logged("the session ended"), 0, "sessions that were lost");
            }
        }
        up.stop();
    }
}

#[needs("iscsi-ls")]
#[test]
fn discovery_requires_authentication_if_all_targets_do_and_is_open_to_every_permitted_initiator() {
    let portals = [free_port(), free_port()];
    let bed = bed("chap-discovery", &portals, "back.secret", "array.secret");
    let mut up = bed.up("switch.toml");
    let ask = |user: &str| {
        let (_, out, err) = try_run("iscsi-ls", &[&format!("iscsi://{user}{}", portals[1])]);
        (out.contains(HOSTS_TARGET), out + &err)
    };
    for (user, is_listed) in [
        ("", false),
        ("host%Vn52-nobody-knows@", false),
        ("nobody%w7xU-from-hosts-@", false),
        ("host%w7xU-from-hosts-@", true),
        // Credentials of the switch at its back end.
        ("switch%kdA8-from-switch@", true),
    ] {
        let (listed, output) = ask(user);
        assert_eq!(listed, is_listed, "{user}: {output}");
    }
    up.stop();
    // A target without authentication; discovery does not require it either.
    let open = free_port();
    let lab = fs::read_to_string(bed.path("switch.toml")).unwrap();
    let more = format!("[storage.open]\nlun_size = \"1MiB\"\niscsi = {{ portals = \"{open}\" }}\n");
    fs::write(bed.path("switch.toml"), lab + &more).unwrap();
    let mut up = bed.up("switch.toml");
    let (listed, output) = ask("");
    assert!(listed, "{output}");
    up.stop();
}

/// All encodings of a secret, and their prefixes, because even a part must not be printed.
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

/// Requires that the text contains no form of any secret.
fn assert_tells_nothing(what: &str, bytes: &[u8]) {
    assert!(!bytes.is_empty(), "{what} is empty");
    for (file, secret) in SECRETS {
        for form in forms(secret) {
            let found = bytes.windows(form.len()).any(|window| window == form.as_bytes());
            assert!(!found, "{what} has the secret of {file} as {form}");
        }
    }
}

#[needs("curl", "iscsi-inq", "qemu-io")]
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
    wait::until(
        || "the volume is there".to_owned(),
        || run(SANLOOM, &["show", "volumes", &lab, "--live"]).lines().any(|line| line.starts_with('v')),
    );
    let mut output = Vec::new();
    // Our initiator with correct and wrong secrets.
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
        let mut initiator = sanloom_test_support::started::Process(command.spawn().unwrap());
        let log = || fs::read_to_string(bed.path("initiator.log")).unwrap();
        let right = (own, proof) == ("host", "gate");
        if right {
            let export = uri(Path::new(&socket), "iqn.2026-11.example.sanloom:switch-lun-0");
            let commands = ["-f", "raw", "-c", "write -P 0x33 1M 1M", "-c", "read -P 0x33 1M 1M", &export];
            wait::until(log, || try_run("qemu-io", &commands).0);
        } else {
            wait::until(log, || log().contains("no session through a portal"));
        }
        initiator.kill();
        output.push((
            format!("log of the initiator with {own} and {proof}"),
            fs::read(bed.path("initiator.log")).unwrap(),
        ));
    }
    // The secrets of another host.
    for user in ["host%w7xU-from-hosts-", "host%Vn52-nobody-knows", "nobody%Vn52-nobody-knows"] {
        let (_, out, err) = try_run("iscsi-inq", &[&format!("iscsi://{user}@{portal}/{HOSTS_TARGET}/0")]);
        assert_eq!((out + &err).contains("SANLOOM"), user == "host%w7xU-from-hosts-");
    }
    for table in ["sessions", "volumes", "paths", "stats", "luns", "counters"] {
        for form in [&[][..], &["--json"]] {
            let shown = run(SANLOOM, &[&["show", table, &lab, "--live"], form].concat());
            output.push((format!("show {table} {form:?}"), shown.into_bytes()));
        }
    }
    let socket = bed.path("control.sock");
    let metrics = run("curl", &["-s", "--unix-socket", &socket, "http://localhost/metrics"]);
    output.push(("the metrics".to_owned(), metrics.into_bytes()));
    up.stop();
    // The rejected lab, with the invalid secret in a file.
    for (file, secret) in [("host.secret", &SECRETS[2].1[..11]), ("gate.secret", SECRETS[2].1)] {
        let before = fs::read(bed.path(file)).unwrap();
        fs::write(bed.path(file), secret).unwrap();
        let (good, out, err) = try_run(SANLOOM, &["up", &lab]);
        assert!(!good && err.contains(".secret"), "{out}{err}");
        output.push((format!("the refusal of {file}"), err.into_bytes()));
        fs::write(bed.path(file), before).unwrap();
    }
    // All contents of the folder except the secret files: logs, the recording, and the store with
    // its journal.
    let mut kept = 0;
    for entry in fs::read_dir(&*bed.folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_file() && !name.ends_with(".secret") && entry.metadata().unwrap().len() > 0 {
            kept += 1;
            output.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    let there = |name: &str| output.iter().any(|(what, _)| what == name);
    assert!(kept >= 3 && there("log") && there("run.jsonl") && there("state.sqlite"), "{kept} files");
    assert!(bed.log().contains("DEBUG") || bed.log().contains("TRACE"), "nothing is logged in detail");
    output.iter().for_each(|(what, bytes)| assert_tells_nothing(what, bytes));
}
