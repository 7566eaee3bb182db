//! sanloom's initiator, through sanloom's switch, to sanloom's storage, with programs of others at its NBD socket.

mod bed;
mod by_name;
mod descriptor;
#[path = "../../../../tests/descriptors.rs"]
mod descriptors;
mod namespace;
#[path = "../../../../tests/peer.rs"]
mod peer;
#[path = "../../../../tests/qemu_io.rs"]
mod qemu_io;
#[path = "../../../../tests/started.rs"]
mod started;
mod stations;
mod taps;
mod tools;
mod vlans;

use bed::Bed;
use peer::{fail, find, run};
use qemu_io::write_and_verify;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What an export is called: port names of the lab's storage are its own choice.
fn exports(bed: &Bed) -> Vec<String> {
    let listed = run("nbdinfo", &["--list", "--json", &bed.uri("")]);
    let names = listed.lines().filter_map(|line| line.trim().strip_prefix("\"export-name\": \""));
    names.map(|name| name.trim_end_matches(['"', ',']).to_owned()).collect()
}

#[test]
fn qemu_writes_and_verifies_over_datagrams() {
    let (Some(_), Some(qemu_io), Some(nbdcopy)) = (find("nbdinfo"), find("qemu-io"), find("nbdcopy")) else { return };
    let mut bed = Bed::start("dgram", "dgram");
    let names = exports(&bed);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("fc-0x") && name.contains("-lun-")), "{names:?}");
    let told = run("nbdinfo", &["--json", &bed.uri(&names[0])]);
    for part in ["\"export-size\": 67108864", "\"block_size_minimum\": 512", "naa.", "\"can_multi_conn\": true"] {
        assert!(told.contains(part), "no {part} in {told}");
    }
    for name in &names {
        write_and_verify(qemu_io, &bed.uri(name));
    }
    // A whole disk on four connections, and back.
    let (image, back) = (bed.path("image"), bed.path("back"));
    let data: Vec<u8> = (0..64 << 20_u32).map(|n: u32| (n.wrapping_mul(0x9e37_79b9) >> 21) as u8).collect();
    std::fs::write(&image, &data).unwrap();
    run(nbdcopy, &["--connections=4", "--flush", &image, &bed.uri(&names[1])]);
    run(nbdcopy, &["--connections=4", &bed.uri(&names[1]), &back]);
    assert!(std::fs::read(&back).unwrap() == data);
    // QEMU's own tool.
    if let Some(qemu_img) = find("qemu-img") {
        let uri = bed.uri(&names[2]);
        run(qemu_img, &["convert", "-n", "-f", "raw", "-O", "raw", &image, &uri]);
        run(qemu_img, &["compare", "-f", "raw", "-F", "raw", &image, &uri]);
        assert!(run(qemu_img, &["info", "-f", "raw", &uri]).contains("64 MiB"));
    }
    // Beyond the end, and an export that is not there.
    assert!(!fail(qemu_io, &["-f", "raw", "-c", "write 64M 4k", &bed.uri(&names[0])]).is_empty());
    assert!(!fail("nbdinfo", &[&bed.uri("fc-0x0-lun-0")]).is_empty());
    bed.stop();
    let log = bed.log();
    assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
    check_capture(&bed.path("port.pcapng"));
}

#[test]
fn fio_verifies_over_streams() {
    let Some(fio) = find("fio") else { return };
    let mut bed = Bed::start("stream", "stream");
    let uri = format!("--uri={}", bed.uri(""));
    // Writes that are under way at the same time may end in any order, so they must not overlap.
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
    let said = run(fio, &arguments);
    assert!(said.lines().any(|line| line.starts_with("3;fio-")), "{said}");
    bed.stop();
}

#[test]
fn a_fabric_that_crashes_under_io_is_only_a_pause() {
    let (Some(_), Some(qemu_io)) = (find("nbdinfo"), find("qemu-io")) else { return };
    let mut bed = Bed::start("crash", "dgram");
    // Files survive the crash of the process that serves them.
    let ram = "file";
    let names = exports(&bed);
    let file = names.iter().find(|name| !names.iter().any(|other| other != *name && port(other) == port(name)));
    let uri = bed.uri(file.unwrap_or_else(|| panic!("no {ram} among {names:?}")));
    run(qemu_io, &["-f", "raw", "-c", "write -P 1 0 8M", "-c", "flush", &uri]);
    let mut arguments = vec!["-f".to_owned(), "raw".to_owned()];
    for number in 0..60 {
        arguments.extend(["-c".to_owned(), format!("write -P {} {number}M 1M", number + 2), "-c".to_owned()]);
        arguments.push("sleep 50".to_owned());
    }
    arguments.push(uri.clone());
    let mut writer = Command::new(qemu_io).args(&arguments).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_200));
    bed.kill_fabric();
    std::thread::sleep(Duration::from_millis(1_500));
    bed.start_fabric();
    assert!(writer.wait().unwrap().success(), "{}", bed.log());
    let mut arguments = vec!["-f".to_owned(), "raw".to_owned()];
    for number in 0..60 {
        arguments.extend(["-c".to_owned(), format!("read -P {} {number}M 1M", number + 2)]);
    }
    arguments.push(uri);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = run(qemu_io, &arguments);
    assert!(!said.contains("failed"), "{said}");
    bed.stop();
}

#[test]
fn fipvlan_finds_the_vlan_and_an_initiator_follows_it() {
    let (Some(_), Some(qemu_io)) = (find("nbdinfo"), find("qemu-io")) else { return };
    let mut bed = Bed::start_with("vlan", "dgram", &[("ethernet = {", "ethernet = { vlan = 152,")], false);
    let port = format!("dgram:{},{}", bed.path("server1-sw1.peer.sock"), bed.path("server1-sw1.sock"));
    let found = run(env!("CARGO_BIN_EXE_sanloom"), &["fipvlan", "--mac", "52:54:00:00:00:01", &port]);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[0], "Fibre Channel Forwarders Discovered");
    assert_eq!(lines[1], "interface       | VLAN | FCF MAC          ");
    assert!(lines.len() == 4 && lines[3].contains(" | 152  | "), "{found}");
    // Called by its own name, it is that program.
    let link = bed.path("fipvlan");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sanloom"), &link).unwrap();
    assert!(run(&link, &["--help"]).contains("--auto"));
    assert!(run(&link, &["-v"]).contains(env!("CARGO_PKG_VERSION")));

    bed.start_initiator(&["--vlan", "auto"]);
    write_and_verify(qemu_io, &bed.uri(&exports(&bed)[0]));
    bed.stop();
    let Some(tshark) = find("tshark") else { return };
    let tagged = run(tshark, &["-r", &bed.path("port.pcapng"), "-Y", "vlan.id == 152 && fcoe"]);
    assert!(!tagged.is_empty());
}

/// Without any offload, and with threads: the same data.
#[test]
fn data_are_the_same_with_and_without_offloads() {
    let (Some(_), Some(qemu_io)) = (find("nbdinfo"), find("qemu-io")) else { return };
    let none = ["--crc", "table", "--placement", "off", "--no-segmentation", "--receive-threads", "2"];
    for (name, offloads) in [("none", &none[..]), ("document", &["--placement", "document"])] {
        let mut bed = Bed::start_with(name, "dgram", &[], false);
        bed.start_initiator(offloads);
        write_and_verify(qemu_io, &bed.uri(&exports(&bed)[0]));
        bed.stop();
        check_capture(&bed.path("port.pcapng"));
    }
}

#[test]
fn virtual_ports_have_disks_of_their_own() {
    let (Some(_), Some(qemu_io)) = (find("nbdinfo"), find("qemu-io")) else { return };
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
    // The physical port sees nothing, the virtual ones two units each.
    let begun = std::time::Instant::now();
    let names = loop {
        let names = exports(&bed);
        if names.len() == 4 {
            break names;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{names:?}\n{}", bed.log());
        std::thread::sleep(Duration::from_millis(100));
    };
    let of = |port: &str| names.iter().filter(|name| name.starts_with(port)).count();
    assert_eq!((of("fc-0x2500000000000101-0x"), of("fc-0x2500000000000102-0x")), (2, 2), "{names:?}");
    let shared: Vec<&String> =
        names.iter().filter(|name| name.ends_with("-lun-0") && port(name).ends_with(&port(&names[3])[23..])).collect();
    run(qemu_io, &["-f", "raw", "-c", "write -P 0x77 4M 1M", "-c", "flush", &bed.uri(shared[0])]);
    run(qemu_io, &["-f", "raw", "-c", "read -P 0x77 4M 1M", &bed.uri(shared[1])]);
    for name in &names {
        write_and_verify(qemu_io, &bed.uri(name));
    }
    bed.stop();
    check_capture(&bed.path("port.pcapng"));
}

/// The port in the name of an export.
fn port(name: &str) -> &str {
    name.split("-lun-").next().unwrap_or(name)
}

/// Nothing in a capture is malformed, and what has to be there is there.
fn check_capture(file: &str) {
    let Some(tshark) = find("tshark") else { return };
    let wrong = "_ws.malformed || fcoe.crc.status == 0";
    assert_eq!(run(tshark, &["-r", file, "-Y", wrong, "-T", "fields", "-e", "frame.number"]), "", "malformed frames");
    for filter in ["fip", "fcels", "scsi_sbc.opcode == 0x2a", "scsi_sbc.opcode == 0x28", "scsi.inquiry.devtype == 0"] {
        let found = run(tshark, &["-r", file, "-Y", filter, "-T", "fields", "-e", "frame.number"]);
        assert!(!found.is_empty(), "no {filter} in the capture");
    }
}

#[test]
fn wrong_command_lines_say_what_to_do() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sanloom")).arg("initiator").args(arguments).output().unwrap();
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
        let (got, said) = run(arguments);
        assert_eq!(got, Some(code), "{arguments:?}: {said}");
        assert!(said.contains(text), "{arguments:?}: {said}");
    }
}
