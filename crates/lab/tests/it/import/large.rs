//! A fabric of the largest size.

use sanloom_lab::import::{Choices, Source, import};
use std::fmt::Write as _;

/// 200 switches with 100 devices each, around one switch in the middle, and a zone for each host.
fn fabric() -> Vec<Source> {
    let mut zones = String::from("Defined configuration:\n cfg:\tbig\t");
    let mut bodies = String::new();
    let mut sources = Vec::new();
    for switch in 1..=200_u32 {
        let mut text = format!(
            "sw{switch}:admin> switchshow\nswitchName: sw{switch}\nswitchDomain: {switch}\n\
             switchWwn: 10:00:00:05:{switch:02x}:00:00:{switch:02x}\n\
             Index Port Address Media Speed State Proto\n"
        );
        let mut names =
            String::from("{\n Type Pid    COS     PortName                NodeName                 TTL(sec)\n");
        for port in 0..100_u32 {
            let is_target = port % 10 == 0;
            let name = |port: u32| match port % 10 {
                0 => format!("50:00:09:73:00:{switch:02x}:00:{port:02x}"),
                _ => format!("10:00:00:10:9b:{switch:02x}:00:{port:02x}"),
            };
            let (wwpn, role) = (name(port), if is_target { "Target" } else { "Initiator" });
            let _ = writeln!(text, " {port} {port} {switch:02x}{port:02x}00 id N32 Online FC F-Port {wwpn}");
            let _ = writeln!(
                names,
                " N    {switch:02x}{port:02x}00;      3;{wwpn};{wwpn}; na\n    FC4s: FCP\n    Device type: Physical {role}\n    Port Index: {port}"
            );
            if !is_target {
                let _ = write!(zones, "z{switch}_{port}; ");
                let target = name(port / 10 * 10);
                let _ = writeln!(bodies, " zone:\tz{switch}_{port}\n\t\t{wwpn}; {target}");
            }
        }
        let _ = writeln!(text, "sw{switch}:admin> nsshow\n{names}}}");
        let _ = writeln!(text, "sw{switch}:admin> islshow");
        if switch > 1 {
            let port = switch + 99;
            let _ = writeln!(text, " 1: 100->{port} 10:00:00:05:01:00:00:01 1 sw1 sp: 32.000G bw: 32.000G");
        }
        sources.push(Source { name: format!("sw{switch}.txt"), text });
    }
    let text = format!("{zones}\n{bodies}\nEffective configuration:\n cfg:\tbig\n");
    sources.push(Source { name: "zones.txt".to_owned(), text });
    sources
}

/// CPU time of this process in seconds: user time in `/proc/self/stat`, in clock ticks of 10 ms.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // The fields behind the name begin with the third one; user time is the fourteenth (proc(5)).
    fields[11].parse::<f64>().unwrap() / 100.0
}

#[test]
fn an_import_of_twenty_thousand_ports_takes_less_than_five_seconds() {
    if std::env::var_os("SANLOOM_TIMED").is_none() {
        return;
    }
    let sources = fabric();
    let before = cpu_s();
    let imported = import(&sources, &Choices::default());
    let took = cpu_s() - before;
    println!("{took:.2} s for {} bytes", imported.lab.len());
    assert!(took < 5.0, "{took:.2} s");
}

#[test]
fn two_hundred_switches_with_twenty_thousand_ports_are_imported() {
    let imported = import(&fabric(), &Choices::default());
    let loaded = sanloom_lab::load("lab.toml", &imported.lab, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.lab.switches.len(), 200);
    assert_eq!(loaded.lab.links.len(), 20_000 + 199);
    assert_eq!(loaded.lab.zone_database.defined.zones.len(), 18_000);
}
