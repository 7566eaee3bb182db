//! Instances in the background: `up --detach`, `ps`, `down`, `show --watch`, and `--set` of a
//! running instance.

use sanloom_test_support::started::Folder;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

const LAB: &str = r#"
[lab]
name = "quiet"

[switch.sw1]
[host.server1]
[storage.ram]
lun_size = "1MiB"

[[link]]
from = "{server1,ram}"
to = "sw1"
"#;

/// A folder that is the runtime folder of the user, with a lab.
struct Desk(Folder);

impl Desk {
    fn new(name: &str) -> Desk {
        let folder = Folder::new(name);
        std::fs::write(folder.join("lab.toml"), LAB).unwrap();
        Desk(folder)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sanloom"));
        command.args(line.split_whitespace()).current_dir(&*self.0).env("XDG_RUNTIME_DIR", &*self.0);
        command
    }

    fn output(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Exit code and both outputs.
    fn run(&self, line: &str) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.output(line);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (status.code().unwrap_or(-1), text(stdout), text(stderr))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.output("down --all");
    }
}

#[test]
fn an_instance_in_the_background_is_listed_and_ended() {
    let desk = Desk::new("background");
    let (code, out, _) = desk.run("ps");
    assert_eq!((code, out.as_str()), (0, "No instance is running; start one with `sanloom up LAB`.\n"));
    let (code, out, err) = desk.run("up lab.toml --detach");
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("quiet is up as process ") && out.contains("`sanloom down lab.toml`"), "{out}");
    let (code, out, _) = desk.run("ps --json");
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &list[0]["lab"], list.as_array().map(Vec::len)), (0, &"quiet".into(), Some(1)));
    assert!(std::path::Path::new(list[0]["log"].as_str().unwrap()).exists());
    assert!(desk.run("ps").1.contains("lab.toml"));
    // A second one is refused, with the reason from its log.
    let (code, _, err) = desk.run("up lab.toml --detach");
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("in use"), "{err}");
    let (code, out, _) = desk.run("down lab.toml");
    assert_eq!((code, out.as_str()), (0, "quiet is down.\n"));
    // The process is gone, or ended and not yet removed by its new parent.
    let state = std::fs::read_to_string(format!("/proc/{}/stat", list[0]["pid"])).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
    let (code, _, err) = desk.run("down lab.toml");
    assert_eq!(code, 4);
    assert!(err.contains("no instance of quiet is running"), "{err}");
}

#[test]
fn a_second_start_leaves_the_log_of_the_running_instance() {
    let desk = Desk::new("background-log");
    let (code, _, err) = desk.run("up lab.toml --detach");
    assert_eq!(code, 0, "{err}");
    let list: Value = serde_json::from_str(&desk.run("ps --json").1).unwrap();
    let log = list[0]["log"].as_str().unwrap();
    let before = std::fs::read_to_string(log).unwrap();
    assert!(!before.is_empty());
    let (code, _, err) = desk.run("up lab.toml --detach");
    assert_eq!(code, 4, "{err}");
    assert!(std::fs::read_to_string(log).unwrap().starts_with(&before));
    let logs = std::fs::read_dir(std::path::Path::new(log).parent().unwrap()).unwrap().flatten();
    let logs = logs.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "log"));
    assert_eq!(logs.count(), 1, "the log of the second start is removed");
}

#[test]
fn a_lab_on_standard_input_is_ended_by_its_name() {
    let desk = Desk::new("background-stdin");
    let mut up = desk.command("up - --detach").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    up.stdin.take().unwrap().write_all(LAB.as_bytes()).unwrap();
    let Output { status, stdout, .. } = up.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success() && out.contains("`sanloom down quiet`"), "{out}");
    assert_eq!(desk.run("down quiet").1, "quiet is down.\n");
}

#[test]
fn a_full_disk_in_a_running_instance_has_its_exit_code() {
    let desk = Desk::new("background-full");
    let (code, _, err) = desk.run("up lab.toml --detach");
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = desk.run("capture lab.toml sw1:1 --to /dev/full");
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("/dev/full"), "{err}");
    let (code, _, err) = desk.run("capture lab.toml nowhere --to /dev/full");
    assert_eq!(code, 2, "{err}");
}

#[test]
fn a_recording_on_a_full_disk_ends_the_start() {
    let desk = Desk::new("background-record");
    let (code, out, err) = desk.run("up lab.toml --ready-fd 1 --record /dev/full");
    assert_eq!((code, out.as_str()), (4, ""), "{err}");
    assert!(err.contains("cannot write the recording /dev/full"), "{err}");
}

#[test]
fn an_instance_is_ended_by_its_name() {
    let desk = Desk::new("background-name");
    let (code, _, err) = desk.run("up lab.toml --detach");
    assert_eq!(code, 0, "{err}");
    assert_eq!(desk.run("down quiet").1, "quiet is down.\n");
    let (code, _, err) = desk.run("down quiet");
    assert_eq!(code, 4);
    assert!(err.contains("`sanloom ps`"), "{err}");
    assert_eq!(desk.run("down --all").1, "No instance is running.\n");
    assert_eq!(desk.run("down").0, 2);
}

#[test]
fn a_lab_with_errors_does_not_start_in_the_background() {
    let desk = Desk::new("background-bad");
    std::fs::write(desk.0.join("lab.toml"), "[switch.sw1]\nport = 3\n").unwrap();
    let (code, out, err) = desk.run("up lab.toml --detach");
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("port"), "{err}");
}

#[test]
fn set_applies_to_commands_of_a_running_instance() {
    let desk = Desk::new("background-set");
    let (code, _, err) = desk.run("up lab.toml --detach --set live.control=other.sock");
    assert_eq!(code, 0, "{err}");
    assert_eq!(desk.run("show lab.toml ports --live").0, 4, "the socket has another name");
    let (code, out, err) = desk.run("show lab.toml ports --live --set live.control=other.sock");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("sw1:0"), "{out}");
    let (code, out, _) = desk.run("port disable lab.toml sw1:1 --set live.control=other.sock");
    assert_eq!((code, out.as_str()), (0, "sw1:1 is disabled\n"));
    let (code, out, err) =
        desk.run("apply lab.toml --preview --set live.control=other.sock --set zoning.default=closed");
    assert_eq!(code, 0, "{out}{err}");
    assert!(!out.contains("nothing to change"), "{out}");
}

#[test]
fn a_watched_table_is_repeated_until_ctrl_c() {
    let desk = Desk::new("background-watch");
    let (code, _, err) = desk.run("up lab.toml --detach");
    assert_eq!(code, 0, "{err}");
    let mut watch = desk.command("show lab.toml switch --watch=50ms").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
    let seen = lines.filter(|line| line.contains("sw1")).take(3).count();
    assert_eq!(seen, 3);
    let interrupted = Command::new("kill").args(["-INT", &watch.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    assert_eq!(desk.run("show lab.toml switch --watch=50").0, 2, "a time needs its unit");
}
