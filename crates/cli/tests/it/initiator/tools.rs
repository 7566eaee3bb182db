//! The tools of Open-FCoE: `fcoemon` with a folder of files, and reports of `fcoeadm` and the other
//! tools about its instances.

use crate::initiator::bed::Bed;
use crate::sanloom::{SANLOOM, Start};
use sanloom_test_support::needs;
use sanloom_test_support::programs::{fail, run, try_run};
use sanloom_test_support::started::Process;
use sanloom_test_support::wait;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// `fcoemon` in the folder of a bed.
pub struct Monitor {
    folder: PathBuf,
    process: Process,
}

impl Monitor {
    pub fn start(bed: &Bed) -> Monitor {
        fs::create_dir_all(bed.path("etc")).unwrap();
        let arguments = ["fcoemon", "-f", "--config-folder", &bed.path("etc"), "--run-folder", &bed.path("run")];
        Monitor { folder: bed.folder.to_path_buf(), process: bed.folder.sanloom(arguments) }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// The file of an interface that is `server1` of the lab.
    fn write(&self, interface: &str, keys: &str) {
        let (own, peer) = (self.path("server1-sw1.peer.sock"), self.path("server1-sw1.sock"));
        let text = format!("{keys}\nPORT=\"dgram:{own},{peer}\"\nMAC=\"52:54:00:00:00:01\"\n");
        fs::write(self.path(&format!("etc/cfg-{interface}")), text).unwrap();
    }

    /// Returns the output of a tool.
    pub fn tool(&self, arguments: &[&str]) -> String {
        let folder = self.path("run");
        run(SANLOOM, &[&arguments[..1], &["--run-folder", &folder], &arguments[1..]].concat())
    }

    /// Returns the error message of a failing tool.
    pub fn complaint(&self, arguments: &[&str]) -> String {
        let folder = self.path("run");
        fail(SANLOOM, &[&arguments[..1], &["--run-folder", &folder], &arguments[1..]].concat())
    }

    /// Waits until `fcoeadm -i` contains this text or, without a text, until there is no instance.
    pub fn wait_for(&self, text: Option<&str>) -> String {
        let shown = || try_run(SANLOOM, &["fcoeadm", "--run-folder", &self.path("run"), "-i"]);
        let is_shown = || {
            let (good, printed, _) = shown();
            text.map_or(!good, |text| printed.contains(text)).then_some(printed)
        };
        wait::value(|| format!("{text:?} in:\n{}", shown().1), is_shown)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // The process number may be reused after its end.
        if let Ok(None) = self.process.try_wait() {
            let _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        }
        let _ = self.process.wait();
    }
}

const ENABLED: &str = "FCOE_ENABLE=\"yes\"\nDCB_REQUIRED=\"yes\"\nAUTO_VLAN=\"yes\"\nMODE=\"fabric\"";
pub const ONLINE: &str = "State:             Online";

/// DCBX first, then VLAN discovery, then the login; then all events of an instance.
#[test]
fn fcoemon_keeps_an_instance_through_files_links_and_fcoeadm() {
    let mut bed =
        Bed::start_with("fcoemon", "dgram", &[("ethernet = {", "ethernet = { vlan = 152, dcbx = true,")], false);
    {
        let monitor = Monitor::start(&bed);
        assert!(monitor.complaint(&["fcoeadm", "-i"]).contains("no FCoE interfaces created"));
        assert!(monitor.complaint(&["fcoeadm", "-d", "eth7"]).contains("no connection created on interface eth7"));

        // A file appears; an invalid and a disabled one start nothing.
        monitor.write("eth0", ENABLED);
        monitor.write("eth1", "FCOE_ENABLE=\"perhaps\"");
        monitor.write("eth2", "FCOE_ENABLE=\"no\"");
        let shown = monitor.wait_for(Some(ONLINE));
        for line in [
            "    Number of Ports:  1",
            "over eth0.152-fcoe",
            "        Node Name:         0x1000525400000001",
            "        Port Name:         0x2000525400000001",
            "        MaxFrameSize:      2112",
            "        FC-ID (Port ID):   0x01",
        ] {
            assert!(shown.contains(line), "{line} is missing in:\n{shown}");
        }
        assert_eq!(shown.matches("Symbolic Name").count(), 1, "{shown}");
        assert!(bed.log().contains("file cannot be used interface=\"eth1\""));
        look_at(&monitor);

        // Its port is invalid, so it fails repeatedly until it is stopped.
        for name in ["", "fcoemon", "dgram:/a,/b"] {
            assert!(monitor.complaint(&["fcoeadm", "-c", name]).contains("is not a valid interface name"), "{name}");
        }
        monitor.tool(&["fcoeadm", "-c", "nowhere"]);
        bed.folder.wait_for_log("instance ended interface=\"nowhere\"", 1);
        monitor.tool(&["fcoeadm", "-d", "nowhere"]);
        assert!(monitor.complaint(&["fcoeadm", "-d", "nowhere"]).contains("no connection created"));

        // An operator stops and restarts it.
        assert!(monitor.complaint(&["fcoeadm", "-c", "eth0"]).contains("already created"));
        monitor.tool(&["fcoeadm", "-d", "eth0"]);
        monitor.wait_for(None);
        // Another file shows that the monitor has read the folder again.
        monitor.write("eth3", "FCOE_ENABLE=\"perhaps\"");
        bed.folder.wait_for_log("file cannot be used interface=\"eth3\"", 1);
        monitor.wait_for(None);
        monitor.tool(&["fcoeadm", "-c", "eth0"]);
        monitor.wait_for(Some(ONLINE));
        let logins = || bed.log().matches("logged in to the fabric").count();
        let before = logins();
        monitor.tool(&["fcoeadm", "-r", "eth0"]);
        wait::until(|| "another login".to_owned(), || logins() != before);
        monitor.wait_for(Some(ONLINE));

        // The file changes and is removed.
        monitor.write("eth0", &ENABLED.replace("FCOE_ENABLE=\"yes\"", "FCOE_ENABLE=\"no\""));
        monitor.wait_for(None);
        monitor.write("eth0", ENABLED);
        monitor.wait_for(Some(ONLINE));
    }
    // The monitor has ended with its instance.
    let folder = bed.path("run");
    assert!(fail(SANLOOM, &["fcoeadm", "--run-folder", &folder, "-i"]).contains("no FCoE interfaces"));
    assert!(
        fail(SANLOOM, &["fcoeadm", "--run-folder", &folder, "-c", "eth0"]).contains("could not connect to fcoemon")
    );

    // The next monitor finds the file. Its port is disconnected, and returns in another VLAN.
    let monitor = Monitor::start(&bed);
    monitor.wait_for(Some(ONLINE));
    bed.kill_fabric();
    monitor.wait_for(Some("State:             Linkdown"));
    let lab = fs::read_to_string(bed.path("lab.toml")).unwrap();
    fs::write(bed.path("lab.toml"), lab.replace("vlan = 152", "vlan = 153")).unwrap();
    bed.start_fabric();
    assert!(monitor.wait_for(Some(ONLINE)).contains("over eth0.153-fcoe"));
    fs::remove_file(bed.path("etc/cfg-eth0")).unwrap();
    monitor.wait_for(None);
    drop(monitor);
    bed.stop();
}

/// Three unresponsive instances are awaited in parallel, for five seconds each.
#[test]
fn fcoemon_ends_its_instances_at_once() {
    let bed = Bed::not_started("fcoemon-end", "dgram", &[]);
    let mut monitor = Monitor::start(&bed);
    let names = ["eth0", "eth1", "eth2"];
    for name in names {
        let (own, peer) = (monitor.path(&format!("{name}.own")), monitor.path(&format!("{name}.peer")));
        let text = format!("FCOE_ENABLE=\"yes\"\nPORT=\"dgram:{own},{peer}\"\nMAC=\"52:54:00:00:00:01\"\n");
        fs::write(monitor.path(&format!("etc/cfg-{name}")), text).unwrap();
    }
    names.iter().for_each(|name| assert!(monitor.wait_for(Some(name)).contains("Linkdown")));
    let instances = instances_of(&bed);
    assert_eq!(instances.len(), 3);
    instances.iter().for_each(|process| signal("-STOP", *process));
    signal("-TERM", monitor.process.id());
    // Each instance has its request to end before the first one is killed.
    let requests = |name: &str| {
        let sockets = fs::read_to_string("/proc/net/unix").unwrap();
        let (path, listeners) = (monitor.path(&format!("run/{name}.ctl")), 1);
        sockets.lines().filter(|line| line.ends_with(&path)).count() - listeners
    };
    wait::until(
        || format!("requests: {:?}", names.map(requests)),
        || {
            assert!(instances.iter().all(|process| runs(*process)), "an instance has ended");
            names.iter().all(|name| requests(name) > 0)
        },
    );
    assert!(monitor.process.wait().unwrap().success());
    assert!(instances.iter().all(|process| !runs(*process)));
}

/// An instance whose monitor was killed could not be stopped, and a new monitor could not start it.
/// It therefore ends itself and logs out.
#[test]
fn an_instance_ends_with_a_monitor_that_is_killed() {
    let mut bed = Bed::start_with("fcoemon-killed", "dgram", &[], false);
    let mut monitor = Monitor::start(&bed);
    monitor.write("eth0", "FCOE_ENABLE=\"yes\"");
    monitor.wait_for(Some(ONLINE));
    let instances = instances_of(&bed);
    assert_eq!(instances.len(), 1);
    monitor.process.kill();
    wait::until(|| "the instance has ended".to_owned(), || !runs(instances[0]));
    // The host's logout informs the switch before the link goes down.
    let log = bed.log();
    let line = |text: &str| log.lines().position(|line| line.contains(text));
    let (logged_out, gone) = (line("INFO port gone"), line("INFO link port=\"server1-sw1\" up=false"));
    assert!(logged_out.is_some() && gone.is_none_or(|gone| logged_out < Some(gone)));
    assert!(line("INFO down").is_some());
    bed.stop();
}

/// Processes started by fcoemon, from its log.
fn instances_of(bed: &Bed) -> Vec<u32> {
    let log = bed.log();
    let begun = log.lines().filter(|line| line.contains("instance started"));
    begun.filter_map(|line| line.split("process=").nth(1)?.split_whitespace().next()?.parse().ok()).collect()
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// The process exists and is not a zombie.
fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Reports of the tools about the instance.
fn look_at(monitor: &Monitor) {
    // The inquiries about the LUNs follow the login.
    let targets = wait::value(
        || monitor.tool(&["fcoeadm", "-t", "eth0"]),
        || Some(monitor.tool(&["fcoeadm", "-t", "eth0"])).filter(|shown| !shown.contains(" 0.00 B ")),
    );
    assert_eq!(targets.matches("    Roles:            FCP Target").count(), 2, "{targets}");
    assert!(targets.contains("LUN ID  Device Name") && targets.contains("64.00 MB      512     SANLOOM"), "{targets}");
    let units = monitor.tool(&["fcoeadm", "-l"]);
    assert_eq!(units.matches("Capacity in Blocks: 131072").count(), 3, "{units}");
    assert!(units.contains("        Status:             Attached"), "{units}");
    monitor.tool(&["fcoeadm", "-S", "eth0"]);
    let statistics = monitor.tool(&["fcoeadm", "-s", "eth0", "1", "--count", "2"]);
    let lines: Vec<&str> = statistics.lines().collect();
    assert!(lines.len() == 5 && lines[0].starts_with("eth0.152-fcoe   interval: 1"), "{statistics}");
    let numbers: Vec<u64> = lines[4].split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert!(numbers.len() == 14 && numbers[1] > 20 && numbers[3] > 20 && numbers[10] > 0, "{statistics}");
    assert!(monitor.complaint(&["fcoeadm", "-i", "eth9"]).contains("no connection created on interface eth9"));

    // The name server has entries of the host and of both storage ports.
    let names = monitor.tool(&["fcnsq", "eth0", "--all", "-q"]);
    assert_eq!(names.lines().count(), 3, "{names}");
    let host = names.lines().find(|line| line.contains("0x2000525400000001")).unwrap();
    let target = names.lines().find(|line| line.ends_with(" files")).unwrap();
    let words: Vec<&str> = target.split_whitespace().collect();
    let (id, port_name, node_name) = (words[0], words[1], words[2]);
    assert_eq!(monitor.tool(&["fcnsq", "eth0", "--gpn", id, "-q"]).trim(), port_name);
    assert_eq!(monitor.tool(&["fcnsq", "eth0", "--gnn", id]).trim(), format!("Node Name of {id}: {node_name}"));
    assert_eq!(monitor.tool(&["fcnsq", "eth0", "--gspn", id, "-q"]).trim(), "files");
    assert_eq!(monitor.tool(&["fcnsq", "eth0", "--gsnn", node_name, "-q"]).trim(), "files");
    assert!(monitor.complaint(&["fcnsq", "eth0", "--gpn", "0x020304"]).contains("rejected"));

    for to in [["-F", id], ["-P", port_name], ["-N", node_name]] {
        let output = monitor.tool(&["fcping", "-h", "eth0", "-c", "2", "-i", "0", "-s", "2048", to[0], to[1]]);
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines[0], format!("sending echo to {id}"));
        assert!(lines[1].starts_with("echo    1 accepted ") && lines[1].ends_with(" ms"), "{output}");
        assert!(lines[3].starts_with("2 frames sent, 2 received 0 errors, 0.000% loss, avg. rt time "), "{output}");
    }
    let summary: serde_json::Value =
        serde_json::from_str(&monitor.tool(&["fcping", "-h", "eth0", "-c", "3", "-i", "0", "-F", id, "--json"]))
            .unwrap();
    assert_eq!((&summary["sent"], &summary["received"]), (&3.into(), &3.into()));
    assert!(summary["average_ms"].as_f64() > Some(0.0), "{summary}");
    assert!(monitor.complaint(&["fcping", "-h", "eth0", "-c", "1", "-F", "0x0a0b0c"]).contains("no echo came back"));

    let adapters = monitor.tool(&["esxcli", "fcoe", "adapter", "list"]);
    let mac = format!("0e:fc:00:{}:{}:{}", &host[2..4], &host[4..6], &host[6..8]);
    for line in ["vmhba32", "   Source MAC: 52:54:00:00:00:01", &format!("   VNPort MAC: {mac}"), "   VLAN ID: 152"] {
        assert!(adapters.lines().any(|output| output == line), "{line} is missing in:\n{adapters}");
    }
    let nics = monitor.tool(&["esxcli", "fcoe", "nic", "list"]);
    assert!(nics.contains("   Source MAC: 52:54:00:00:00:01\n   Active: true\n   Priority Settable: false"), "{nics}");
}

/// LLDP from both ends precedes the first FIP frame and declares FCoE lossless on priority 3.
#[needs("tshark")]
#[test]
fn fcoe_begins_when_dcbx_has_agreed() {
    let mut bed = Bed::start_with("dcbx", "dgram", &[("ethernet = {", "ethernet = { dcbx = true,")], false);
    // A host without DCBX receives no frames of the switch.
    let port = format!("dgram:{},{}", bed.path("server1-sw1.peer.sock"), bed.path("server1-sw1.sock"));
    let mut deaf = Command::new(SANLOOM)
        .args(["initiator", "--port", &port, "--mac", "52:54:00:00:00:01", "--nbd", &bed.path("deaf.sock")])
        .args(["--capture", &bed.path("deaf.pcapng")])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The switch has processed a frame of it, and would have sent its response by now.
    let received = || {
        let shown = run(SANLOOM, &["show", "counters", &bed.path("lab.toml"), "--live", "--json"]);
        let counters: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let rows = counters["counters"].as_array().unwrap();
        let row = rows.iter().find(|row| row["of"] == "sw1:0").unwrap();
        row["counters"]["frames in"].as_u64().unwrap_or(0)
    };
    wait::until(|| format!("{} frames of the host", received()), || received() >= 1);
    assert!(Command::new("kill").args(["-TERM", &deaf.id().to_string()]).status().unwrap().success());
    deaf.wait().unwrap();
    bed.start_initiator(&[]);
    bed.stop();

    let lines = |file: &str, filter: &str, field: &str| {
        let output = run("tshark", &["-r", &bed.path(file), "-Y", filter, "-T", "fields", "-e", field]);
        output.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!lines("deaf.pcapng", "fip.disc_subcode", "eth.src").contains(&"02:53:4c:01:00:00".to_owned()));
    let first = |filter: &str| lines("port.pcapng", filter, "frame.number")[0].parse::<u32>().unwrap();
    let (ours, theirs) = ("eth.src == 52:54:00:00:00:01", "eth.src == 02:53:4c:01:00:00");
    for (one, other) in [(ours, theirs), (theirs, ours)] {
        let (received, begun) = (first(&format!("lldp && {other}")), first(&format!("fip && {one}")));
        assert!(received < begun, "{one}: FIP in frame {begun}, and the other's LLDP in {received}");
    }
    assert!(lines("port.pcapng", "_ws.malformed", "frame.number").is_empty());
    let output = run("tshark", &["-r", &bed.path("port.pcapng"), "-Y", "lldp", "-V"]);
    for text in ["PFC for Priority 3: Enabled", "FCoE Application", "FiP Application"] {
        assert!(output.contains(text), "{text} is missing in:\n{output}");
    }
}
