//! Ports that the parent process opened: both ends of a socket pair, inherited.

use crate::bed::Bed;
use crate::descriptors::{AS_SEVEN, with_descriptor};
use crate::peer::{find, run};
use crate::qemu_io::write_and_verify;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn a_host_works_over_inherited_descriptors_and_hears_that_the_switch_is_gone() {
    let (Some(_), Some(qemu_io)) = (find("nbdinfo"), find("qemu-io")) else { return };
    let change = [("carrier = \"dgram\"", "carrier = \"fd\", address = \"7\"")];
    let bed = Bed::not_started("descriptor", "dgram", &change);
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let (lab, nbd, capture) = (bed.path("lab.toml"), bed.path("nbd.sock"), bed.path("port.pcapng"));
    let mut up = with_descriptor(&bed.folder, ours.into(), &["up", &lab]);
    let host = ["initiator", "--port", "fd:7", "--mac", "52:54:00:00:00:01", "--nbd", &nbd, "--capture", &capture];
    let mut initiator = with_descriptor(&bed.folder, theirs.into(), &host);
    for name in crate::exports(&bed) {
        write_and_verify(qemu_io, &bed.uri(&name));
    }
    // The other end of a pair never comes back.
    up.kill();
    let begun = Instant::now();
    while !bed.log().contains("link port=\"fd:7\" up=false") {
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", bed.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    initiator.stop();
    crate::check_capture(&capture);
}

/// Number 9 is open in nobody.
#[test]
fn a_descriptor_that_is_not_open_is_refused() {
    let bed = Bed::not_started("closed", "dgram", &[("carrier = \"dgram\"", "carrier = \"fd\", address = \"9\"")]);
    let (lab, nbd) = (bed.path("lab.toml"), bed.path("nbd.sock"));
    let host = ["initiator", "--port", "fd:9", "--mac", "52:54:00:00:00:01", "--nbd", &nbd];
    for arguments in [&["up", &lab][..], &host] {
        let mut command = Command::new("bash");
        let script = "exec \"$@\" 9<&-";
        command.args(["-c", script, "bash", env!("CARGO_BIN_EXE_sanloom")]).args(arguments);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("cannot use the descriptor 9"), "{said}");
    }
    // Nor is every descriptor a socket.
    let said =
        run("bash", &["-c", "\"$@\" 2>&1 9</dev/null || true", "bash", env!("CARGO_BIN_EXE_sanloom"), "up", &lab]);
    assert!(said.contains("descriptor 9"), "{said}");
}

/// A stream has no frames: what one sends as two frames comes as one.
#[test]
fn a_stream_is_no_port() {
    let bed =
        Bed::not_started("no-datagrams", "dgram", &[("carrier = \"dgram\"", "carrier = \"fd\", address = \"7\"")]);
    let (lab, nbd) = (bed.path("lab.toml"), bed.path("nbd.sock"));
    let host = ["initiator", "--port", "fd:7", "--mac", "52:54:00:00:00:01", "--nbd", &nbd];
    for arguments in [&["up", &lab][..], &host] {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new("bash");
        command.args(AS_SEVEN).arg(env!("CARGO_BIN_EXE_sanloom")).args(arguments).stdin(OwnedFd::from(ours));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("cannot use the descriptor 7: it is no datagram socket"), "{said}");
    }
}
