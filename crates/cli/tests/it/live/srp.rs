//! SRP over RoCEv2: the kernel's initiator over soft RoCE, in a guest behind a tap.

use crate::sanloom::Start;
use sanloom_test_support::guest::{Emulator, Guest, Machine};
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;
use sanloom_test_support::started::{Folder, Process};
use sanloom_test_support::{alone, tshark, wait};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A disk in a file, so that its data survive the process.
const LAB: &str = r#"
[live]
folder = "{folder}"

[storage.disks]
wwnn = "50:25:a0:00:00:00:10:00"
lun_size = "64MiB"
medium = "file"
direct = false
srp = { portals = "10.9.0.1:5555", request_limit = 64 }
"#;

/// The host. A target that has failed is tried again every second, and I/O waits for it.
const HOST: &str = r#"
trap '[ $? = 0 ] || dmesg | tail -n 30' EXIT
id=5025a00000001000
srp-up 10.9.0.2/24 || exit 1
until ping -c 1 -W 1 10.9.0.1 >/dev/null; do usleep 100000; done
srp-login 10.9.0.1:5555 $id 0123456789abcdef && exit 2
srp-login 10.9.0.1:5556 $id $id && exit 3
echo "refused"
srp-login 10.9.0.1:5555 $id $id tl_retry_count=2 || exit 4
disk-wait 60 || exit 5
port=$(echo /sys/class/srp_remote_ports/port-*)
echo off >$port/fast_io_fail_tmo
echo 1 >$port/reconnect_delay
dd if=/dev/urandom of=/tmp/data bs=64k count=64 2>/dev/null
# Commands with one descriptor and with several.
dd if=/tmp/data of=/dev/sda bs=4k count=16 oflag=direct 2>/dev/null || exit 6
dd if=/tmp/data of=/dev/sda bs=1M oflag=direct 2>/dev/null || exit 7
compare() {
    dd if=/dev/sda of=/tmp/back bs=$1 count=$2 iflag=direct 2>/dev/null || exit 8
    cmp /tmp/data /tmp/back || exit 9
}
compare 1M 4
compare 4k 1024
sg_reset -d /dev/sda || exit 10
compare 64k 64
echo "written"
passes=0
until received restarted; do
    dd if=/tmp/data of=/dev/sda bs=64k seek=64 count=16 oflag=direct 2>/dev/null || exit 11
    passes=$((passes + 1))
done
compare 256k 16
dd if=/dev/sda of=/tmp/back bs=64k skip=64 count=16 iflag=direct 2>/dev/null || exit 12
dd if=/tmp/data of=/tmp/there bs=64k count=16 2>/dev/null
cmp /tmp/there /tmp/back || exit 13
echo "compared after $passes passes"
echo 1 >$port/delete
until [ ! -e /sys/block/sda ]; do usleep 100000; done
"#;

/// A host that registers no memory, so that each page has a descriptor, and whose commands have one
/// descriptor: the others are in a table in its memory.
const TABLES: &str = r#"
trap '[ $? = 0 ] || dmesg | tail -n 30' EXIT
id=5025a00000001000
modprobe ib_srp register_always=N never_register=Y || exit 1
srp-up 10.9.0.2/24 || exit 2
until ping -c 1 -W 1 10.9.0.1 >/dev/null; do usleep 100000; done
srp-login 10.9.0.1:5555 $id $id allow_ext_sg=1,cmd_sg_entries=1,sg_tablesize=256 || exit 3
disk-wait 60 || exit 4
dd if=/dev/urandom of=/tmp/data bs=64k count=64 2>/dev/null
dd if=/tmp/data of=/dev/sda bs=512k oflag=direct 2>/dev/null || exit 5
dd if=/dev/sda of=/tmp/back bs=256k count=16 iflag=direct 2>/dev/null || exit 6
cmp /tmp/data /tmp/back || exit 7
"#;

/// Starts a capture of an interface and waits until it has begun.
fn capture(file: &Path) -> Process {
    let mut command = Command::new("tshark");
    command.args(["-q", "-i", "srp0", "-f", "udp", "-w"]).arg(file);
    let capture = Process(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait::until(|| "a capture".to_owned(), || fs::metadata(file).is_ok_and(|data| data.len() > 0));
    capture
}

/// The interface of the guest, a folder with a lab, and a capture.
struct Bed {
    folder: Folder,
    captured: PathBuf,
    tshark: Process,
}

impl Bed {
    fn new(name: &str) -> Bed {
        run("ip", &["link", "set", "lo", "up"]);
        run("ip", &["tuntap", "add", "dev", "srp0", "mode", "tap"]);
        run("ip", &["address", "add", "10.9.0.1/24", "dev", "srp0"]);
        run("ip", &["link", "set", "srp0", "up"]);
        let folder = Folder::new(name);
        fs::write(folder.join("lab.toml"), LAB.replace("{folder}", &folder.path("run"))).unwrap();
        let captured = folder.join("roce.pcapng");
        let tshark = capture(&captured);
        Bed { folder, captured, tshark }
    }

    fn up(&self) -> Process {
        self.folder.sanloom(["up", &self.folder.path("lab.toml")])
    }

    fn guest(&self, emulator: &Emulator, script: &str) -> Guest {
        let machine = Machine {
            mac: "52:54:00:00:00:02",
            netdev: "tap,ifname=srp0,script=no,downscript=no",
            seven: Stdio::null(),
            seconds: 400,
        };
        emulator.start(&self.folder, "guest", machine, script)
    }

    /// Ends the capture. Requires that tshark finds no malformed frame, and so many frames of each
    /// filter.
    fn check_capture(&mut self, filters: &[(&str, usize)]) {
        self.tshark.stop();
        // tshark does not know SRP, and guesses that some information units are RPC over RDMA.
        let filter = "_ws.malformed || _ws.expert.severity == error";
        let bad = tshark::read(&self.captured, &["--disable-protocol", "rpcordma", "-Y", filter]);
        assert!(bad.is_empty(), "frames that tshark calls malformed: {bad}");
        for (filter, least) in filters {
            let found = tshark::frames(&self.captured, filter).len();
            assert!(found >= *least, "{found} frames of {filter}, {least} expected");
        }
    }
}

/// The host is refused with wrong names, logs in, and writes, reads and compares: around a LUN
/// reset, and while the target is killed and restarted. Its channel ends with a disconnect.
#[needs("guest", "namespace", "tshark")]
#[test]
fn the_kernel_uses_a_disk_over_soft_roce_and_survives_a_killed_target() {
    if !alone::in_network("live::srp::the_kernel_uses_a_disk_over_soft_roce_and_survives_a_killed_target") {
        return;
    }
    let mut bed = Bed::new("srp");
    let mut up = bed.up();
    bed.folder.wait_for_log("id_ext=\"5025a00000001000\"", 1);
    let emulator = Emulator::new();
    let mut guest = bed.guest(&emulator, HOST);
    guest.wait_for_line("refused");
    assert_eq!(bed.folder.logged("the target port has another identifier"), 1);
    assert_eq!(bed.folder.logged("no target has this address and port"), 1);
    guest.wait_for_line("written");
    up.kill();
    up = bed.up();
    bed.folder.wait_for_log("SRP channel initiator", 2);
    guest.send("restarted");
    guest.wait_for_line("compared after");
    guest.end();
    bed.folder.wait_for_log("SRP channel ended", 1);
    up.stop();
    bed.folder.assert_no_errors();
    bed.check_capture(&[
        // REQ, REJ, REP, DREQ and DREP.
        ("infiniband.mad.attributeid == 0x10", 4),
        ("infiniband.mad.attributeid == 0x12", 2),
        ("infiniband.mad.attributeid == 0x13", 2),
        ("infiniband.mad.attributeid == 0x15", 1),
        ("infiniband.mad.attributeid == 0x16", 1),
        // The writes of 4 MiB are read from the host in at most 64 KiB.
        ("infiniband.bth.opcode == 0x0c", 64),
        ("infiniband.bth.opcode == 0x06 || infiniband.bth.opcode == 0x0a", 32),
        ("infiniband.bth.opcode == 0x04", 100),
    ]);
}

/// The target reads tables of descriptors from the memory of the host.
#[needs("guest", "namespace", "tshark")]
#[test]
fn the_kernel_uses_tables_of_descriptors_outside_its_commands() {
    if !alone::in_network("live::srp::the_kernel_uses_tables_of_descriptors_outside_its_commands") {
        return;
    }
    let mut bed = Bed::new("srp-tables");
    let mut up = bed.up();
    let emulator = Emulator::new();
    bed.guest(&emulator, TABLES).end();
    up.stop();
    bed.folder.assert_no_errors();
    // Data are read in whole blocks of 512 bytes, and 8 writes of 512 KiB have tables.
    bed.check_capture(&[("infiniband.bth.opcode == 0x0c && infiniband.reth.dmalen & 0x1ff", 8)]);
}
