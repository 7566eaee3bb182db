//! An instance as a service of systemd: its folders, and the notice that it is ready.

use crate::sanloom::SANLOOM;
use sanloom_test_support::started::Folder;
use sanloom_test_support::wait;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

const LAB: &str = r#"
[switch.sw1]
[host.server]
[storage.disk]
medium = "file"
lun_size = "1MiB"
[[link]]
from = "server"
to = "sw1"
ethernet = { carrier = "dgram" }
[[link]]
from = "disk"
to = "sw1"
"#;

#[test]
fn a_service_reports_that_it_is_ready_and_keeps_state_and_sockets_apart() {
    let folder = Folder::new("service");
    let (runtime, state, lab) = (folder.path("run"), folder.path("state"), folder.path("lab.toml"));
    fs::write(&lab, LAB).unwrap();
    let notices = UnixDatagram::bind(folder.join("notify")).unwrap();
    notices.set_read_timeout(Some(wait::TIMEOUT)).unwrap();
    // systemd gives several folders of a unit in one variable.
    let service = [
        ("SANLOOM_SERVICE", "service".to_owned()),
        ("NOTIFY_SOCKET", folder.path("notify")),
        ("RUNTIME_DIRECTORY", runtime.clone()),
        ("STATE_DIRECTORY", format!("{state}:/var/lib/other")),
    ];
    let mut up = Command::new(SANLOOM);
    let process = folder.start({
        up.args(["up", &lab]).envs(service.clone());
        up
    });
    let mut notice = [0; 64];
    let length = notices.recv(&mut notice).unwrap();
    assert_eq!(&notice[..length], b"READY=1");
    let names = |folder: &str| {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with("state.sqlite-"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&state), ["disk-lun0.img", "state.sqlite"]);
    assert_eq!(names(&runtime), ["control.sock", "instances", "server-sw1.sock"]);
    // A reload runs in the same environment.
    let reload = Command::new(SANLOOM).args(["apply", &lab]).envs(service).output().unwrap();
    assert!(reload.status.success(), "{}", String::from_utf8_lossy(&reload.stderr));
    drop(process);
    folder.assert_no_errors();
}
