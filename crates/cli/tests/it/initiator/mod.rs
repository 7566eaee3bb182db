//! sanloom's initiator with sanloom's switch and storage, and third-party programs at its NBD
//! socket.

mod bed;
mod by_name;
mod descriptor;
mod namespace;
mod netns;
mod pause;
mod stations;
mod taps;
mod tools;
mod two_ports;
mod vlans;

use crate::sanloom::SANLOOM;
use bed::Bed;
use sanloom_test_support::needs;
use sanloom_test_support::programs::{self, fail, run};
use sanloom_test_support::qemu_io::{QemuIo, write_and_verify};
use sanloom_test_support::wait;
use std::process::Command;

/// Names of the exports. The lab generates the port names of storage.
fn exports(bed: &Bed) -> Vec<String> {
    programs::exports(&bed.uri(""))
}

#[needs("nbdcopy", "nbdinfo", "qemu-img", "qemu-io", "tshark")]
#[test]
fn qemu_writes_and_verifies_over_datagrams() {
    let mut bed = Bed::start("dgram", "dgram");
    let names = exports(&bed);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("fc-0x") && name.contains("-lun-")), "{names:?}");
    let info = run("nbdinfo", &["--json", &bed.uri(&names[0])]);
    for part in ["\"export-size\": 67108864", "\"block_size_minimum\": 512", "naa.", "\"can_multi_conn\": true"] {
        assert!(info.contains(part), "no {part} in {info}");
    }
    for name in &names {
        write_and_verify(&bed.uri(name));
    }
    // Copies a whole disk over four connections, and back.
    let (image, back) = (bed.path("image"), bed.path("back"));
    let data: Vec<u8> = (0..64 << 20_u32).map(|n: u32| (n.wrapping_mul(0x9e37_79b9) >> 21) as u8).collect();
    std::fs::write(&image, &data).unwrap();
    run("nbdcopy", &["--connections=4", "--flush", &image, &bed.uri(&names[1])]);
    run("nbdcopy", &["--connections=4", &bed.uri(&names[1]), &back]);
    assert!(std::fs::read(&back).unwrap() == data);
    // QEMU's own tool.
    let uri = bed.uri(&names[2]);
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &image, &uri]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &image, &uri]);
    assert!(run("qemu-img", &["info", "-f", "raw", &uri]).contains("64 MiB"));
    // Access beyond the end, and a missing export.
    assert!(!fail("qemu-io", &["-f", "raw", "-c", "write 64M 4k", &bed.uri(&names[0])]).is_empty());
    assert!(!fail("nbdinfo", &[&bed.uri("fc-0x0-lun-0")]).is_empty());
    bed.stop();
    let log = bed.log();
    assert!(!log.contains("ERROR") && !log.contains("WARN"));
    check_capture(&bed.path("port.pcapng"));
}

#[needs("fio")]
#[test]
fn fio_verifies_over_streams() {
    let mut bed = Bed::start("stream", "stream");
    let uri = format!("--uri={}", bed.uri(""));
    // Concurrent writes may complete in any order, so they must not overlap.
    let arguments = [
        "--name=fcoe",
        "--serialize_overlap=1",
        "--ioengine=nbd",
        &uri,
        "--rw=randwrite",
        "--bsrange=4k-256k",
        "--blockalign=4k",
        "--iodepth=64",
        "--size=32m",
        "--verify=crc32c",
        "--do_verify=1",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--randseed=1",
        "--output-format=terse",
    ];
    let output = run("fio", &arguments);
    assert!(output.lines().any(|line| line.starts_with("3;fio-")), "{output}");
    bed.stop();
}

#[needs("nbdinfo", "qemu-io")]
#[test]
fn a_fabric_that_crashes_under_io_is_only_a_pause() {
    let mut bed = Bed::start("crash", "dgram");
    // Files survive a crash of the serving process.
    let ram = "file";
    let names = exports(&bed);
    let file = names.iter().find(|name| !names.iter().any(|other| other != *name && port(other) == port(name)));
    let uri = bed.uri(file.unwrap_or_else(|| panic!("no {ram} among {names:?}")));
    run("qemu-io", &["-f", "raw", "-c", "write -P 1 0 8M", "-c", "flush", &uri]);
    let mut disk = QemuIo::open(&uri);
    let place = |number: u32| format!("-P {} {number}M 1M", number + 2);
    (0..20).for_each(|number| _ = disk.run(&format!("write {}", place(number))));
    disk.start(&format!("write {}", place(20)));
    bed.kill_fabric();
    bed.folder.wait_for_log("the fabric login was lost", 1);
    bed.start_fabric();
    let printed = disk.result();
    assert!(printed.contains("wrote 1048576/1048576"), "{printed}");
    (21..60).for_each(|number| _ = disk.run(&format!("write {}", place(number))));
    (0..60).for_each(|number| _ = disk.run(&format!("read {}", place(number))));
    disk.close();
    bed.stop();
}

#[needs("nbdinfo", "qemu-io", "tshark")]
#[test]
fn fipvlan_finds_the_vlan_and_an_initiator_follows_it() {
    let mut bed = Bed::start_with("vlan", "dgram", &[("ethernet = {", "ethernet = { vlan = 152,")], false);
    let port = format!("dgram:{},{}", bed.path("server1-sw1.peer.sock"), bed.path("server1-sw1.sock"));
    let found = run(SANLOOM, &["fipvlan", "--mac", "52:54:00:00:00:01", &port]);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[0], "Fibre Channel Forwarders Discovered");
    assert_eq!(lines[1], "interface       | VLAN | FCF MAC          ");
    assert!(lines.len() == 4 && lines[3].contains(" | 152  | "), "{found}");
    // Called by its own name, the tool runs directly.
    let link = bed.path("fipvlan");
    std::os::unix::fs::symlink(SANLOOM, &link).unwrap();
    assert!(run(&link, &["--help"]).contains("--auto"));
    assert!(run(&link, &["-v"]).contains(env!("CARGO_PKG_VERSION")));

    bed.start_initiator(&["--vlan", "auto"]);
    write_and_verify(&bed.uri(&exports(&bed)[0]));
    bed.stop();
    let tagged = run("tshark", &["-r", &bed.path("port.pcapng"), "-Y", "vlan.id == 152 && fcoe"]);
    assert!(!tagged.is_empty());
}

/// Without offloads, and with threads, the data are the same.
#[needs("nbdinfo", "qemu-io", "tshark")]
#[test]
fn data_are_the_same_with_and_without_offloads() {
    let none = ["--crc", "table", "--placement", "off", "--no-segmentation"];
    for (name, offloads) in [("none", &none[..]), ("document", &["--placement", "document"])] {
        let mut bed = Bed::start_with(name, "dgram", &[], false);
        bed.start_initiator(offloads);
        write_and_verify(&bed.uri(&exports(&bed)[0]));
        bed.stop();
        check_capture(&bed.path("port.pcapng"));
    }
}

#[needs("nbdinfo", "qemu-io", "tshark")]
#[test]
fn virtual_ports_have_disks_of_their_own() {
    let mask = r#"
[[mask]]
hosts = "25:00:00:00:00:00:01:01"
targets = ["ram:lun0", "files"]

[[mask]]
hosts = "25:00:00:00:00:00:01:02"
targets = "ram"

[storage.ram]"#;
    let mut bed = Bed::start_with("npiv", "dgram", &[("\n[storage.ram]", mask)], false);
    let ports = [
        "--virtual-port",
        "25:00:00:00:00:00:01:01",
        "--virtual-port",
        "25:00:00:00:00:00:01:02@10:00:00:00:00:00:01:02",
    ];
    bed.start_initiator(&ports);
    // The physical port sees no units, and each virtual port sees two.
    let all_four = || Some(exports(&bed)).filter(|names| names.len() == 4);
    let names = wait::value(|| format!("four of {:?}", exports(&bed)), all_four);
    let of = |port: &str| names.iter().filter(|name| name.starts_with(port)).count();
    assert_eq!((of("fc-0x2500000000000101-0x"), of("fc-0x2500000000000102-0x")), (2, 2), "{names:?}");
    let shared: Vec<&String> =
        names.iter().filter(|name| name.ends_with("-lun-0") && port(name).ends_with(&port(&names[3])[23..])).collect();
    run("qemu-io", &["-f", "raw", "-c", "write -P 0x77 4M 1M", "-c", "flush", &bed.uri(shared[0])]);
    run("qemu-io", &["-f", "raw", "-c", "read -P 0x77 4M 1M", &bed.uri(shared[1])]);
    for name in &names {
        write_and_verify(&bed.uri(name));
    }
    bed.stop();
    check_capture(&bed.path("port.pcapng"));
}

/// The virtual port is part of the export's name.
fn port(name: &str) -> &str {
    name.split("-lun-").next().unwrap_or(name)
}

/// The capture contains no malformed frame and all expected frames.
fn check_capture(file: &str) {
    let wrong = "_ws.malformed || fcoe.crc.status == 0";
    assert_eq!(run("tshark", &["-r", file, "-Y", wrong, "-T", "fields", "-e", "frame.number"]), "", "malformed frames");
    for filter in ["fip", "fcels", "scsi_sbc.opcode == 0x2a", "scsi_sbc.opcode == 0x28", "scsi.inquiry.devtype == 0"] {
        let found = run("tshark", &["-r", file, "-Y", filter, "-T", "fields", "-e", "frame.number"]);
        assert!(!found.is_empty(), "no {filter} in the capture");
    }
}

#[test]
fn wrong_command_lines_report_the_remedy() {
    let run = |arguments: &[&str]| {
        let output = Command::new(SANLOOM).arg("initiator").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fcoe-lab.toml");
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--nbd", "/nowhere/x"], 2, "--port"),
        (&[lab, "--nbd", "/nowhere/x"], 2, "server1, server2"),
        (&[lab, "--host", "server9", "--nbd", "/nowhere/x"], 2, "no host `server9`"),
        (&["--port", "dgram:/nowhere/a,/nowhere/b", "--nbd", "/tmp/x"], 2, "--mac"),
        (&["--port", "serial:1", "--nbd", "/tmp/x"], 2, "dgram:"),
        (&["--port", "dgram:/nowhere/a,/nowhere/b", "--mac", "02:00:00:00:00:01", "--nbd", "/tmp/x"], 4, "/nowhere/a"),
    ];
    for (arguments, code, text) in cases {
        let (got, output) = run(arguments);
        assert_eq!(got, Some(code), "{arguments:?}: {output}");
        assert!(output.contains(text), "{arguments:?}: {output}");
    }
}
