//! `sanloom zone explain`: the reason why two ports can or cannot communicate.

use super::live::Live;
use super::ports;
use sanloom_api::zoning::{
    PairExplanation, SCHEMA_VERSION, ZoneExplanation, ZoneMembership, ZonePort, ZoneState, ZoneStatus,
};
use sanloom_console::exit::Failure;
use sanloom_console::input::{self, LabFile};
use sanloom_console::output;
use sanloom_console::outputs::{Json, Sets};
use sanloom_console::report::format::clean;
use sanloom_console::report::terminal::grid::{Column, Grid};
use sanloom_console::zones;
use sanloom_fc::config::{ZoneMember, Zoning};
use sanloom_fc::fabric::PortIdentity;
use sanloom_fc::san::{AttachedPort, Lab};
use sanloom_fc::switch::HardZoning;
use sanloom_fc::zoning::{Explanation, Membership, Verdict, explain};
use sanloom_wire::FcId;
use std::collections::{BTreeMap, BTreeSet};

/// Options of `sanloom zone explain`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    file: LabFile,
    /// A host or storage system (all its ports), a port of it (`server1:0`), or a port as zones
    /// name it: port name, `wwnn:` and node name, domain and port (`3,7`), address (`030700`)
    #[arg(value_name = "A")]
    first: String,
    /// Other host, storage system or port, in the same forms
    #[arg(value_name = "B")]
    second: String,
    #[command(flatten)]
    sets: Sets,
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    json: Json,
}

/// Fabric number used for a running fabric.
const RUNNING: u16 = 0;
/// Address printed for a port whose address depends on the login order.
const NO_ADDRESS: &str = "000000";

/// A port, of the lab or of a running fabric.
struct Port {
    view: ZonePort,
    identity: PortIdentity,
    fabric: u16,
}

impl Port {
    /// Returns the host or storage system of the port.
    fn node(&self) -> &str {
        self.view.name.rsplit_once(':').map_or(self.view.name.as_str(), |(node, _)| node)
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let lab = input::load_to_explain(&args.file, &args.sets.set)?.lab;
    let (database, zonings, all) = match args.live.live {
        false => (lab.zone_database.clone(), zonings(&lab), of_lab(&lab)),
        true => {
            let status = args.live.status(&lab)?;
            let database = zones::database(&status.committed)?;
            let zonings = BTreeMap::from([(RUNNING, database.zoning())]);
            (database, zonings, of_fabric(&status)?)
        }
    };
    let (first, second) = (find(&all, &args.first)?, find(&all, &args.second)?);
    let pairs: Vec<PairExplanation> =
        first.iter().flat_map(|a| second.iter().map(|b| pair(&lab, &zonings, a, b)).collect::<Vec<_>>()).collect();
    let state = ZoneState::from(&database);
    let answer = ZoneExplanation {
        schema_version: SCHEMA_VERSION,
        lab: lab.name.clone(),
        effective: state.effective.clone(),
        default_open: state.default_open,
        allowed: pairs.iter().any(|pair| pair.allowed),
        pairs,
    };
    args.json.write_or_print(&answer, || text(&answer, &ports::state_line(&state)))
}

fn of_lab(lab: &Lab) -> Vec<Port> {
    let ports = lab.attached_ports();
    let port =
        |port: &AttachedPort| Port { view: ports::view(lab, port), identity: port.identity, fabric: port.fabric };
    ports.iter().map(port).collect()
}

/// Returns the ports that are logged in to a running fabric.
fn of_fabric(status: &ZoneStatus) -> Result<Vec<Port>, Failure> {
    let port = |view: &ZonePort| {
        let (port_name, node_name) = (view.port_name.parse().ok()?, view.node_name.parse().ok()?);
        let port_id = u32::from_str_radix(&view.port_id, 16).map(FcId::new).ok()?;
        let identity = PortIdentity { port_id, port_name, node_name, domain: view.domain, port: view.switch_port };
        Some(Port { view: view.clone(), identity, fabric: RUNNING })
    };
    let ports: Option<Vec<Port>> = status.ports.iter().map(port).collect();
    ports.ok_or_else(|| Failure::protocol("the instance sent an invalid port"))
}

/// Returns the ports that match an argument.
fn find<'p>(all: &'p [Port], wanted: &str) -> Result<Vec<&'p Port>, Failure> {
    let of_node: Vec<&Port> = all.iter().filter(|port| port.node() == wanted || port.view.name == wanted).collect();
    if !of_node.is_empty() {
        return Ok(of_node);
    }
    // Logs of switches and tables of sanloom print an address without 0x.
    let member = wanted.parse::<ZoneMember>().or_else(|_| format!("0x{wanted}").parse());
    let known = |port: &&Port| port.view.port_id != NO_ADDRESS || !matches!(member, Ok(ZoneMember::PortId(_)));
    let is_it = |port: &&Port| member.as_ref().is_ok_and(|member| port.identity.is(member));
    let found: Vec<&Port> = all.iter().filter(known).filter(is_it).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let help = match member {
        Ok(ZoneMember::PortId(_)) if all.iter().any(|port| port.view.port_id == NO_ADDRESS) => {
            "some addresses are assigned at login and are not in the lab; write the port name".to_owned()
        }
        Ok(_) => format!("its ports are those of {}", nodes(all)),
        Err(_) => {
            let names = all.iter().flat_map(|port| [port.node(), port.view.name.as_str()]);
            match sanloom_lab::closest(wanted, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "write one of {}, a port of one such as server1:0, a port name, wwnn: and a node name, or an address",
                    nodes(all)
                ),
            }
        }
    };
    Err(Failure::usage(format_args!("no linked port is `{}`: {help}", clean(wanted))))
}

/// Lists the hosts and storage systems that have ports; at most the first few.
fn nodes(all: &[Port]) -> String {
    let mut names: Vec<String> = all.iter().map(|port| port.node().to_owned()).collect();
    names.dedup();
    quoted(&names)
}

/// Returns the zoning of each fabric, because virtual fabrics have separate zones.
fn zonings(lab: &Lab) -> BTreeMap<u16, Zoning> {
    let fabrics: BTreeSet<u16> = lab.fabrics().into_iter().collect();
    fabrics.into_iter().map(|fabric| (fabric, lab.zone_database_at(fabric).zoning())).collect()
}

fn pair(lab: &Lab, zonings: &BTreeMap<u16, Zoning>, a: &Port, b: &Port) -> PairExplanation {
    let [zoning, of_second] = [a, b].map(|port| &zonings[&port.fabric]);
    let Explanation { verdict, first, second } = explain(zoning, &a.identity, &b.identity);
    let second = if a.fabric == b.fabric { second } else { explain(of_second, &a.identity, &b.identity).second };
    let zone = |index: usize| zoning.zones[index].name.clone();
    let memberships = |zoning: &Zoning, list: &[Membership]| -> Vec<ZoneMembership> {
        let view = |of: &Membership| ZoneMembership {
            zone: zoning.zones[of.zone].name.clone(),
            peer_zone: zoning.zones[of.zone].is_peer(),
            as_member: of.as_member.iter().map(ToString::to_string).collect(),
            as_principal: of.as_principal.iter().map(ToString::to_string).collect(),
        };
        list.iter().map(view).collect()
    };
    let (first_name, second_name) = (&a.view.name, &b.view.name);
    let (reason, text, zones) = match &verdict {
        _ if a.fabric != b.fabric => {
            ("different-fabrics", "they are linked to two separate fabrics".to_owned(), vec![])
        }
        Verdict::SamePort => ("same-port", "it is one port".to_owned(), vec![]),
        Verdict::Zones(zones) => {
            let names: Vec<String> = zones.iter().map(|index| zone(*index)).collect();
            let (noun, verb) = if names.len() == 1 { ("zone", "lets") } else { ("zones", "let") };
            ("common-zone", format!("{noun} {} {verb} them", quoted(&names)), names)
        }
        Verdict::DefaultOpen => {
            ("default-open", "neither is in a zone, and the default zone is open".to_owned(), vec![])
        }
        Verdict::DefaultClosed => {
            ("default-closed", "neither is in a zone, and the default zone is closed".to_owned(), vec![])
        }
        Verdict::OneUnzoned { first } => {
            let (out, inside) = if *first { (first_name, second_name) } else { (second_name, first_name) };
            ("one-unzoned", format!("{inside} is in a zone and {out} is in none"), vec![])
        }
        Verdict::NoCommonZone => {
            let names = |list: &[Membership]| quoted(&list.iter().map(|of| zone(of.zone)).collect::<Vec<_>>());
            let text = format!(
                "{first_name} is in {}, {second_name} in {}, and none is common",
                names(&first),
                names(&second)
            );
            ("no-common-zone", text, vec![])
        }
        Verdict::PeerRoles(zones) => {
            let names: Vec<String> = zones.iter().map(|index| zone(*index)).collect();
            let text = format!("in peer zone {} both are members or both are principals", quoted(&names));
            ("peer-roles", text, names)
        }
    };
    PairExplanation {
        unenforced_at: unenforced(lab, a, b),
        first: a.view.clone(),
        second: b.view.clone(),
        allowed: verdict.permits() && a.fabric == b.fabric,
        reason: reason.to_owned(),
        text,
        zones,
        first_zones: memberships(zoning, &first),
        second_zones: memberships(of_second, &second),
    }
}

/// Returns the switches of two ports that do not enforce zones.
fn unenforced(lab: &Lab, a: &Port, b: &Port) -> Vec<String> {
    let both = [&a.view.switch, &b.view.switch];
    let both = lab.switches.iter().filter(|switch| both.contains(&&switch.name));
    both.filter(|switch| switch.policy.hard_zoning == HardZoning::Off).map(|switch| switch.name.clone()).collect()
}

/// Formats names as "`a`, `b`"; at most the first few.
fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let mut text = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

fn text(answer: &ZoneExplanation, state: &str) -> String {
    let mut text = format!("{}: {state}\n", answer.lab);
    for pair in &answer.pairs {
        let verdict = if pair.allowed { "can communicate" } else { "cannot communicate" };
        text.push_str(&format!("\n{} and {} {verdict}: {}\n", pair.first.name, pair.second.name, pair.text));
        if !pair.allowed && !pair.unenforced_at.is_empty() && pair.reason != "different-fabrics" {
            let switches = quoted(&pair.unenforced_at);
            text.push_str(&format!(
                "But {switches} only hides its ports (hard_zoning = \"off\"): frames to an address that is known pass\n"
            ));
        }
        let mut grid = Grid::new(vec![
            Column::left("port"),
            Column::left("port name").rank(2),
            Column::left("address"),
            Column::left("switch port").rank(3),
            Column::left("zone"),
            Column::left("role"),
            Column::left("named as"),
        ]);
        for (port, zones) in [(&pair.first, &pair.first_zones), (&pair.second, &pair.second_zones)] {
            let mut head = vec![
                port.name.clone(),
                port.port_name.clone(),
                if port.port_id == NO_ADDRESS { "at login".to_owned() } else { port.port_id.clone() },
                format!("{} {}", port.switch, port.switch_port),
            ];
            if zones.is_empty() {
                head.extend(["in no zone".to_owned(), String::new(), String::new()]);
                grid.row(head);
                continue;
            }
            for of in zones {
                let role = match (of.peer_zone, of.as_principal.is_empty(), of.as_member.is_empty()) {
                    (false, ..) | (true, true, _) => "member",
                    (true, false, true) => "principal",
                    (true, false, false) => "principal, member",
                };
                let keys: Vec<&str> = of.as_principal.iter().chain(&of.as_member).map(String::as_str).collect();
                let mut row = head.clone();
                row.extend([of.zone.clone(), role.to_owned(), keys.join(" ")]);
                grid.row(row);
                head = vec![String::new(); 4];
            }
        }
        text.push_str(&grid.render(output::width()));
    }
    text
}
