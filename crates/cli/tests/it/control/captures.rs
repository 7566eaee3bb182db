//! Captures of all kinds of ports while they run, read by tshark.

use crate::control::instance::Instance;
use crate::sanloom::Start;
use sanloom_api::control::{Answer, Request};
use sanloom_test_support::needs;
use sanloom_test_support::programs::{self, run, try_run};

const LAB: &str = r#"
[switch."sw{1..2}"]
domain = 1

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage.ram]
lun_size = "1MiB"

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram" }

[[link]]
from = "ram"
to = "sw2"

[[isl]]
from = "sw1"
to = "sw2"
"#;

/// An initiator finds its disk through two switches. The same exchange is captured at the Ethernet
/// port, at both ends of the cable between the switches, and at the storage port, each with its
/// direction.
#[needs("tshark")]
#[test]
fn every_kind_of_port_is_captured() {
    let mut instance = Instance::start("captures", LAB);
    let ports = ["sw1:0", "sw1:1", "sw2:1", "ram-sw2"];
    let folder = instance.path("");
    let file = |port: &str| format!("{folder}{}.pcapng", port.replace(':', "-"));
    for port in ports {
        instance.run(&format!("capture {port} LAB --to {}", file(port))).good();
    }
    for (wrong, why) in [("sw1:7", "no port or link `sw1:7`"), ("sw9:0", "sw9:0"), ("server2-sw1", "server2-sw1")] {
        let ran = instance.run(&format!("capture {wrong} LAB --to {}", file("wrong")));
        assert!(ran.code != 0 && ran.stderr.contains(why), "{ran:?}");
    }
    // The cable comes up again, so ELP is captured on it.
    instance.run("port disable sw1:1 LAB").good();
    instance.run("port enable sw1:1 LAB").good();
    instance.wait("the link between the switches", |instance| {
        instance.log().matches("link to another switch up").count() >= 2
    });
    let (nbd, lab) = (instance.path("nbd.sock"), instance.path("lab.toml"));
    instance.folder.sanloom(["initiator", &lab, "--host", "server1", "--nbd", &nbd]).stop();
    let mut frames = Vec::new();
    for port in ports {
        let output = instance.run(&format!("capture {port} LAB")).good();
        // `sw1:1: capture ended, 12 frames`
        let count = output.trim_end().trim_end_matches(" frames").rsplit(' ').next().unwrap();
        frames.push(count.parse::<usize>().unwrap());
    }
    let again = instance.run("capture sw1:1 LAB");
    assert!(again.code != 0 && again.stderr.contains("no capture of `sw1:1`"), "{again:?}");
    instance.stop();

    let found = |port: &str, filter: &str| {
        let (good, out, err) =
            try_run("tshark", &["-r", &file(port), "-Y", filter, "-T", "fields", "-e", "frame.number"]);
        assert!(good, "{filter}: {err}");
        out.lines().count()
    };
    for (port, frames) in ports.iter().zip(frames) {
        assert_eq!(found(port, "frame"), frames, "{port}");
        assert_eq!(found(port, "fcoe.crc.status == 0"), 0, "{port}");
        // Wireshark reads every field of ELP at an offset four bytes too high and runs past its
        // end.
        let malformed = run("tshark", &["-r", &file(port), "-Y", "_ws.malformed"]);
        assert_eq!(malformed.lines().find(|line| !line.contains("ELP")), None, "{port}");
        assert!(found(port, "fc") > 0, "{port}");
    }
    // Direction 1 is inbound and 2 is outbound, from the switch's point of view.
    let (request, answer) = ("fc.type == 0x08 && fc.r_ctl == 0x06", "fc.type == 0x08 && fc.r_ctl == 0x07");
    for (port, toward_disk, toward_host) in [("sw1:0", 1, 2), ("sw1:1", 2, 1), ("sw2:1", 1, 2), ("ram-sw2", 2, 1)] {
        let direction = |filter: &str, way: u32| format!("({filter}) && frame.packet_flags_direction == {way}");
        let of =
            |filter: &str| (found(port, &direction(filter, toward_disk)), found(port, &direction(filter, toward_host)));
        let ((there, nothing), (none, back)) = (of(request), of(answer));
        assert!(there >= 4 && back == there && nothing == 0 && none == 0, "{port}: {there} {nothing} {none} {back}");
    }
    for port in ["sw1:1", "sw2:1"] {
        assert!(found(port, "swils.opcode == 0x10") > 0 && found(port, "swils") > 4, "{port}");
        assert_eq!(found(port, "eth"), 0, "{port}");
    }
    assert!(found("sw1:0", "eth && fip") > 0 && found("sw1:0", "eth && fcoe") > 0);
    assert_eq!(found("sw1:0", "!eth"), 0);
    // A link of the lab means the switch port at its end.
    assert!(
        run("tshark", &["-r", &file("ram-sw2"), "-c", "1", "-T", "fields", "-e", "frame.interface_name"])
            .contains("ram-sw2")
    );
}

/// Captures grow beyond the limit of the size of files, as on a full disk.
#[needs("qemu-io")]
#[test]
fn a_capture_that_cannot_be_written_is_shown_counted_and_ends_commands_with_code_4() {
    let mut instance = Instance::start("captures-full", LAB);
    instance.stop();
    // Size limit of files, in kilobytes.
    instance.up_with_files_of(200);
    for port in ["sw1:0", "ram-sw2"] {
        instance.run(&format!("capture {port} LAB --to @{}", port.replace(':', "-"))).good();
    }
    let shown = |instance: &Instance| instance.run("show captures LAB --live").good();
    assert_eq!(shown(&instance).matches("running").count(), 2);
    instance.start_initiator("server1");
    let uri = programs::uri(&instance.folder.join("nbd.sock"), "");
    run("qemu-io", &["-f", "raw", "-c", "read 0 1M", &uri]);
    instance.wait("the end of both captures", |instance| shown(instance).matches("ended: File too large").count() == 2);
    let Answer::Metrics { text } = instance.ask(&Request::Metrics).unwrap() else { panic!("no metrics") };
    for port in ["sw1:0", "ram-sw2"] {
        assert!(text.contains(&format!("sanloom_capture_failures_total{{port=\"{port}\"}} 1\n")), "{text}");
    }

    let stopped = instance.run("capture sw1:0 LAB");
    assert!(
        stopped.code == 4 && stopped.stderr.contains("sw1-0 of sw1:0 is not complete: File too large"),
        "{stopped:?}"
    );
    assert!(!shown(&instance).contains("sw1:0"));
    let (down, up) = instance.down();
    assert!(down.stdout.ends_with(" is down.\n"), "{down:?}");
    assert!(down.stderr.contains("of ram-sw2 is not complete") && !down.stderr.contains("sw1:0"), "{down:?}");
    assert_eq!((down.code, up), (4, Some(4)), "{down:?}");
}
