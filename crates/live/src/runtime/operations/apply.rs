//! Application of a changed lab file to a running instance.
//!
//! Zones are changed first, through the fabric, by the changes of the file since it last agreed
//! with the store. When they are in force everywhere, LUNs, masks and the links of hosts follow. If
//! the file contains one change that a running instance cannot make, nothing is applied.

use super::Site;
use super::links::{self, LinkChanges, Opened};
use super::volumes::VolumeAdmin;
use super::zones::{self, ZoneChanges};
use crate::runtime::UpError;
use crate::runtime::instance::Instance;
use crate::runtime::plan::{LabPaths, new_back_ends, new_unit};
use crate::state::{KeptZones, merge};
use crate::storage::Backing;
use crate::volumes::NewBackEnd;
use sanloom_api::apply::{ApplyReport, SCHEMA_VERSION};
use sanloom_api::control::{Answer, RequestError};
use sanloom_api::zone_requests::{StartedChange, ZoneFabric, ZoneResult};
use sanloom_api::zoning::ZonePreview;
use sanloom_fc::config::{BackEnd, BackEndTarget, Live, MediumKind, Storage, Switch};
use sanloom_fc::san::Lab;
use sanloom_fc::zoning::ZoneDatabase;
use sanloom_fc::zoning::server::ZoneChange;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;

const RESTART: &str = "restart the instance";

/// A lab whose zone changes are in progress, and the client to answer.
#[derive(Debug)]
struct Waiting {
    answer: Sender<Answer>,
    lab: Arc<Lab>,
    links: LinkChanges,
    opened: Opened,
    report: ApplyReport,
    /// Tags of unfinished zone changes.
    pending: BTreeSet<u32>,
    failures: Vec<String>,
}

/// A required zone change, and the switch that starts it.
struct ZonePlan {
    switch: usize,
    merged: ZoneDatabase,
}

/// Lab changes in progress, one at a time.
#[derive(Debug, Default)]
pub struct Apply {
    waiting: Option<Waiting>,
}

impl Apply {
    /// Applies a lab, or previews that. If the fabric is involved, the answer is sent later.
    pub fn request(
        &mut self,
        site: &mut Site<'_>,
        zones: &mut ZoneChanges,
        lab: Lab,
        preview: bool,
        answer: Sender<Answer>,
    ) {
        if let Some(reply) = self.begin(site, zones, Arc::new(lab), preview, &answer) {
            // The client has disconnected.
            let _ = answer.send(reply);
        }
    }

    /// Returns the answer if it is known at once.
    fn begin(
        &mut self,
        site: &mut Site<'_>,
        zones: &mut ZoneChanges,
        lab: Arc<Lab>,
        preview: bool,
        answer: &Sender<Answer>,
    ) -> Option<Answer> {
        let failed = |error: RequestError| Some(Answer::Failed(error));
        if self.waiting.is_some() {
            return failed("another lab is being applied; try again when it is done".to_owned().into());
        }
        let instance = &mut *site.instance;
        let mut report = compare(&instance.lab, &lab);
        let is_open = |switch, port| links::is_open(instance, switch, port);
        let mut links = LinkChanges::between(&instance.lab, &lab, &instance.lab_switches, is_open);
        report.changes.append(&mut links.sentences);
        report.refused.append(&mut links.refused);
        let plans = match zone_plans(instance, &lab) {
            Ok(plans) => plans,
            Err(error) => return failed(error),
        };
        for plan in &plans {
            let live = &instance.fabric.switches[plan.switch];
            let preview = zones::difference(instance, plan.switch, live.machine.zone_database(), &plan.merged);
            report.changes.push(zone_sentence(&live.name, &preview));
            report.zones.push(preview);
        }
        // Prepare everything that the changes need before the first of them.
        report.refused.extend(new_back_ends(instance, &lab).err().map(|error| format!("back ends: {error}")));
        let opens = !preview && report.refused.is_empty();
        let opened = links::prepare(instance, &lab, &links, opens).unwrap_or_else(|why| {
            report.refused.extend(why);
            Opened::new()
        });
        if preview || !report.refused.is_empty() {
            return Some(Answer::Applied(Box::new(report)));
        }
        let mut pending = BTreeSet::new();
        let mut changes = Vec::new();
        for ZonePlan { switch, merged } in plans {
            let name = &instance.fabric.switches[switch].name;
            if let Err(error) = instance.keeper.state.prepare(name, &merged) {
                let reason = format!("not applied, because the zones cannot be stored: {error}");
                return failed(RequestError::environment(reason));
            }
            let tag = zones.next_tag();
            pending.insert(tag);
            let checksum = merged.checksum();
            changes.push((switch, StartedChange { tag, change: ZoneChange::Replace(merged), checksum, by: None }));
        }
        for (switch, change) in changes {
            instance.change(switch, change);
        }
        let (answer, failures) = (answer.clone(), Vec::new());
        self.waiting = Some(Waiting { answer, lab, links, opened, report, pending, failures });
        self.advance(site);
        None
    }

    /// Records the end of a zone change. Returns false if the change belongs to no lab in progress.
    pub fn zones_ended(&mut self, ended: &ZoneResult) -> bool {
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.pending.contains(&ended.tag)) else {
            return false;
        };
        waiting.pending.remove(&ended.tag);
        if let Err(failures) = &ended.result {
            waiting.failures.extend(failures.iter().map(ToString::to_string));
        }
        true
    }

    /// Applies the rest of the lab once its zones are in force.
    pub fn advance(&mut self, site: &mut Site<'_>) {
        if self.waiting.as_ref().is_none_or(|waiting| !waiting.pending.is_empty()) {
            return;
        }
        let Some(Waiting { answer, lab, links, opened, mut report, failures, .. }) = self.waiting.take() else {
            return;
        };
        let reply = if failures.is_empty() {
            match apply_rest(site, lab, &links, opened) {
                Err(error) => {
                    let RequestError { reason, kind } = error.into();
                    Answer::Failed(RequestError { reason: format!("applied in part only: {reason}"), kind })
                }
                Ok(()) => {
                    tracing::info!(changes = report.changes.len(), "lab applied");
                    report.applied = true;
                    Answer::Applied(Box::new(report))
                }
            }
        } else {
            Answer::failed(format!("not applied, because the zones were not committed: {}", failures.join("; ")))
        };
        let _ = answer.send(reply);
    }
}

/// Returns the zone change that each fabric needs. A switch that has the outcome already needs
/// none.
fn zone_plans(instance: &Instance, lab: &Lab) -> Result<Vec<ZonePlan>, RequestError> {
    let mut plans: Vec<ZonePlan> = Vec::new();
    for (switch, number) in instance.lab_switches.iter().enumerate() {
        let live = &instance.fabric.switches[switch];
        let committed = live.machine.zone_database();
        let before = match instance.keeper.state.zones(&live.name)? {
            Some(KeptZones { lab, .. }) => lab,
            None => instance.lab.zone_database_at(*number),
        };
        let merged = merge(&before, &lab.zone_database_at(*number), committed);
        if merged == *committed {
            continue;
        }
        let problems = merged.problems(&instance.lab.zone_policy.limits);
        if !problems.is_empty() {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(format!(
                "the zones of the file and those of {} cannot be merged: {}",
                live.name,
                problems.join("; ")
            )
            .into());
        }
        // Switches of one fabric share one database and one change. Another fabric may have an
        // equal database.
        let planned = |plan: &ZonePlan| {
            let other = &instance.fabric.switches[plan.switch].machine;
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

/// Applies everything but zones.
fn apply_rest(site: &mut Site<'_>, lab: Arc<Lab>, links: &LinkChanges, opened: Opened) -> Result<(), UpError> {
    apply_storage(site, &lab)?;
    agree_with(site.instance, &lab)?;
    let back_ends = new_back_ends(site.instance, &lab)?;
    apply_volumes(site, &lab, back_ends);
    links::relink(site, lab, links, opened)
}

/// Applies new and larger LUNs, and masks.
fn apply_storage(site: &mut Site<'_>, lab: &Lab) -> Result<(), UpError> {
    let (lab_paths, now) = (LabPaths::of(lab), site.now);
    let Instance { services, keeper, .. } = &mut *site.instance;
    for number in 0..services.systems.len() {
        let system = &mut services.systems[number];
        let Some(storage) = lab.storage.iter().position(|storage| storage.name == system.name) else { continue };
        let (index, config) = (storage as u16, &lab.storage[storage]);
        for (lun, wanted) in config.luns.iter().enumerate() {
            let unit = lun as u16;
            match system.device.unit_config(unit).map(|unit| unit.blocks) {
                None => {
                    let (unit_config, medium) = new_unit(lab, &lab_paths, keeper.state.instance(), index, lun)?;
                    system.add_unit(unit_config, medium, lab_paths.reservations(lab, index, lun));
                }
                Some(blocks) if blocks < wanted.blocks => {
                    let bytes = wanted.blocks * u64::from(wanted.block_bytes);
                    let path = lab_paths.lun_file(lab, index, lun);
                    let Some(Backing::Local(medium)) = system.media.get(lun) else { continue };
                    let grown = medium.grow(bytes);
                    let lun = format!("{}:lun{lun}", config.name);
                    grown.map_err(|error| UpError::File { lun, path, error })?;
                    system.device.resize(unit, wanted.blocks);
                }
                Some(_) => {}
            }
        }
        system.device.remask(lab.masking(index));
        system.drain_all(now);
        services.submit_jobs(number);
    }
    Ok(())
}

/// Adds back ends and volumes that are new in the file.
fn apply_volumes(site: &mut Site<'_>, lab: &Lab, back_ends: Vec<NewBackEnd>) {
    let now = site.now;
    let Instance { services, lab: before, .. } = &mut *site.instance;
    if let Some(engine) = &mut services.volumes {
        back_ends.into_iter().for_each(|back_end| engine.add(now, back_end));
    }
    let known = |name: &str| before.live.volumes.iter().any(|old| old.name == name);
    let new = lab.live.volumes.iter().filter(|volume| !known(&volume.name)).cloned();
    services.wanted_volumes.extend(new);
    VolumeAdmin::of(site.instance, now).back_ends_found(&[]);
}

/// Records that the store and the new file agree.
fn agree_with(instance: &Instance, lab: &Lab) -> Result<(), UpError> {
    for (live, number) in instance.fabric.switches.iter().zip(&instance.lab_switches) {
        let committed = live.machine.zone_database().clone();
        let zones = KeptZones { lab: lab.zone_database_at(*number), committed, previous: live.zones.previous.clone() };
        instance.keeper.state.agree(&live.name, &zones)?;
    }
    Ok(())
}

fn zone_sentence(switch: &str, preview: &ZonePreview) -> String {
    let count = |n: usize| format!("{n} pair{}", if n == 1 { "" } else { "s" });
    format!(
        "zones, committed at {switch}: among ports that are logged in, {} gained, {} lost",
        count(preview.gains.len()),
        count(preview.loses.len())
    )
}

/// Compares the running lab with another one, zones apart.
fn compare(now: &Lab, new: &Lab) -> ApplyReport {
    let mut report = ApplyReport { schema_version: SCHEMA_VERSION, lab: new.name.clone(), ..ApplyReport::default() };
    // Exhaustive, so that a new field cannot pass as unchanged.
    let Live {
        folder,
        control,
        metrics,
        // Compared with the links.
        ethernet: _,
        fcip,
        stations,
        uplinks,
        fcoe,
        iscsi,
        srp,
        port_groups,
        pools,
        back_ends,
        volumes,
        media: _,
        masks: _,
        // No setting of a lab.
        registers_adapters: _,
        out_of_band,
        // Only a simulation obeys them.
        gateways: _,
    } = &new.live;
    let fixed = [
        (now.name == new.name, "the name of the lab", "a lab with another name has its own folder"),
        (now.timers == new.timers, "timers", "they are negotiated at login and between switches"),
        (
            alike(&now.switches) == alike(&new.switches),
            "switches",
            "they are created at the start, and peers have negotiated their values",
        ),
        (now.zone_policy == new.zone_policy, "limits and rules of zoning", "earlier merges depend on them"),
        (now.zone_fabrics == new.zone_fabrics, "virtual fabrics of zones", "switches were started with theirs"),
        (now.live.folder == *folder, "`[live] folder`", "it contains sockets and images in use"),
        (now.live.control == *control, "`[live] control`", "clients use it"),
        (now.live.metrics == *metrics, "`[live] metrics`", "the address is opened at the start only"),
        (now.live.stations == *stations, "`ethernet` of storage", "ports are opened at the start only"),
        (now.live.fcip == *fcip, "`fcip` of ISLs", "their TCP ports are opened at the start only"),
        (now.live.uplinks == *uplinks, "`fcoe` of hosts", "ports are opened at the start only"),
        (now.live.pools == *pools, "pools", "volumes use their extents"),
        (
            now.live.port_groups == *port_groups,
            "port groups",
            "initiators have learned them, and `sanloom port group` changes their states",
        ),
        (now.live.fcoe == *fcoe, "`fcoe` of switches", "hosts learned it when they logged in"),
        (
            now.live.iscsi == *iscsi,
            "`iscsi` of storage",
            "portals are opened at the start only, and initiators have negotiated parameters",
        ),
        (
            (&now.live.srp, &now.infiniband.targets) == (srp, &new.infiniband.targets)
                || srp.is_empty() && now.live.srp.is_empty(),
            "`srp` of storage",
            "portals are opened at the start only, and initiators have learned the request limit",
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
        (now.live.out_of_band == *out_of_band, "`out_of_band` of storage"),
        (now.faults == new.faults, "faults"),
        (now.changes == new.changes, "scheduled changes"),
        (now.expectations == new.expectations, "expectations"),
    ];
    for volume in volumes {
        match now.live.volumes.iter().find(|old| old.name == volume.name) {
            None => report.changes.push(format!("volume {} is created", volume.name)),
            Some(old) if old != volume => {
                let help = "use `sanloom volume` to extend or map it";
                report.without_effect.push(format!("volume {}: {help}", volume.name));
            }
            Some(_) => {}
        }
    }
    report.without_effect.extend(idle.iter().filter(|(same, _)| !same).map(|(_, what)| (*what).to_owned()));
    if now.hosts != new.hosts {
        report.changes.push("hosts: names in tables, and the hosts of masks".to_owned());
    }
    storage(now, new, &mut report);
    report
}

/// Back ends over iSCSI may be added to pools; everything else about pools is fixed.
fn add_back_ends(now: &[BackEnd], new: &[BackEnd], report: &mut ApplyReport) {
    let known = |back_end: &&BackEnd| now.iter().any(|old| old.name == back_end.name);
    if !new.iter().filter(known).eq(now) {
        let why = "volumes use their extents, and sessions with them begin at the start only";
        report.refused.push(format!("existing back ends: {why}; {RESTART}"));
    }
    for back_end in new.iter().filter(|back_end| !known(back_end)) {
        match back_end.target {
            BackEndTarget::Iscsi(_) => report.changes.push(format!("back end {}: its pool grows", back_end.name)),
            BackEndTarget::Fcp(_) => {
                let why = "host ports are created at the start only";
                report.refused.push(format!("back end {}: {why}; {RESTART}", back_end.name));
            }
        }
    }
}

/// Switches without the attributes that links change, such as the number of ports.
fn alike(switches: &[Switch]) -> Vec<Switch> {
    switches.iter().map(|switch| Switch { ports: 0, ..switch.clone() }).collect()
}

fn storage(now: &Lab, new: &Lab, report: &mut ApplyReport) {
    let names = |lab: &Lab| -> Vec<String> { lab.storage.iter().map(|storage| storage.name.clone()).collect() };
    if names(now) != names(new) {
        let why = "their ports have logged in with the configuration of the start";
        report.refused.push(format!("storage systems: {why}; {RESTART}"));
        return;
    }
    for (number, (old, config)) in (0..).zip(now.storage.iter().zip(&new.storage)) {
        let name = &config.name;
        let (was, is) = (now.live.medium(number), new.live.medium(number));
        let files = was.files.iter().zip(&is.files).all(|(was, is)| was == is);
        if (was.kind, was.write_back) != (is.kind, is.write_back) || !files {
            report.refused.push(format!("medium of {name}: its data would be lost; {RESTART}"));
        }
        if was.direct != is.direct && is.kind == MediumKind::File {
            report.refused.push(format!("`direct` of {name}: its files are open; {RESTART}"));
        }
        if (Storage { luns: Vec::new(), ..old.clone() }) != (Storage { luns: Vec::new(), ..config.clone() }) {
            report.refused.push(format!("{name}: initiators have logged in with its present configuration; {RESTART}"));
        }
        if config.luns.len() < old.luns.len() {
            report
                .refused
                .push(format!("LUNs of {name}: hosts may use the removed ones; mask them instead, or {RESTART}"));
        }
        for (lun, (old, new)) in old.luns.iter().zip(&config.luns).enumerate() {
            if new.block_bytes != old.block_bytes || new.blocks < old.blocks {
                report.refused.push(format!("size of {name}:lun{lun}: data would be lost; {RESTART}"));
            } else if new.blocks > old.blocks {
                let bytes = new.blocks * u64::from(new.block_bytes);
                report.changes.push(format!("{name}:lun{lun} grows to {bytes} bytes, and hosts are notified"));
            }
        }
        for lun in old.luns.len()..config.luns.len() {
            let of = if is.kind == MediumKind::File { ", in a file" } else { "" };
            report.changes.push(format!("{name}:lun{lun} is new{of}, and hosts are notified"));
        }
        if now.masking(number) != new.masking(number) {
            report.changes.push(format!("masking of {name}: initiators whose LUNs change are notified"));
        }
    }
}
