//! Tables of a running lab: [`Tables`] reads an instance without changing it.

pub mod metrics;
mod tables;
mod volumes;

use super::fabric::Fabric;
use super::fabric::switch::Attachment;
use super::forward::reason as forward_reason;
use super::instance::Instance;
use super::ports::{LivePort, Ports};
use super::services::Services;
use super::tunnel;
use crate::ports::reason as port_reason;
use sanloom_api::event_log::EventLog;
use sanloom_api::view::build::{NodeState, Shown, SwitchSeen, Which, blocked, isolated, port_name};
use sanloom_api::view::{Dark, NodesView, PortErrors, PortMode, PortRow, PortsView, Table, View};
use sanloom_fc::config::Node;
use sanloom_fc::fabric::PortMode as Mode;
use sanloom_fc::san::Lab;
use sanloom_scsi::time::Instant;
use sanloom_wire::{FcId, Wwpn};
use std::collections::BTreeMap;

/// Read access to an instance at one time.
pub struct Tables<'a> {
    lab: &'a Lab,
    lab_switches: &'a [u16],
    fabric: &'a Fabric,
    ports: &'a Ports,
    services: &'a Services,
    log: &'a EventLog,
    now: Instant,
}

impl<'a> Tables<'a> {
    /// Returns the tables of an instance.
    pub fn new(instance: &'a Instance, now: Instant) -> Tables<'a> {
        let Instance { lab, lab_switches, fabric, ports, services, log, .. } = instance;
        Tables { lab, lab_switches, fabric, ports, services, log, now }
    }

    fn view(&self, table: Table) -> View {
        View::new(&self.lab.name, self.now.as_ns() as f64 / 1e9, table)
    }

    /// Returns a table of the fabric; `on` limits it to one switch, by index in the lab.
    pub fn fabric(&self, which: Which, on: Option<u16>) -> View {
        let seconds = |at: Instant| at.as_ns() as f64 / 1e9;
        let seen = self.fabric.switches.iter().zip(self.lab_switches);
        let seen = seen.map(|(switch, number)| SwitchSeen {
            number: *number,
            machine: &switch.machine,
            fib: &switch.fib,
            up: true,
            disabled: switch.off,
        });
        let mut shown = Shown::new(self.lab, seen.collect(), on, seconds);
        let disabled = self.fabric.switches.iter().zip(self.lab_switches);
        shown.disabled =
            disabled.flat_map(|(switch, number)| switch.disabled.iter().map(move |port| (*number, *port))).collect();
        let table = shown.table(which).unwrap_or_else(|| match which {
            Which::Nodes => Table::Nodes(self.nodes_table(&shown)),
            _ => Table::Ports(self.ports_table(&shown)),
        });
        View::new(&self.lab.name, seconds(self.now), table)
    }

    fn ports_table(&self, shown: &Shown<'_>) -> PortsView {
        let mut rows = Vec::new();
        // Logins of each switch, by port.
        let mut logins: BTreeMap<usize, BTreeMap<u16, u32>> = BTreeMap::new();
        for (link, number) in self.lab.links.iter().zip(0..) {
            for side in 0..2 {
                let end = &link.ends[side];
                let here = self.lab_switches.iter().position(|switch| end.node == Node::Switch(*switch));
                if let Some(switch) = here.filter(|here| shown.on.is_none_or(|on| on == self.lab_switches[*here])) {
                    let logins = logins.entry(switch).or_insert_with(|| {
                        let mut logins = BTreeMap::new();
                        for (_, port) in self.fabric.switches[switch].machine.logins() {
                            *logins.entry(port).or_default() += 1;
                        }
                        logins
                    });
                    let row = self.port_row(shown, switch, (number, side), logins);
                    rows.push((switch, end.port, row));
                }
            }
        }
        rows.sort_by_key(|(switch, port, _)| (*switch, *port));
        PortsView { ports: rows.into_iter().map(|(.., row)| row).collect() }
    }

    fn nodes_table(&self, shown: &Shown<'_>) -> NodesView {
        let logins = shown.seen.iter().flat_map(|seen| seen.machine.services().name_server());
        let ids: BTreeMap<Wwpn, FcId> = logins.map(|entry| (entry.port_name, entry.port_id)).collect();
        let all = Shown::new(self.lab, shown.seen.clone(), None, |_| 0.0);
        let lights: BTreeMap<String, bool> =
            self.ports_table(&all).ports.into_iter().map(|row| (row.link, row.light)).collect();
        shown.nodes(|port| NodeState {
            port_id: ids.get(&port.wwpn).copied().unwrap_or_default(),
            light: port.link.and_then(|(link, _)| lights.get(&self.lab.links[link].name).copied()),
            ..NodeState::default()
        })
    }

    /// Row of the port at an end of a link. `logins`: those of its switch, by port.
    fn port_row(
        &self,
        shown: &Shown<'_>,
        switch: usize,
        (number, side): (usize, usize),
        logins: &BTreeMap<u16, u32>,
    ) -> PortRow {
        let (live, link) = (&self.fabric.switches[switch], &self.lab.links[number]);
        let end = &link.ends[side];
        let machine = &live.machine;
        let logins = |port: u16| logins.get(&port).copied().unwrap_or_default();
        let mut row = PortRow {
            port: shown.port(end),
            number: end.port.into(),
            port_name: port_name(machine, end.port),
            mode: match machine.port_mode(end.port) {
                Mode::F => PortMode::F,
                Mode::E => PortMode::E,
                Mode::Isolated => PortMode::Isolated,
                Mode::Down => PortMode::Down,
            },
            light: true,
            dark: None,
            isolated: isolated(machine, end.port),
            blocked: blocked(machine, end.port),
            rate: link.rate.to_string(),
            link: link.name.clone(),
            attached: shown.port(&link.ends[1 - side]),
            logins: logins(end.port),
            credits: [0, 0],
            channels: 0,
            frames_sent: 0,
            frames_received: 0,
            bytes_sent: None,
            bytes_received: None,
            discards: BTreeMap::new(),
            errors: PortErrors::default(),
            fcip: None,
        };
        let failures = live.failures.get(&end.port).copied().unwrap_or_default();
        let disabled = |port| match live.disabled.contains(&port) {
            true => Some(Dark::Disabled),
            false => Some(Dark::SwitchDisabled),
        };
        match live.attachment(end.port) {
            Attachment::Segment(segment) => {
                let segment = &self.fabric.segments[segment];
                let port = &self.ports[segment.port];
                row.dark = match () {
                    () if live.holds(segment.lab_port) => disabled(segment.lab_port),
                    () if !port.light => Some(Dark::NoPeer),
                    () if !port.up => Some(Dark::NoDcbx),
                    () => None,
                };
                row.rate = "Ethernet".to_owned();
                row.logins = segment.fcf.links().map(|link| logins(link.port)).sum();
                row.blocked = segment.fcf.links().any(|link| blocked(machine, link.port));
                row.frames_sent = port.ethernet.sent.frames;
                row.frames_received = port.ethernet.received.frames;
                row.bytes_sent = Some(port.ethernet.sent.bytes);
                row.bytes_received = Some(port.ethernet.received.bytes);
                row.discards = port.ethernet.drops.iter().map(|(why, frames)| ((*why).to_owned(), *frames)).collect();
                let fip = segment.fcf.discards().iter().filter(|(_, frames)| *frames > 0);
                row.discards.extend(fip.map(|(why, frames)| (format!("FIP: {}", why.name()), frames)));
                row.errors = errors(port, failures);
            }
            Attachment::Tunnel(number) => {
                let port = &self.ports[number];
                row.dark = match () {
                    () if live.holds(end.port) => disabled(end.port),
                    () if !port.light => Some(Dark::NoPeer),
                    () => None,
                };
                row.rate = "FCIP".to_owned();
                row.fcip = tunnel::row(port);
                row.frames_sent = port.ethernet.sent.frames;
                row.frames_received = port.ethernet.received.frames;
                row.bytes_sent = Some(port.ethernet.sent.bytes);
                row.bytes_received = Some(port.ethernet.received.bytes);
                row.discards = port.ethernet.drops.iter().map(|(why, frames)| ((*why).to_owned(), *frames)).collect();
                row.errors = PortErrors { pauses_sent: None, pauses_received: None, ..errors(port, failures) };
            }
            attachment @ (Attachment::Storage { .. } | Attachment::Host(_) | Attachment::Cable { .. }) => {
                let inner = live.inner(end.port);
                (row.frames_sent, row.frames_received) = (inner.sent, inner.received);
                row.dark = match attachment {
                    _ if live.holds(end.port) => disabled(end.port),
                    Attachment::Cable { switch, port } if self.fabric.switches[switch].holds(port) => {
                        Some(Dark::NoPeer)
                    }
                    _ => None,
                };
            }
            Attachment::Nothing if live.disabled.contains(&end.port) => row.dark = Some(Dark::Disabled),
            Attachment::Nothing => row.dark = Some(Dark::Unplugged),
        }
        row.light = row.dark.is_none();
        row
    }
}

/// Counters of errors of an Ethernet port. Ethernet has no credits. `failures`: those of its link
/// while the port of the switch was enabled.
fn errors(port: &LivePort, failures: u64) -> PortErrors {
    let drops = &port.ethernet.drops;
    let count = |reasons: &[&str]| reasons.iter().filter_map(|reason| drops.get(reason)).sum::<u64>();
    let sent = count(&[port_reason::NO_PEER, port_reason::HOLD_TIME, port_reason::REFUSED]);
    PortErrors {
        link_failures: Some(failures),
        crc_errors: Some(count(&[forward_reason::BAD_CRC])),
        frames_too_long: Some(count(&[port_reason::TOO_LONG])),
        discards_received: Some(drops.values().sum::<u64>().saturating_sub(sent)),
        discards_sent: Some(sent),
        timeouts_sent: Some(count(&[port_reason::HOLD_TIME])),
        pauses_sent: Some(port.ethernet.pauses_sent),
        pauses_received: Some(port.ethernet.pauses_received),
        ..PortErrors::default()
    }
}
