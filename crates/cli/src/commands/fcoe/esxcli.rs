//! `esxcli fcoe nic list` and `esxcli fcoe adapter list`: FCoE instances in the layout of ESX (the
//! Open-FCoE slides, verifying the configuration).

use super::fipvlan::ethernet_interfaces;
use super::{RunFolder, print_json};
use clap::Subcommand;
use sanloom_api::fcoe::Instance;
use sanloom_console::exit::Failure;
use sanloom_console::output;
use std::fmt::Write;

/// Options of `esxcli`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    namespace: Namespace,
    /// Print the complete state of the instances as JSON, regardless of the requested list
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    run: RunFolder,
}

/// Commands of this namespace.
#[derive(Subcommand, Debug)]
enum Namespace {
    /// Fibre Channel over Ethernet
    Fcoe {
        #[command(subcommand)]
        object: Object,
    },
}

#[derive(Subcommand, Debug)]
enum Object {
    /// Ethernet ports that can carry FCoE
    Nic {
        #[command(subcommand)]
        verb: Verb,
    },
    /// FCoE instances
    Adapter {
        #[command(subcommand)]
        verb: Verb,
    },
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print the list
    List,
}

/// Number of the first adapter, because ESX uses lower numbers for local disks.
const FIRST_ADAPTER: usize = 32;

/// Prints a list.
///
/// # Errors
/// When the output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let instances: Vec<Instance> = args.run.instances().into_iter().map(|(_, instance)| instance).collect();
    if args.json {
        return print_json(&instances);
    }
    let Namespace::Fcoe { object } = &args.namespace;
    output::print(&match object {
        Object::Nic { verb: Verb::List } => nics(&instances, &idle(&instances)),
        Object::Adapter { verb: Verb::List } => adapters(&instances),
    })
}

/// Returns interfaces without an instance, and their MAC addresses.
fn idle(instances: &[Instance]) -> Vec<(String, String)> {
    let busy = |name: &String| instances.iter().any(|instance| instance.interface == *name);
    let address = |name: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/address")).unwrap_or_default();
    let idle = ethernet_interfaces().into_iter().filter(|name| !busy(name));
    idle.map(|name| (name.clone(), address(&name).trim().to_owned())).collect()
}

fn nics(instances: &[Instance], idle: &[(String, String)]) -> String {
    let active = instances.iter().map(|instance| (&instance.interface, &instance.mac, instance.priority, true));
    let others = idle.iter().map(|(name, mac)| (name, mac, 3, false));
    let mut text = String::new();
    for (name, mac, priority, active) in active.chain(others) {
        let _ = writeln!(text, "{name}");
        let _ = writeln!(text, "   User Priority: {priority}");
        let _ = writeln!(text, "   Source MAC: {mac}");
        let _ = writeln!(text, "   Active: {active}");
        for what in ["Priority", "Source MAC", "VLAN Range"] {
            let _ = writeln!(text, "   {what} Settable: false");
        }
    }
    text
}

fn adapters(instances: &[Instance]) -> String {
    let mut text = String::new();
    for (instance, number) in instances.iter().zip(FIRST_ADAPTER..) {
        let none = || "00:00:00:00:00:00".to_owned();
        let fcf = instance.fcf.as_ref().map_or_else(none, |fcf| fcf.mac.clone());
        let vn_port = instance.ports.first().and_then(|port| port.vn_mac.clone()).unwrap_or_else(none);
        let _ = writeln!(text, "vmhba{number}");
        let _ = writeln!(text, "   Source MAC: {}", instance.mac);
        let _ = writeln!(text, "   FCF MAC: {fcf}");
        let _ = writeln!(text, "   VNPort MAC: {vn_port}");
        let _ = writeln!(text, "   Underlying PNIC: {}", instance.interface);
        let _ = writeln!(text, "   Priority Class: {}", instance.priority);
        let _ = writeln!(text, "   VLAN ID: {}", instance.vlan.unwrap_or(0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_api::fcoe::{Forwarder, Port, Statistics};

    #[test]
    fn the_lists_are_those_of_the_document() {
        let port = Port {
            symbolic_name: String::new(),
            node_name: 0,
            port_name: 0,
            port_id: Some(0x160000),
            vn_mac: Some("0e:fc:00:16:00:00".into()),
            max_frame_bytes: 2112,
            targets: Vec::new(),
        };
        let fcf = Forwarder {
            mac: "00:0d:ec:fa:77:40".into(),
            fabric_name: 0,
            switch_name: 0,
            priority: 128,
            keep_alive_ms: 8_000,
        };
        let instance = Instance {
            name: "vmnic4.200-fcoe".into(),
            interface: "vmnic4".into(),
            mac: "00:1b:21:69:9e:32".into(),
            vlan: Some(200),
            priority: 3,
            vn2vn: false,
            link: true,
            speed_mbit_per_s: None,
            dcbx: None,
            fcf: Some(fcf),
            nbd: String::new(),
            ports: vec![port],
            statistics: Statistics::default(),
            others: Vec::new(),
            disks: Vec::new(),
        };
        let idle = [("vmnic5".to_owned(), "00:1b:21:69:9e:33".to_owned())];
        insta::assert_snapshot!("nics", nics(std::slice::from_ref(&instance), &idle));
        insta::assert_snapshot!("adapters", adapters(&[instance]));
    }
}
