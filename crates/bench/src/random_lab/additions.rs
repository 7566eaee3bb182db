//! Additional features of some labs: virtual machines that move and stop, changes of zones during
//! the run, switches with different cost rules, virtual channels and quarantines.
//!
//! The additions are drawn last, with their own dice, so that a lab without them does not depend on
//! this module.

use super::{Dice, nodes, reach};
use sanloom_fc::config::{CostRule, Queueing, SlowDrain, VirtualChannels};
use sanloom_fc::config::{Fault, FaultKind, Hba, Host, Node, Picos, VirtualMachine, ZoneMember};
use sanloom_fc::nport::LoginScript;
use sanloom_fc::san::{Lab, ScheduledChange};
use sanloom_fc::zoning::{MemberRef, Transaction, ZoneDatabase, ZoneDefinition, ZoneEdit};
use sanloom_wire::{Wwnn, Wwpn};
use std::collections::BTreeMap;

/// Name of the zone configuration of random labs.
pub(super) const CONFIG: &str = "drawn";

pub(super) fn draw(seed: u64, lab: &mut Lab) {
    const OWN_DICE: u64 = 0xadd1_7105;
    let dice = &mut Dice::new(seed ^ OWN_DICE << 32);
    if dice.chance(1, 3) {
        cost_rules(dice, lab);
    }
    if dice.chance(1, 3) {
        machines(dice, lab);
    }
    if dice.chance(1, 3) && !lab.zoning.zones.is_empty() {
        changes(dice, lab);
    }
    const DICE_OF_CHANNELS: u64 = 0xc4a2_2e15;
    channels(&mut Dice::new(seed ^ DICE_OF_CHANNELS << 32), lab);
    nodes::allow_for_distance(lab);
}

/// Draws virtual channels for the switches of half of the labs, and quarantines for some of them.
fn channels(dice: &mut Dice, lab: &mut Lab) {
    if !dice.chance(1, 2) {
        return;
    }
    for switch in lab.switches.iter_mut().filter(|switch| switch.queueing == Queueing::Voq) {
        switch.virtual_channels = dice.pick(&[
            None,
            Some(VirtualChannels { medium: None, high: 0, low: 0 }),
            Some(VirtualChannels { medium: Some(4), high: 1, low: 1 }),
            Some(VirtualChannels { medium: Some(1), high: 0, low: 2 }),
        ]);
        let has_low = switch.virtual_channels.is_some_and(|channels| channels.low > 0);
        switch.quarantine = (has_low && dice.chance(1, 2)).then(|| SlowDrain {
            share_permille: dice.range(100, 900) as u32,
            window: Picos::from_us(dice.spread(10, 5_000)),
            recovery: Picos::from_us(dice.spread(10, 20_000)),
        });
    }
}

fn cost_rules(dice: &mut Dice, lab: &mut Lab) {
    for switch in &mut lab.switches {
        switch.joining.cost_rule = dice.pick(&[CostRule::Standard, CostRule::Brocade, CostRule::Cisco]);
    }
}

fn machines(dice: &mut Dice, lab: &mut Lab) {
    let hypervisors = lab.hosts.len();
    let mut on_hypervisor: BTreeMap<u16, u16> = BTreeMap::new();
    for number in 0..dice.range(1, 4) {
        let on = dice.index(hypervisors) as u16;
        let slot = on_hypervisor.entry(on).or_insert(0);
        let machine = VirtualMachine {
            on,
            number: *slot,
            start: dice.chance(1, 3).then(|| Picos(dice.range(0, lab.run.duration.0 / 2))),
            boot: Picos::from_ms(dice.range(0, 2)).into(),
            script: dice.pick(&[LoginScript::Standard, LoginScript::Npiv]),
        };
        *slot += 1;
        let host = host(dice, number, machine, &lab.hosts[usize::from(on)]);
        zone(dice, lab, &host);
        lab.hosts.push(host);
        let host = lab.hosts.len() as u16 - 1;
        for workload in 0..lab.workloads.len() {
            let targets = &lab.workloads[workload].targets;
            if targets.iter().all(|target| reach::reaches(lab, host, target.storage)) && dice.chance(1, 2) {
                lab.workloads[workload].hosts.push(host);
            }
        }
        travels(dice, lab, host, hypervisors);
    }
    lab.zone_database = ZoneDatabase::of_zoning(&lab.zoning, CONFIG);
    lab.faults.sort_by_key(|fault| fault.at);
}

fn host(dice: &mut Dice, number: u64, machine: VirtualMachine, hypervisor: &Host) -> Host {
    let base = 0x1000_0000_0100_0000 + (number << 8);
    let hba = |port| Hba { wwpn: Wwpn(base + 1 + port), receive_size_bytes: 2048, data_frames_in_flight: None };
    Host {
        name: format!("machine{number}"),
        wwnn: Wwnn(base),
        hbas: (0..dice.range(1, 2)).map(hba).collect(),
        bus: None,
        virtual_machine: Some(machine),
        ..hypervisor.clone()
    }
}

/// Adds a machine to some of the existing zones.
fn zone(dice: &mut Dice, lab: &mut Lab, machine: &Host) {
    for zone in &mut lab.zoning.zones {
        if dice.chance(1, 2) {
            zone.members.extend(machine.hbas.iter().map(|hba| ZoneMember::PortName(hba.wwpn)));
        }
    }
}

/// Adds up to two moves of a machine, and possibly a stop.
fn travels(dice: &mut Dice, lab: &mut Lab, host: u16, hypervisors: usize) {
    let duration = lab.run.duration.0;
    let mut at = dice.range(0, duration / 4);
    let mut on = lab.hosts[usize::from(host)].virtual_machine.map_or(0, |machine| machine.on);
    let moves = if hypervisors > 1 { dice.range(0, 2) } else { 0 };
    for _ in 0..moves {
        // Any hypervisor except the current one.
        on = (on + dice.range(1, hypervisors as u64 - 1) as u16) % hypervisors as u16;
        let until = dice.chance(1, 2).then(|| Picos(at + dice.range(1, duration / 8)));
        lab.faults.push(Fault { at: Picos(at), until, kind: FaultKind::VmMove { host, to: on } });
        at += dice.range(1, duration / 4);
    }
    if dice.chance(1, 6) {
        lab.faults.push(Fault { at: Picos(at), until: None, kind: FaultKind::VmStop { host } });
    }
}

/// Adds changes that create, extend and shrink zones. If a fabric splits and its parts commit
/// different changes, the parts must not join again. Such labs therefore have no faults between
/// switches.
fn changes(dice: &mut Dice, lab: &mut Lab) {
    let between_switches =
        |link: u16| lab.links[usize::from(link)].ends.iter().all(|end| matches!(end.node, Node::Switch(_)));
    let mut faults = std::mem::take(&mut lab.faults);
    faults.retain(|fault| match fault.kind {
        FaultKind::SwitchReset { .. } => false,
        FaultKind::LinkDown { link }
        | FaultKind::LinkUp { link }
        | FaultKind::PortDown { link, .. }
        | FaultKind::FrameLoss { link, .. }
        | FaultKind::CrcErrors { link, .. }
        | FaultKind::SlowReceiver { link, .. }
        | FaultKind::WithheldCredits { link, .. }
        | FaultKind::LostRRdy { link, .. } => !between_switches(link),
        FaultKind::VmMove { .. }
        | FaultKind::VmStop { .. }
        | FaultKind::DuplicateName { .. }
        | FaultKind::ForeignAddress { .. }
        | FaultKind::DiskFailure { .. }
        | FaultKind::LatentError { .. }
        | FaultKind::PowerFailure { .. }
        | FaultKind::ControllerFailure { .. }
        | FaultKind::CacheBattery { .. }
        | FaultKind::OutOfBand(_)
        | FaultKind::Ethernet(_)
        | FaultKind::Infiniband(_) => true,
    });
    lab.faults = faults;
    let fabrics = lab.fabrics();
    let mut committed: BTreeMap<u16, ZoneDatabase> = BTreeMap::new();
    let mut times: Vec<Picos> =
        (0..dice.range(1, 3)).map(|_| Picos(dice.range(0, lab.run.duration.0 * 3 / 4))).collect();
    times.sort_unstable();
    for (number, at) in times.into_iter().enumerate() {
        let switch = dice.index(lab.switches.len()) as u16;
        let database = committed.entry(fabrics[usize::from(switch)]).or_insert_with(|| lab.zone_database.clone());
        let mut edits = vec![edit(dice, lab, database, number)];
        if let ZoneEdit::CreateZone { name, .. } = &edits[0] {
            edits.push(ZoneEdit::AddToConfig { name: CONFIG.to_owned(), zones: vec![name.clone()] });
        }
        edits.push(ZoneEdit::Enable(CONFIG.to_owned()));
        let mut transaction = Transaction::begin(database, lab.zone_policy.limits);
        let accepted = edits.iter().all(|edit| transaction.apply(edit.clone()).is_ok());
        let (outcome, problems) = transaction.outcome();
        if accepted && problems.is_empty() {
            *database = outcome;
            lab.changes.push(ScheduledChange { at, switch, edits, expected: database.zoning() });
        }
    }
}

fn edit(dice: &mut Dice, lab: &Lab, database: &ZoneDatabase, number: usize) -> ZoneEdit {
    let hbas: Vec<Wwpn> = lab.hosts.iter().flat_map(|host| &host.hbas).map(|hba| hba.wwpn).collect();
    let ports: Vec<Wwpn> = lab.storage.iter().flat_map(|storage| &storage.ports).map(|port| port.wwpn).collect();
    let member = |name: Wwpn| MemberRef::Member(ZoneMember::PortName(name));
    let zones: Vec<(&String, &ZoneDefinition)> = database.defined.zones.iter().collect();
    let (name, zone) = zones[dice.index(zones.len())];
    let name = name.clone();
    match dice.range(0, 2) {
        0 => {
            let members = vec![member(dice.pick(&hbas)), member(dice.pick(&ports))];
            let zone = ZoneDefinition { members, principals: Vec::new() };
            ZoneEdit::CreateZone { name: format!("late{number}"), zone }
        }
        1 => {
            let members = vec![member(dice.pick(&hbas))];
            ZoneEdit::AddToZone { name, zone: ZoneDefinition { members, principals: Vec::new() } }
        }
        _ => {
            let members = zone.members[dice.index(zone.members.len())..].iter().take(1).cloned().collect();
            ZoneEdit::RemoveFromZone { name, zone: ZoneDefinition { members, principals: Vec::new() } }
        }
    }
}
