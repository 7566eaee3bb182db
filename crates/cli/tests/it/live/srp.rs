//! SRP over RoCEv2: the kernel's initiator over soft RoCE, in a guest behind a tap.

use crate::sanloom::Start;
use sanloom_test_support::guest::{Emulator, Guest, Machine};
use sanloom_test_support::needs;
use sanloom_test_support::programs::run;
use sanloom_test_support::started::{Folder, Process};
use sanloom_test_support::{alone, tshark, wait};
use std::fs;
use std::path::Path;
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
wait_for leave
echo 1 >$port/delete
until [ ! -e /sys/block/sda ]; do usleep 100000; done
"#;

/// Starts a capture of an interface and waits until it has begun.
fn capture(file: &Path) -> Process {
    let mut command = Command::new("tshark");
    command.args(["-q", "-i", "srp0", "-f", "udp", "-w"]).arg(file);
    let capture = Process(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait::until(|| "a capture".to_owned(), || fs::metadata(file).is_ok_and(|data| data.len() > 0));
    capture
}

/// The host is refused with wrong names, logs in, and writes, reads and compares through channels
/// that end in each way: LUN reset, a killed target, and a disconnect.
#[needs("guest", "namespace", "tshark")]
#[test]
fn the_kernel_uses_a_disk_over_soft_roce_and_survives_a_killed_target() {
    if !alone::in_network("live::srp::the_kernel_uses_a_disk_over_soft_roce_and_survives_a_killed_target") {
        return;
    }
    run("ip", &["link", "set", "lo", "up"]);
    run("ip", &["tuntap", "add", "dev", "srp0", "mode", "tap"]);
    run("ip", &["address", "add", "10.9.0.1/24", "dev", "srp0"]);
    run("ip", &["link", "set", "srp0", "up"]);
    let folder = Folder::new("srp");
    fs::write(folder.join("lab.toml"), LAB.replace("{folder}", &folder.path("run"))).unwrap();
    let lab = folder.path("lab.toml");
    let start = || folder.sanloom(["up", &lab]);
    let mut up = start();
    folder.wait_for_log("id_ext=\"5025a00000001000\"", 1);
    let captured = folder.join("roce.pcapng");
    let mut tshark = capture(&captured);

    let emulator = Emulator::new();
    let machine = Machine {
        mac: "52:54:00:00:00:02",
        netdev: "tap,ifname=srp0,script=no,downscript=no",
        seven: Stdio::null(),
        seconds: 400,
    };
    let mut guest: Guest = emulator.start(&folder, "guest", machine, HOST);
    guest.wait_for_line("refused");
    assert_eq!(folder.logged("the target port has another identifier"), 1);
    assert_eq!(folder.logged("no target has this address and port"), 1);
    guest.wait_for_line("written");
    tshark.stop();

    up.kill();
    up = start();
    folder.wait_for_log("SRP channel initiator", 2);
    guest.send("restarted");
    guest.wait_for_line("compared after");
    guest.send("leave");
    guest.end();
    folder.wait_for_log("SRP channel ended", 1);
    up.stop();
    folder.assert_no_errors();

    let bad = tshark::frames(&captured, "_ws.malformed || _ws.expert.severity == error");
    assert!(bad.is_empty(), "{bad:?}: frames that tshark calls malformed");
    let count = |filter: &str| tshark::frames(&captured, filter).len();
    for (filter, least) in [
        ("infiniband.cm.req", 3),
        ("infiniband.cm.rej", 2),
        ("infiniband.cm.rep", 1),
        // Each write of 4 MiB is read from the host in at most 64 KiB.
        ("infiniband.bth.opcode == 0x0c", 64),
        ("infiniband.bth.opcode == 0x06 || infiniband.bth.opcode == 0x0a", 32),
        ("infiniband.bth.opcode == 0x04", 100),
    ] {
        assert!(count(filter) >= least, "{} frames of {filter}, {least} expected", count(filter));
    }
}
