//! `sanloom up --record` and `sanloom replay`: the machines of a live run produce the same outputs
//! for the same inputs.

use crate::control::instance::Instance;
use crate::sanloom::Start;
use serde_json::Value;

const LAB: &str = r#"
[switch."sw{1..2}"]
domain = 1

[switch.sw1]
addressing = "flat"
learn_addresses = true

[host.server1]
wwpn = "20:00:52:54:00:00:00:01"

[storage."disk{1..2}"]
lun_size = "1MiB"

[zoning]
default = "closed"

[[zone]]
name = "z1"
members = ["server1", "disk1"]

[storage.station]
lun_size = "1MiB"
vn2vn = { carrier = "dgram" }

[[link]]
from = "server1"
to = "sw1"
ethernet = { carrier = "dgram", dcbx = true }

[[link]]
from = "disk{1..2}"
to = "sw{1..2}"

[[isl]]
from = "sw1"
to = "sw2"
"#;

const EDITS: &str = "[[edit]]\naction = \"create\"\nzone = \"z2\"\nmembers = [\"server1\", \"disk2\"]\n";

/// A run with logins, a zone change through two switches, and a port that is disabled and enabled;
/// then a crash.
fn recorded(name: &str) -> Instance {
    let mut instance = Instance::start(name, LAB);
    instance.kill();
    instance.write("edits.toml", EDITS);
    instance.up(&["--record", &instance.path("run.jsonl")]);
    instance.start_initiator("server1");
    let (own, peer) = (instance.path("station.peer.sock"), instance.path("station.sock"));
    let (port, nbd) = (format!("dgram:{own},{peer}"), instance.path("station.nbd.sock"));
    let host = ["initiator", "--vn2vn", "--port", &port, "--mac", "52:54:00:00:00:09", "--nbd", &nbd];
    instance.folder.sanloom(host).stop();
    instance.run("zone edit LAB --edit @edits.toml --switch sw2").good();
    instance.run("zone commit LAB --switch sw2").good();
    instance.run("port disable sw1:0 LAB").good();
    instance.run("port enable sw1:0 LAB").good();
    instance.wait("the host comes again", |instance| instance.run("show flogi LAB --live").good().contains("server1"));
    instance
}

fn replayed(instance: &Instance, file: &str) -> Value {
    serde_json::from_str(&instance.run(&format!("replay @{file} --json")).stdout).unwrap()
}

#[test]
fn a_recording_of_a_live_run_replays_with_equal_outputs() {
    let mut instance = recorded("record");
    instance.stop();
    let output = instance.run("replay @run.jsonl").good();
    assert!(output.contains("outputs the same"), "{output}");
    let all = replayed(&instance, "run.jsonl");
    assert_eq!((&all["divergence"], &all["cut"]), (&Value::Null, &Value::Bool(false)), "{all}");
    let text = std::fs::read_to_string(instance.folder.join("run.jsonl")).unwrap();
    let count = |what: &str| text.lines().filter(|line| line.starts_with(what)).count() as u64;
    assert_eq!(all["inputs"].as_u64(), Some(count("{\"in\":")));
    assert_eq!(all["outputs"].as_u64(), Some(count("{\"out\":")));
    assert_eq!(count("{\"lost\":"), 0, "everything that machines were told has a form");
    let parts = ["\"fip\":", "\"change_zones\":", "\"port_up\":", "\"shutdown\"", "ZonesChanged"];
    let of_others = ["\"send_from_station\":", "NeighbourUp", "\"lldp\":", "InForce"];
    for part in parts.into_iter().chain(of_others) {
        assert!(text.contains(part), "nothing of {part} in the recording");
    }

    // A different output is reported at its position.
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|line| line.starts_with("{\"out\":") && line.contains("Fib(")).unwrap();
    let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    changed[at] = changed[at].replacen("Fib(", "Fob(", 1);
    instance.write("changed.jsonl", &(changed.join("\n") + "\n"));
    let ran = instance.run("replay @changed.jsonl");
    assert_eq!(ran.code, 1, "{ran:?}");
    for part in [&format!("line {},", at + 1), "sw", "recorded   Fob(", "replayed   Fib("] {
        assert!(ran.stdout.contains(part), "no {part} in {}", ran.stdout);
    }
    // A missing input is also found, for every kind of machine.
    for (input, machine) in [
        ("\"change_zones\"", "sw2"),
        ("\"lldp\":", "the LLDP agent at server1-sw1"),
        ("_station\":", "the station station"),
    ] {
        // An input that causes an output.
        let answered = |pair: &[&str]| pair[0].contains(input) && pair[1].starts_with("{\"out\":");
        let at = lines.windows(2).position(answered).unwrap();
        let mut without = lines.clone();
        without.remove(at);
        instance.write("without.jsonl", &(without.join("\n") + "\n"));
        let divergence = &replayed(&instance, "without.jsonl")["divergence"];
        assert!(divergence["line"].as_u64().unwrap() >= at as u64, "{input}: {divergence}");
        assert_eq!(divergence["machine"], machine, "{divergence}");
    }
}

#[test]
fn truncated_and_invalid_recordings_have_different_errors() {
    let mut instance = recorded("record-cut");
    instance.kill();
    let whole = replayed(&instance, "run.jsonl");
    assert_eq!(whole["divergence"], Value::Null, "{whole}");
    let text = std::fs::read_to_string(instance.folder.join("run.jsonl")).unwrap();
    let cut = text.lines().take(60).collect::<Vec<_>>().join("\n");
    instance.write("cut.jsonl", &cut[..cut.len() - 7]);
    let output = instance.run("replay @cut.jsonl").good();
    assert!(output.contains("ends in the middle of a line"), "{output}");
    instance.write("odd.jsonl", "{\"lab\":1}\n");
    instance.run("replay @odd.jsonl").refused("line 1 is not part of a recording");
    let newer = text.replacen("\"sanloom_recording\":2", "\"sanloom_recording\":9", 1);
    instance.write("newer.jsonl", &newer);
    instance.run("replay @newer.jsonl").refused("newer sanloom (version 9");
    let first = text.lines().next().unwrap();
    instance.write("wrong.jsonl", &format!("{first}\n{{\"end\":{{\"m\":{{\"switch\":7}}}}}}\n"));
    instance.run("replay @wrong.jsonl").refused("line 2 is not part of a recording: there is no such machine");
    instance.run("replay @nothing.jsonl").refused("cannot read the recording");
}
