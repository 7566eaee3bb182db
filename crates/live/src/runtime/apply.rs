//! A changed lab file for a running instance: what of it can change while it runs, and what cannot.
//!
//! Zones go first, through the fabric, with what was changed in the file since it and the store were last the same; when they
//! are in force everywhere, LUNs, masks and the links of hosts follow. One thing that cannot change refuses the whole.

use super::plan::{LinkChanges, Opened, masking, new_unit};
use super::{Runtime, UpError};
use crate::runtime::plan::Places;
use crate::state::{KeptZones, merge};
use crate::storage::Backing;
use crate::volumes::NewBackEnd;
use sanloom_api::apply::{ApplyReport, SCHEMA_VERSION};
use sanloom_api::control::Answer;
use sanloom_api::zoning::ZonePreview;
use sanloom_core::config::{BackEnd, BackEndTarget, Lab, Live, MediumKind, Storage, Switch};
use sanloom_core::fabric_switch;
use sanloom_core::zoning::ZoneDatabase;
use sanloom_core::zoning::server::{ChangeFailure, ZoneChange};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;

const RESTART: &str = "end the instance and start it again";

/// An operator who waits for a lab to be applied.
#[derive(Debug)]
pub(super) struct ApplyAsked {
    answer: Sender<Answer>,
    lab: Arc<Lab>,
    links: LinkChanges,
    opened: Opened,
    report: ApplyReport,
    /// Zone changes that have not ended, by their tags.
    pending: BTreeSet<u32>,
    failures: Vec<String>,
}

/// A change of zones that makes of what a switch has what the file wants.
struct ZonePlan {
    switch: usize,
    merged: ZoneDatabase,
}

impl Runtime {
    /// Applies a lab, or says what that would do. The answer to what goes through the fabric comes later.
    pub(super) fn apply(&mut self, lab: Lab, preview: bool, answer: Sender<Answer>) {
        let reply = self.begin_apply(Arc::new(lab), preview, &answer);
        if let Some(reply) = reply {
            // A client that does not wait for its answer is nobody's loss.
            let _ = answer.send(reply);
        }
    }

    fn begin_apply(&mut self, lab: Arc<Lab>, preview: bool, answer: &Sender<Answer>) -> Option<Answer> {
        let failed = |reason: String| Some(Answer::Failed { reason });
        if self.applying.is_some() {
            return failed("another lab is being applied; try again when that is over".to_owned());
        }
        let mut report = compare(&self.lab, &lab);
        let mut links =
            LinkChanges::between(&self.lab, &lab, &self.lab_switches, |switch, port| self.is_open(switch, port));
        report.changes.append(&mut links.sentences);
        report.refused.append(&mut links.refused);
        let plans = match self.zone_plans(&lab) {
            Ok(plans) => plans,
            Err(error) => return failed(error),
        };
        for plan in &plans {
            let before = self.switches[plan.switch].machine.zone_database().clone();
            let preview = self.zone_difference(plan.switch, &before, &plan.merged);
            report.changes.push(zone_sentence(&self.switches[plan.switch].name, &preview));
            report.zones.push(preview);
        }
        // What they need is there before anything changes.
        report.refused.extend(self.new_back_ends(&lab).err().map(|error| format!("back ends: {error}")));
        let opens = !preview && report.refused.is_empty();
        let opened = self.prepare_links(&lab, &links, opens).unwrap_or_else(|why| {
            report.refused.extend(why);
            Opened::new()
        });
        if preview || !report.refused.is_empty() {
            return Some(Answer::Applied(Box::new(report)));
        }
        let (pending, failures) = (BTreeSet::new(), Vec::new());
        let mut asked = ApplyAsked { answer: answer.clone(), lab, links, opened, report, pending, failures };
        let mut changes = Vec::new();
        for ZonePlan { switch, merged } in plans {
            if let Err(error) = self.state.prepare(&self.switches[switch].name, &merged) {
                return failed(format!("not applied, the zones could not be kept: {error}"));
            }
            let tag = self.next_zone_change;
            self.next_zone_change = tag.wrapping_add(1);
            asked.pending.insert(tag);
            changes.push((switch, fabric_switch::Input::ChangeZones { tag, change: ZoneChange::Replace(merged) }));
        }
        self.applying = Some(asked);
        let now = self.clock.now();
        for (switch, change) in changes {
            self.tell_switch(now, switch, change);
        }
        self.settle_inside(now);
        self.finish_apply();
        None
    }

    /// Of each fabric the change that it needs: where the outcome is what a switch has, there is none.
    fn zone_plans(&self, lab: &Lab) -> Result<Vec<ZonePlan>, String> {
        let mut plans: Vec<ZonePlan> = Vec::new();
        for (switch, number) in self.lab_switches.iter().enumerate() {
            let live = &self.switches[switch];
            let committed = live.machine.zone_database();
            let before = match self.state.zones(&live.name).map_err(|error| error.to_string())? {
                Some(KeptZones { lab, .. }) => lab,
                None => self.lab.zone_database_at(*number),
            };
            let merged = merge(&before, &lab.zone_database_at(*number), committed);
            if merged == *committed {
                continue;
            }
            let problems = merged.problems(&self.lab.zone_policy.limits);
            if !problems.is_empty() {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                return Err(format!(
                    "the zones of the file and those of {} do not go together: {}",
                    live.name,
                    problems.join("; ")
                ));
            }
            // Switches of one fabric have one database, and change it together. Those of another may have an equal one.
            let planned = |plan: &ZonePlan| {
                let other = &self.switches[plan.switch].machine;
                plan.merged == merged
                    && other.zone_database() == committed
                    && live.machine.members().iter().any(|(_, name)| *name == other.name())
            };
            if !plans.iter().any(planned) {
                plans.push(ZonePlan { switch, merged });
            }
        }
        Ok(plans)
    }

    /// A change of zones has ended that belongs to a lab that is being applied. False: it does not.
    pub(super) fn apply_zones_done(&mut self, tag: u32, result: &Result<(), Vec<ChangeFailure>>) -> bool {
        let Some(asked) = self.applying.as_mut().filter(|asked| asked.pending.contains(&tag)) else { return false };
        asked.pending.remove(&tag);
        if let Err(failures) = result {
            asked.failures.extend(failures.iter().map(ToString::to_string));
        }
        true
    }

    /// Goes on when zones are in force.
    pub(super) fn finish_apply(&mut self) {
        if self.applying.as_ref().is_none_or(|asked| !asked.pending.is_empty()) {
            return;
        }
        let Some(asked) = self.applying.take() else { return };
        let ApplyAsked { answer, lab, links, opened, mut report, failures, .. } = asked;
        let reply = if !failures.is_empty() {
            Answer::Failed { reason: format!("not applied, the zones were not committed: {}", failures.join("; ")) }
        } else {
            let applied = self.apply_storage(&lab).and_then(|()| self.agree_with(&lab));
            match applied.and_then(|()| self.new_back_ends(&lab)) {
                Err(error) => Answer::Failed { reason: format!("not all of it is applied: {error}") },
                Ok(back_ends) => {
                    self.apply_volumes(&lab, back_ends);
                    match self.relink(lab, &links, opened) {
                        Err(error) => Answer::Failed { reason: format!("not all of it is applied: {error}") },
                        Ok(()) => {
                            tracing::info!(changes = report.changes.len(), "lab applied");
                            report.applied = true;
                            Answer::Applied(Box::new(report))
                        }
                    }
                }
            }
        };
        let _ = answer.send(reply);
    }

    /// LUNs that are new or larger, and who sees them.
    fn apply_storage(&mut self, lab: &Lab) -> Result<(), UpError> {
        let places = Places::of(lab);
        for number in 0..self.systems.len() {
            let Some(storage) = lab.storage.iter().position(|storage| storage.name == self.systems[number].name) else {
                continue;
            };
            let (index, config) = (storage as u16, &lab.storage[storage]);
            let system = &mut self.systems[number];
            for (lun, wanted) in config.luns.iter().enumerate() {
                let unit = lun as u16;
                match system.device.unit_config(unit).map(|unit| unit.blocks) {
                    None => {
                        let (unit_config, medium) = new_unit(lab, &places, self.state.instance(), index, lun)?;
                        system.add_unit(unit_config, medium, places.reservations(lab, index, lun));
                    }
                    Some(blocks) if blocks < wanted.blocks => {
                        let bytes = wanted.blocks * u64::from(wanted.block_bytes);
                        let path = places.lun_file(lab, index, lun);
                        let Some(Backing::Local(medium)) = system.media.get(lun) else { continue };
                        let grown = medium.grow(bytes);
                        let lun = format!("{}:lun{lun}", config.name);
                        grown.map_err(|error| UpError::File { lun, path, error })?;
                        system.device.resize(unit, wanted.blocks);
                    }
                    Some(_) => {}
                }
            }
            system.device.remask(masking(lab, index));
            let now = self.clock.now();
            self.systems[number].settle_all(now);
            self.drain_storage(number);
        }
        Ok(())
    }

    /// Back ends and volumes that are new in the file.
    fn apply_volumes(&mut self, lab: &Lab, back_ends: Vec<NewBackEnd>) {
        let now = self.clock.now();
        if let Some(engine) = &mut self.volumes {
            back_ends.into_iter().for_each(|back_end| engine.add(now, back_end));
        }
        let known = |name: &str| self.lab.live.volumes.iter().any(|old| old.name == name);
        let new: Vec<_> = lab.live.volumes.iter().filter(|volume| !known(&volume.name)).cloned().collect();
        self.wanted_volumes.extend(new);
        self.back_ends_found(&[]);
    }

    /// The store and the new file are the same from now on.
    fn agree_with(&mut self, lab: &Lab) -> Result<(), UpError> {
        for (switch, number) in self.lab_switches.iter().enumerate() {
            let live = &self.switches[switch];
            let committed = live.machine.zone_database().clone();
            let zones =
                KeptZones { lab: lab.zone_database_at(*number), committed, previous: live.zones.previous.clone() };
            self.state.agree(&live.name, &zones)?;
        }
        Ok(())
    }
}

fn zone_sentence(switch: &str, preview: &ZonePreview) -> String {
    let count = |n: usize| format!("{n} pair{}", if n == 1 { "" } else { "s" });
    format!(
        "zones, committed at {switch}: of the ports that are logged in {} gained, {} lost",
        count(preview.gains.len()),
        count(preview.loses.len())
    )
}

/// What differs between the lab that runs and another one, zones apart.
fn compare(now: &Lab, new: &Lab) -> ApplyReport {
    let mut report = ApplyReport { schema_version: SCHEMA_VERSION, lab: new.name.clone(), ..ApplyReport::default() };
    // Named one by one, so that no value passes for unchanged that nobody has thought of here.
    let Live {
        folder,
        control,
        metrics,
        // With the links.
        ethernet: _,
        stations,
        uplinks,
        fcoe,
        iscsi,
        port_groups,
        pools,
        back_ends,
        volumes,
        media: _,
        masks: _,
    } = &new.live;
    let fixed = [
        (now.name == new.name, "the name of the lab", "it is another lab with a folder of its own"),
        (now.timers == new.timers, "timers", "they are agreed on at login and between switches"),
        (
            alike(&now.switches) == alike(&new.switches),
            "switches",
            "they are made at the start, and others have agreed on their values",
        ),
        (now.zone_policy == new.zone_policy, "limits and rules of zoning", "merges have been made by them"),
        (now.zone_fabrics == new.zone_fabrics, "virtual fabrics of zones", "switches have begun with theirs"),
        (now.live.folder == *folder, "`[live] folder`", "sockets and images are there"),
        (now.live.control == *control, "`[live] control`", "clients find the instance there"),
        (now.live.metrics == *metrics, "`[live] metrics`", "the address is opened at the start"),
        (now.live.stations == *stations, "`ethernet` of storage", "ports are opened at the start"),
        (now.live.uplinks == *uplinks, "`fcoe` of hosts", "ports are opened at the start"),
        (now.live.pools == *pools, "pools", "volumes are made of their extents"),
        (
            now.live.port_groups == *port_groups,
            "port groups",
            "initiators have learned them, and `sanloom port group` changes their states",
        ),
        (now.live.fcoe == *fcoe, "`fcoe` of switches", "hosts have learned it when they logged in"),
        (
            now.live.iscsi == *iscsi,
            "`iscsi` of storage",
            "portals are opened at the start, and initiators have negotiated",
        ),
    ];
    for (same, what, why) in fixed {
        if !same {
            report.refused.push(format!("{what}: {why}; {RESTART}"));
        }
    }
    add_back_ends(&now.live.back_ends, back_ends, &mut report);
    let idle = [
        (now.description == new.description, "the description"),
        (now.run == new.run, "`[run]`"),
        (now.workloads == new.workloads, "workloads"),
        (now.faults == new.faults, "faults"),
        (now.changes == new.changes, "scheduled changes"),
        (now.expectations == new.expectations, "expectations"),
    ];
    for volume in volumes {
        match now.live.volumes.iter().find(|old| old.name == volume.name) {
            None => report.changes.push(format!("volume {} is created", volume.name)),
            Some(old) if old != volume => {
                let help = "`sanloom volume` extends and maps it";
                report.without_effect.push(format!("volume {}: {help}", volume.name));
            }
            Some(_) => {}
        }
    }
    report.without_effect.extend(idle.iter().filter(|(same, _)| !same).map(|(_, what)| (*what).to_owned()));
    if now.hosts != new.hosts {
        report.changes.push("hosts: names in tables, and whom masks mean by them".to_owned());
    }
    storage(now, new, &mut report);
    report
}

/// Pools may get further back ends over iSCSI; everything else about them is fixed.
fn add_back_ends(now: &[BackEnd], new: &[BackEnd], report: &mut ApplyReport) {
    let known = |back_end: &&BackEnd| now.iter().any(|old| old.name == back_end.name);
    if !new.iter().filter(known).eq(now) {
        let why = "volumes have extents of them, and sessions with them were begun at the start";
        report.refused.push(format!("back ends that are there: {why}; {RESTART}"));
    }
    for back_end in new.iter().filter(|back_end| !known(back_end)) {
        match back_end.target {
            BackEndTarget::Iscsi(_) => report.changes.push(format!("back end {}: its pool grows", back_end.name)),
            BackEndTarget::Fcp(_) => {
                let why = "host ports are made at the start";
                report.refused.push(format!("back end {}: {why}; {RESTART}", back_end.name));
            }
        }
    }
}

/// Switches without what links change of them: they have as many ports as they need.
fn alike(switches: &[Switch]) -> Vec<Switch> {
    switches.iter().map(|switch| Switch { ports: 0, ..switch.clone() }).collect()
}

fn storage(now: &Lab, new: &Lab, report: &mut ApplyReport) {
    let names = |lab: &Lab| -> Vec<String> { lab.storage.iter().map(|storage| storage.name.clone()).collect() };
    if names(now) != names(new) {
        let why = "their ports are logged in as the lab said at the start";
        report.refused.push(format!("storage systems: {why}; {RESTART}"));
        return;
    }
    for (number, (old, config)) in (0..).zip(now.storage.iter().zip(&new.storage)) {
        let name = &config.name;
        let (was, is) = (now.live.medium(number), new.live.medium(number));
        let files = was.files.iter().zip(&is.files).all(|(was, is)| was == is);
        if (was.kind, was.write_back) != (is.kind, is.write_back) || !files {
            report.refused.push(format!("medium of {name}: data would be lost; {RESTART}"));
        }
        if was.direct != is.direct && is.kind == MediumKind::File {
            report.refused.push(format!("`direct` of {name}: its files are open; {RESTART}"));
        }
        if (Storage { luns: Vec::new(), ..old.clone() }) != (Storage { luns: Vec::new(), ..config.clone() }) {
            report.refused.push(format!("{name}: initiators have logged in to it as it is; {RESTART}"));
        }
        if config.luns.len() < old.luns.len() {
            report.refused.push(format!("LUNs of {name}: hosts may use those that would go; mask them, or {RESTART}"));
        }
        for (lun, (old, new)) in old.luns.iter().zip(&config.luns).enumerate() {
            if new.block_bytes != old.block_bytes || new.blocks < old.blocks {
                report.refused.push(format!("size of {name}:lun{lun}: data would be lost; {RESTART}"));
            } else if new.blocks > old.blocks {
                let bytes = new.blocks * u64::from(new.block_bytes);
                report.changes.push(format!("{name}:lun{lun} grows to {bytes} bytes, which hosts are told"));
            }
        }
        for lun in old.luns.len()..config.luns.len() {
            let of = if is.kind == MediumKind::File { ", in a file" } else { "" };
            report.changes.push(format!("{name}:lun{lun} is new{of}, which hosts are told"));
        }
        if masking(now, number) != masking(new, number) {
            report.changes.push(format!("masking of {name}: initiators that see other LUNs than before are told"));
        }
    }
}
