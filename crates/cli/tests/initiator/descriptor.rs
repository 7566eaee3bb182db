//! Ports that the parent process opened: both ends of a socket pair, inherited.

use crate::bed::Bed;
use crate::peer::{find, run};
use crate::qemu_io::write_and_verify;
use crate::started::Process;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Starts sanloom with one end of the pair as descriptor 7, and waits until it is ready.
fn with_descriptor(bed: &Bed, end: UnixDatagram, arguments: &[&str]) -> Process {
    let log = File::options().create(true).append(true).open(bed.path("log")).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", "exec \"$@\" 7<&0 </dev/null", "bash", env!("CARGO_BIN_EXE_sanloom")]).args(arguments);
    command.args(["--ready-fd", "1"]).stdin(OwnedFd::from(end)).stdout(Stdio::piped()).stderr(log);
    let mut process = Process(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{}", bed.log());
    process
}

#[test]
fn a_host_works_over_inherited_descriptors_and_hears_that_the_switch_is_gone() {
    let (Some(_), Some(qemu_io)) = (find("nbdinfo"), find("qemu-io")) else { return };
    let change = [("carrier = \"dgram\"", "carrier = \"fd\", address = \"7\"")];
    let bed = Bed::not_started("descriptor", "dgram", &change);
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let (lab, nbd, capture) = (bed.path("lab.toml"), bed.path("nbd.sock"), bed.path("port.pcapng"));
    let mut up = with_descriptor(&bed, ours, &["up", &lab]);
    let host = ["initiator", "--port", "fd:7", "--mac", "52:54:00:00:00:01", "--nbd", &nbd, "--capture", &capture];
    let mut initiator = with_descriptor(&bed, theirs, &host);
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
