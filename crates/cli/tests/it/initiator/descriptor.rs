//! Ports opened by the parent process: both ends of a socket pair, inherited.

use crate::initiator::bed::Bed;
use crate::sanloom::SANLOOM;
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;
use sanloom_test_support::qemu_io::write_and_verify;
use sanloom_test_support::started::AS_SEVEN;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;

#[needs("nbdinfo", "qemu-io", "tshark")]
#[test]
fn a_host_works_over_inherited_descriptors_and_detects_the_end_of_the_switch() {
    let change = [("carrier = \"dgram\"", "carrier = \"fd\", address = \"7\"")];
    let bed = Bed::not_started("descriptor", "dgram", &change);
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let (lab, nbd, capture) = (bed.path("lab.toml"), bed.path("nbd.sock"), bed.path("port.pcapng"));
    let mut up = bed.folder.start_with_descriptor(SANLOOM, ours.into(), &["up", &lab]);
    let host = ["initiator", "--port", "fd:7", "--mac", "52:54:00:00:00:01", "--nbd", &nbd, "--capture", &capture];
    let mut initiator = bed.folder.start_with_descriptor(SANLOOM, theirs.into(), &host);
    for name in crate::initiator::exports(&bed) {
        write_and_verify(&bed.uri(&name));
    }
    // The other end of a pair cannot reconnect.
    up.kill();
    bed.folder.wait_for_log("link port=\"fd:7\" up=false", 1);
    initiator.stop();
    crate::initiator::check_capture(&capture);
}

/// Descriptor 9 is open in no process.
#[test]
fn a_descriptor_that_is_not_open_is_rejected() {
    let bed = Bed::not_started("closed", "dgram", &[("carrier = \"dgram\"", "carrier = \"fd\", address = \"9\"")]);
    let (lab, nbd) = (bed.path("lab.toml"), bed.path("nbd.sock"));
    let host = ["initiator", "--port", "fd:9", "--mac", "52:54:00:00:00:01", "--nbd", &nbd];
    for arguments in [&["up", &lab][..], &host] {
        let mut command = Command::new("bash");
        let script = "exec \"$@\" 9<&-";
        command.args(["-c", script, "bash", SANLOOM]).args(arguments);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{stderr}");
        assert!(stderr.contains("cannot use the descriptor 9"), "{stderr}");
    }
    // A descriptor that is not a socket is rejected, too.
    let stderr = run("bash", &["-c", "\"$@\" 2>&1 9</dev/null || true", "bash", SANLOOM, "up", &lab]);
    assert!(stderr.contains("descriptor 9"), "{stderr}");
}

/// A stream has no frame boundaries: two frames arrive as one.
#[test]
fn a_stream_descriptor_is_rejected_as_a_port() {
    let bed =
        Bed::not_started("no-datagrams", "dgram", &[("carrier = \"dgram\"", "carrier = \"fd\", address = \"7\"")]);
    let (lab, nbd) = (bed.path("lab.toml"), bed.path("nbd.sock"));
    let host = ["initiator", "--port", "fd:7", "--mac", "52:54:00:00:00:01", "--nbd", &nbd];
    for arguments in [&["up", &lab][..], &host] {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new("bash");
        command.args(AS_SEVEN).arg(SANLOOM).args(arguments).stdin(OwnedFd::from(ours));
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{stderr}");
        assert!(stderr.contains("cannot use the descriptor 7: it is not a datagram socket"), "{stderr}");
    }
}
