//! `sanloom users`: the table of users of a lab.

use crate::control::instance::Instance;
use crate::control::zoned::two_disks;
use crate::sanloom::SANLOOM;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

/// Runs `sanloom users COMMAND LAB REST…` with this standard input.
fn users(instance: &Instance, command: &str, rest: &[&str], input: &str) -> Output {
    let mut child = Command::new(SANLOOM)
        .args(["users", command, &instance.path("lab.toml")])
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn refused(output: &Output, why: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(why), "{text}");
}

/// Status of a request to the page with Basic authentication.
fn status(address: &str, authorization: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = r#"{"request":"show","table":"ports"}"#;
    write!(
        stream,
        "POST /api/v1/request HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAuthorization: Basic \
         {authorization}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{request}",
        request.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn users_are_added_listed_changed_and_removed_and_log_in_at_the_next_start() {
    let mut instance = Instance::start("users", &two_disks("[switch.sw1]\n", "sw1"));
    instance.stop();
    assert_eq!(done(&users(&instance, "list", &[], "")), "");
    done(&users(&instance, "add", &["ada", "--role", "operate"], "correct horse\n"));
    done(&users(&instance, "add", &["bob"], "battery staple\nnot a part of it\n"));
    assert_eq!(done(&users(&instance, "list", &[], "")), "ada  operate\nbob  view\n");
    let file = instance.folder.path("users");
    let table = fs::read_to_string(&file).unwrap();
    assert!(table.contains("$argon2id$") && !table.contains("horse") && !table.contains("staple"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    refused(&users(&instance, "add", &["ada"], "another one\n"), "the user ada exists");
    refused(&users(&instance, "add", &["eve"], "short\n"), "8 to 1024 bytes");
    refused(&users(&instance, "add", &["a b"], "correct horse\n"), "a user name has");
    refused(&users(&instance, "role", &["eve", "view"], ""), "has ada, bob");
    refused(&users(&instance, "role", &["ada", "root"], ""), "administer");
    refused(&users(&instance, "remove", &["eve"], ""), "there is no user `eve`");
    assert_eq!(fs::read_to_string(&file).unwrap(), table, "a refused command changes nothing");

    let page = |instance: &mut Instance| {
        instance.up(&["--web", "127.0.0.1:0"]);
        instance.page_url().trim_start_matches("http://").trim_end_matches('/').to_owned()
    };
    let address = page(&mut instance);
    let logins = ["ada:correct horse", "bob:battery staple", "ada:battery staple"].map(|login| STANDARD.encode(login));
    assert_eq!(logins.each_ref().map(|login| status(&address, login)), ["200", "200", "401"]);
    instance.stop();

    done(&users(&instance, "password", &["ada"], "battery staple\n"));
    done(&users(&instance, "role", &["ada", "administer"], ""));
    done(&users(&instance, "remove", &["bob"], ""));
    let json = done(&users(&instance, "list", &["--json"], ""));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&json).unwrap(),
        serde_json::json!([{"name": "ada", "role": "administer"}])
    );
    let address = page(&mut instance);
    assert_eq!(logins.each_ref().map(|login| status(&address, login)), ["401", "401", "200"]);
    instance.stop();
}

#[test]
fn users_that_are_added_at_the_same_time_are_all_in_the_table_that_a_link_points_to() {
    let mut instance = Instance::start("users-lock", &two_disks("[switch.sw1]\n", "sw1"));
    instance.stop();
    let (link, file) = (instance.folder.path("users"), instance.folder.path("shared-users"));
    fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let names = ["a", "b", "c", "d", "e", "f"];
    std::thread::scope(|scope| {
        for name in names {
            let instance = &instance;
            scope.spawn(move || {
                let output = users(instance, "add", &[name], "correct horse\n");
                done(&output);
                let path = fs::canonicalize(instance.folder.path("shared-users")).unwrap();
                let note = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(note.contains(&path.display().to_string()), "{note}");
            });
        }
    });
    let listed = done(&users(&instance, "list", &[], ""));
    assert_eq!(listed, names.map(|name| format!("{name}  view\n")).concat());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}
