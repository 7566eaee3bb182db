//! The command line of switches over SSH, with real clients: OpenSSH, netmiko and the zone driver
//! of OpenStack's volume service.

use super::fos::Managed;
use sanloom_test_support::needs;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// Port of HTTP; SSH has the second one after it.
const HTTP: u16 = 18_080;
const SSH: u16 = HTTP + 2;

fn start(name: &str, prepare: impl Fn(&Path)) -> Managed {
    Managed::start_with(name, Some(HTTP), &["--fos-ssh"], prepare)
}

/// Runs a script of `tests/ssh` with address, port, password and further arguments.
pub(super) fn python(lab: &Managed, script: &str, more: &[&str]) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = Command::new(format!("{root}/target/ssh-clients/bin/python"));
    let script = format!("{root}/tests/ssh/{script}");
    command.args(["-W", "ignore", &script, &lab.address, &SSH.to_string(), &lab.password]).args(more);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Makes a key for the user `admin`, which the server accepts.
fn make_key(folder: &Path) {
    let key = folder.join("id");
    let mut command = Command::new("ssh-keygen");
    let made = command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status().unwrap();
    assert!(made.success());
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    fs::write(folder.join("ssh-keys"), format!("admin {public}")).unwrap();
}

/// Runs OpenSSH with a password, or with the key of [`make_key`].
fn openssh(lab: &Managed, password: Option<&str>, address: &str, more: &[&str]) -> Output {
    let mut command = Command::new("ssh");
    let known = lab.instance.path("known_hosts");
    command.args(["-F", "none", "-o", "StrictHostKeyChecking=accept-new", "-o", "NumberOfPasswordPrompts=1", "-p"]);
    command.args([&SSH.to_string(), "-o", &format!("UserKnownHostsFile={known}"), "-l", "admin"]);
    match password {
        None => command.args(["-o", "BatchMode=yes", "-i", &lab.instance.path("id")]),
        Some(password) => {
            lab.instance.write("ask", &format!("#!/bin/sh\necho '{password}'\n"));
            let ask = lab.instance.path("ask");
            fs::set_permissions(&ask, fs::Permissions::from_mode(0o700)).unwrap();
            command.env("SSH_ASKPASS", ask).env("SSH_ASKPASS_REQUIRE", "force").args(["-o", "PubkeyAuthentication=no"])
        }
    };
    command.arg(address).args(more).stdin(Stdio::null()).output().unwrap()
}

/// Runs OpenSSH with the password of the last call of [`openssh`].
fn openssh_again(lab: &Managed, address: &str) -> Output {
    let mut command = Command::new("ssh");
    let known = lab.instance.path("known_hosts");
    command.args(["-F", "none", "-o", "StrictHostKeyChecking=accept-new", "-o", "NumberOfPasswordPrompts=1", "-p"]);
    command.args([&SSH.to_string(), "-o", &format!("UserKnownHostsFile={known}"), "-l", "admin"]);
    command.env("SSH_ASKPASS", lab.instance.path("ask")).env("SSH_ASKPASS_REQUIRE", "force");
    command.args(["-o", "PubkeyAuthentication=no", address, "switchname"]).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[needs("ssh", "ssh-keygen")]
#[test]
fn openssh_logs_in_with_password_and_key_and_runs_commands() {
    let mut lab = start("ssh-openssh", make_key);
    let (address, password) = (lab.address.clone(), lab.password.clone());
    let by_password = openssh(&lab, Some(&password), &address, &["switchname; nsallshow"]);
    assert!(by_password.status.success(), "{by_password:?}");
    assert_eq!(text(&by_password), "sw1\n{\n010000 010100 020000 \n3 Nx_Ports in the Fabric }\n");
    let wrong = openssh(&lab, Some("wrong"), &address, &["switchname"]);
    assert!(!wrong.status.success() && wrong.stdout.is_empty(), "{wrong:?}");
    // The second switch has the next address, and the same users.
    let (net, last) = address.rsplit_once('.').unwrap();
    let other = format!("{net}.{}", last.parse::<u8>().unwrap() + 1);
    let by_key = openssh(&lab, None, &other, &["fabricshow"]);
    assert!(text(&by_key).contains(&format!("{other:<15} 0.0.0.0         \"sw2\"")), "{by_key:?}");
    assert_eq!(openssh(&lab, None, &other, &["reboot"]).status.code(), Some(127));
    // A question without an answer changes nothing.
    let asked = openssh(&lab, None, &address, &["cfgdisable"]);
    assert!(text(&asked).ends_with("[no] Operation cancelled.\n"), "{asked:?}");
    let files = openssh(&lab, None, &address, &["-s", "sftp"]);
    assert!(!files.status.success(), "{files:?}");

    // The key of the server lasts, so that clients do not warn, and the password is in no log.
    let key = fs::read(lab.instance.path("ssh_host_ed25519_key")).unwrap();
    assert!(key.starts_with(b"-----BEGIN OPENSSH PRIVATE KEY-----"));
    let log = lab.instance.log();
    let (before, after) = log.split_once(&password).unwrap();
    assert!(before.ends_with("with the password ") && !after.contains(&password), "{log}");
    lab.instance.stop();
    lab.instance.up(&["--fos", &format!("{address}:{HTTP}"), "--fos-ssh"]);
    assert_eq!(text(&openssh(&lab, None, &address, &["switchname"])), "sw1\n");
    assert_eq!(fs::read(lab.instance.path("ssh_host_ed25519_key")).unwrap(), key);
    lab.instance.stop();
}

/// Resident memory of the instance in KiB.
fn memory_kib(lab: &Managed) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", lab.instance.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// 64 MiB for 400 clients.
const MAX_GROWTH_KIB: u64 = 64 << 10;

#[needs("ssh", "ssh-keygen")]
#[test]
fn a_flood_of_clients_leaves_the_memory_bounded_and_the_fabric_as_it_is() {
    let mut lab = start("ssh-flood", make_key);
    let before = (lab.state(), memory_kib(&lab));
    let clients: Vec<TcpStream> = (0..400)
        .map(|number| {
            let mut client = TcpStream::connect((&*lab.address, SSH)).unwrap();
            // Nothing, a banner, garbage, and a packet whose end never comes.
            let mut packet = b"SSH-2.0-flood\r\n\x00\x00\x80\x00\x04".to_vec();
            packet.extend([0x14; 20_000]);
            let bytes: [&[u8]; 4] = [b"", b"SSH-2.0-flood\r\n", &[0xff; 20_000], &packet];
            // The server ends the oldest connections, so a write may fail.
            let _ = client.write_all(bytes[number % 4]);
            client
        })
        .collect();
    for _ in 0..3 {
        assert_eq!(text(&openssh(&lab, None, &lab.address, &["switchname"])), "sw1\n");
        assert!(!openssh(&lab, Some("wrong"), &lab.address, &["switchname"]).status.success());
    }
    assert_eq!(lab.state(), before.0);
    let grown = memory_kib(&lab).saturating_sub(before.1);
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB more memory for {} clients", clients.len());
    lab.instance.stop();
}

#[needs("ssh", "ssh-keygen")]
#[test]
fn a_flood_of_wrong_passwords_hashes_a_few_of_them_and_leaves_users_and_the_fabric_as_they_are() {
    let mut lab = start("ssh-passwords", make_key);
    let before = (lab.state(), memory_kib(&lab));
    // The files of the helper belong to one client at a time, so they are made first.
    assert!(!openssh(&lab, Some("wrong"), &lab.address, &["switchname"]).status.success());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..8 {
                    assert!(!openssh_again(&lab, &lab.address).status.success());
                }
            });
        }
        // A user with a key, and an operator, during the flood.
        for _ in 0..3 {
            assert_eq!(text(&openssh(&lab, None, &lab.address, &["switchname"])), "sw1\n");
            assert_eq!(lab.state(), before.0);
        }
    });
    let events = lab.instance.run("show LAB events --live --json").good();
    let view: sanloom_api::view::View = serde_json::from_str(&events).unwrap();
    let sanloom_api::view::Table::Events(view) = view.table else { panic!("{events}") };
    let failed: Vec<_> = view.events.iter().filter(|row| row.id == "SEC-1193").collect();
    let hashed: u64 = failed.iter().map(|row| row.count).sum();
    assert!((1..=20).contains(&hashed), "{hashed} of 33 passwords were hashed");
    assert!(failed.iter().all(|row| row.text.starts_with("Login failure attempt via SSH.") && row.user == "admin"));
    let grown = memory_kib(&lab).saturating_sub(before.1);
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB more memory");
    lab.instance.stop();
}

/// Processor time of the instance in seconds.
fn processor_s(lab: &Managed) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", lab.instance.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    // Linux reports hundredths of a second to programs.
    ticks / 100.0
}

/// With `SANLOOM_TIMED`, times are judged, too.
#[needs("ssh", "ssh-keygen")]
#[test]
fn answers_over_1000_ports_are_complete_and_within_a_second() {
    let mut lab = Managed::start_wide("ssh-wide", Some(HTTP), &["--fos-ssh"], Some(1_000), make_key);
    let judge = |what: &str, seconds: f64| {
        eprintln!("{what}: {seconds:.3} s");
        assert!(std::env::var_os("SANLOOM_TIMED").is_none() || seconds < 1.0, "{what}: {seconds:.3} s");
    };
    let token = lab.login();
    for object in ["fibrechannel", "fibrechannel-statistics"] {
        let start = Instant::now();
        let answer = lab.send(&format!("GET /rest/running/brocade-interface/{object}"), &[&token], "");
        judge(object, start.elapsed().as_secs_f64());
        assert_eq!(answer.body.matches(&format!("<{object}>")).count(), 1_000);
    }
    for (command, lines) in [("switchshow", 1_017), ("porterrshow", 1_002), ("portstatsshow -i 0-999", 14_999)] {
        let start = Instant::now();
        let output = openssh(&lab, None, &lab.address, &[command]);
        judge(command, start.elapsed().as_secs_f64());
        assert_eq!(text(&output).lines().count(), lines, "{command}");
    }
    let before = processor_s(&lab);
    for _ in 0..500 {
        let answer = lab.send("GET /rest/running/brocade-time/time-zone", &[&token], "");
        assert_eq!(answer.status, 200);
    }
    judge("processor time of 500 requests", processor_s(&lab) - before);
    lab.instance.stop();
}

#[needs("ssh-clients")]
#[test]
fn netmiko_finds_the_prompt_and_runs_commands_and_a_configuration() {
    let mut lab = start("ssh-netmiko", |_| {});
    python(&lab, "netmiko_shell.py", &[]);
    assert!(lab.state().contains("alias a1 H1"), "{:?}", lab.state());
    lab.instance.stop();
}

#[needs("ssh-clients")]
#[test]
fn the_zone_driver_of_the_volume_service_adds_and_deletes_zones() {
    let mut lab = start("ssh-cinder", |_| {});
    let folder = lab.instance.folder.display().to_string();
    let before = lab.state();
    python(&lab, "cinder_zones.py", &[&folder, "50:25:a0:00:00:00:10:01", "50:25:a0:00:00:00:30:01"]);
    // The driver has saved one more zone, without enabling it.
    let after = lab.state();
    let new: Vec<&String> = after.difference(&before).collect();
    assert_eq!(new, ["cfg all-zones z12;openstack3", "zone openstack3 H1;H3"]);
    assert_eq!(lab.instance.zones("sw1").transaction, None);
    lab.instance.stop();
}

#[needs("ssh-clients")]
#[test]
fn the_conversation_of_an_exporter_is_read_by_its_rules() {
    let mut lab = start("ssh-exporter", |_| {});
    python(&lab, "exporter.py", &[]);
    lab.instance.stop();
}
