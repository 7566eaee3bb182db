//! Tables of running instances only: LUNs, counters, rules.

use super::Tables;
use crate::capture::Captures;
use crate::runtime::fabric::switch::Attachment;
use crate::runtime::ports::LivePort;
use crate::runtime::tunnel;
use crate::storage::port::At;
use crate::storage::{Backing, StorageSystem};
use sanloom_api::view::build::{LiveWhich, Shown};
use sanloom_api::view::{CapturesView, CounterRow, CountersView, GroupRow, GroupsView, LunRow, LunsView, Table, View};
use sanloom_fc::config::{MediumKind, PortGroupSpec};
use sanloom_fc::fip::Discards;
use std::collections::BTreeMap;

impl Tables<'_> {
    /// Returns a table of the instance.
    pub fn live(&self, which: LiveWhich) -> View {
        let table = match which {
            LiveWhich::Luns => Table::Luns(self.luns()),
            LiveWhich::Groups => Table::Groups(self.groups()),
            LiveWhich::Counters => Table::Counters(self.counters()),
            LiveWhich::Injections => return self.injections(),
            LiveWhich::Captures => Table::Captures(self.captures()),
            LiveWhich::Volumes => Table::Volumes(self.volumes(None)),
            LiveWhich::Paths => Table::Paths(self.paths()),
            LiveWhich::Sessions => Table::Sessions(self.sessions()),
            LiveWhich::Stats => Table::Counters(self.stats()),
        };
        self.view(table)
    }

    /// Rules of injected faults.
    pub fn injections(&self) -> View {
        self.view(Table::Injections(self.fabric.injector.rows()))
    }

    fn captures(&self) -> CapturesView {
        CapturesView { captures: self.all_captures().flat_map(Captures::rows).collect() }
    }

    /// Captures of switches and Ethernet ports, then those of host ports.
    pub(super) fn all_captures(&self) -> impl Iterator<Item = &Captures> {
        let of_hosts = self.services.adapters().map(|adapter| &adapter.captures);
        std::iter::once(&self.ports.captures).chain(of_hosts)
    }

    fn groups(&self) -> GroupsView {
        let row = |group: &PortGroupSpec| {
            let storage = &self.lab.storage[usize::from(group.storage)].name;
            let system = self.services.systems.iter().find(|system| system.name == *storage)?;
            let (_, now, relative_ports) = system.device.port_groups().find(|(number, ..)| *number == group.number)?;
            let ports = group.ports.iter().map(|port| format!("{storage}:{port}"));
            Some(GroupRow {
                group: group.name.clone(),
                storage: storage.clone(),
                number: group.number,
                state: now.state.to_string(),
                preferred: now.preferred,
                ports: ports.chain(group.portals.iter().map(ToString::to_string)).collect(),
                relative_ports,
            })
        };
        GroupsView { groups: self.lab.live.port_groups.iter().filter_map(row).collect() }
    }

    fn luns(&self) -> LunsView {
        let shown = Shown::new(self.lab, Vec::new(), None, |at| at.as_ns() as f64 / 1e9);
        let luns = self.services.systems.iter().flat_map(|system| {
            let shown = &shown;
            let luns = (0..system.media.len() as u16).filter(|lun| system.device.unit_config(*lun).is_some());
            luns.map(move |lun| self.lun(shown, system, lun))
        });
        LunsView { luns: luns.collect() }
    }

    fn lun(&self, shown: &Shown<'_>, system: &StorageSystem, lun: u16) -> LunRow {
        let storage =
            self.lab.storage.iter().position(|storage| storage.name == system.name).unwrap_or_default() as u16;
        let medium = self.lab.live.medium(storage);
        let over_fc = system.ports.iter().any(|port| port.at != At::Nothing);
        LunRow {
            medium: match medium.kind {
                MediumKind::Ram => "ram",
                MediumKind::File => "file",
                MediumKind::Pattern => "pattern",
                MediumKind::Null => "null",
                MediumKind::Volumes => "volume",
            }
            .to_owned(),
            direct: match system.media.get(usize::from(lun)) {
                Some(Backing::Local(medium)) => medium.direct(),
                _ => None,
            },
            disk_full: is_full(system, lun),
            write_back: medium.write_back,
            ..shown.lun(storage, lun, &system.device, over_fc)
        }
    }

    fn counters(&self) -> CountersView {
        let mut rows = Vec::new();
        for switch in &self.fabric.switches {
            let services = switch.machine.counters();
            let mut counters: BTreeMap<String, u64> = [
                ("forwarded", switch.forwarded),
                ("fabric logins", services.fabric_logins),
                ("virtual logins", services.virtual_logins),
                ("rejected logins", services.logins_rejected),
                ("logouts", services.logouts),
                ("implicit logouts", services.implicit_logouts),
                ("name server requests", services.ct_accepted),
                ("name server rejects", services.ct_rejected),
                ("RSCNs", services.rscn_sent),
                ("discarded messages of switches", switch.machine.discarded()),
                ("discarded pieces of messages", switch.reassembly.discarded),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
            counters.extend(dropped(&switch.drops));
            rows.push(CounterRow { of: switch.name.clone(), counters });
            for (attachment, port) in switch.attachments.iter().zip(0..) {
                if let Attachment::Tunnel(number) = attachment {
                    let counters = tunnel::counters(&self.ports[*number]);
                    rows.push(CounterRow { of: format!("{}:{port}", switch.name), counters });
                }
                let Attachment::Segment(number) = attachment else { continue };
                let segment = &self.fabric.segments[*number];
                // Ports for further virtual links share the counters of the first.
                if segment.lab_port != port {
                    continue;
                }
                let counters = ethernet_counters(&self.ports[segment.port], segment.fcf.discards());
                rows.push(CounterRow { of: format!("{}:{port}", switch.name), counters });
            }
        }
        let ports = self.services.systems.iter().zip(0..).flat_map(|(system, number)| {
            system.ports.iter().zip(0..).map(move |(port, storage_port)| (port, (number, storage_port)))
        });
        for (port, at) in ports {
            let target = port.target.counters();
            let counters = [
                ("commands", target.commands),
                ("responses", target.responses),
                ("check conditions", target.check_conditions),
                ("task set full", target.task_set_full),
                ("aborted", target.aborted),
                ("stalled writes", target.stalled),
                ("frames without a login", target.not_logged_in),
                ("unexpected frames", target.unexpected_frames + port.unexpected),
            ];
            let mut counters: BTreeMap<String, u64> = counters.map(|(name, value)| (name.to_owned(), value)).into();
            let station = self.fabric.stations.iter().find(|station| (station.system, station.storage_port) == at);
            if let Some(station) = station {
                counters.extend(ethernet_counters(&self.ports[station.port], station.machine.discards()));
                counters.insert("address conflicts".to_owned(), station.machine.conflicts());
            }
            rows.push(CounterRow { of: port.name.clone(), counters });
        }
        for (target, sessions, counted) in self.services.iscsi.iter().flat_map(|server| server.targets()) {
            let all = counted.rows().chain([("sessions", u64::from(sessions))]);
            let counters = all.map(|(name, value)| (name.to_owned(), value)).collect();
            rows.push(CounterRow { of: target.to_owned(), counters });
        }
        CountersView { counters: rows }
    }
}

/// Returns whether the disk behind a LUN has refused the last write because it is full.
pub(super) fn is_full(system: &StorageSystem, lun: u16) -> bool {
    matches!(system.media.get(usize::from(lun)), Some(Backing::Local(medium)) if medium.is_full())
}

fn dropped(drops: &BTreeMap<&'static str, u64>) -> Vec<(String, u64)> {
    drops.iter().map(|(reason, frames)| (format!("dropped: {reason}"), *frames)).collect()
}

/// Counters of an Ethernet port, its LLDP agent and its FIP controller.
fn ethernet_counters(port: &LivePort, fip: &Discards) -> BTreeMap<String, u64> {
    let LivePort { ethernet, agent, .. } = port;
    let mut counters: BTreeMap<String, u64> = [
        ("frames in", ethernet.received.frames),
        ("bytes in", ethernet.received.bytes),
        ("frames out", ethernet.sent.frames),
        ("bytes out", ethernet.sent.bytes),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    counters.extend(dropped(&ethernet.drops));
    let fip = fip.iter().filter(|(_, packets)| *packets > 0);
    counters.extend(fip.map(|(why, packets)| (format!("discarded FIP: {}", why.name()), packets)));
    if let Some(agent) = agent {
        let counted = agent.machine.counters();
        let lldp = [
            ("LLDP in", counted.received),
            ("LLDP out", counted.sent),
            ("discarded LLDP", counted.discarded),
            ("LLDP TLVs in error", counted.tlvs_in_error),
            ("LLDP peers aged out", counted.aged_out),
        ];
        counters.extend(lldp.map(|(name, value)| (name.to_owned(), value)));
    }
    counters
}
