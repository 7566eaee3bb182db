//! The event list of the results, and the scheduled faults.

use super::view::View;
use crate::host::PathState;
use crate::net::{Incident, StandingDeadlock};
use crate::world::{Disks, Note, NoteKind};
use sanloom_api::results::measure::s_of_ps;
use sanloom_api::results::{Event, EventKind, FaultEvent};
use sanloom_api::words::plural;
use sanloom_fc::config::{Direction, Fault, FaultKind, Node, OutOfBandFault};
use sanloom_fc::zoning::ZoneEdit;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Limit on the events in a report.
const MAX_EVENTS: usize = 1_000;
/// Time within which events of one kind and subject are merged into one, in ps.
const JOIN_PS: u64 = 10_000_000_000;

/// Description of a fault and of its target.
pub(super) struct FaultText {
    pub what: String,
    pub link: Option<String>,
    pub node: Option<String>,
}

impl FaultText {
    /// Returns the target of the fault.
    pub fn subject(&self) -> Option<String> {
        self.link.clone().or_else(|| self.node.clone())
    }
}

/// Returns the description of a change of out-of-band virtualization, or of a fault of its network.
fn out_of_band(view: &View<'_>, fault: OutOfBandFault) -> FaultText {
    let live = &view.world.lab.live;
    match fault {
        OutOfBandFault::VolumeMove { volume, to } => {
            let (volume, to) = (&live.volumes[usize::from(volume)], &live.back_ends[usize::from(to)]);
            let node = volume.storage.map(|(storage, _)| view.names.node(Node::Storage(storage)).to_owned());
            FaultText { what: format!("{} moves to {}", volume.name, to.name), link: None, node }
        }
        OutOfBandFault::MetadataCut { host } => {
            let name = view.names.node(Node::Host(host)).to_owned();
            FaultText { what: format!("{name} is cut off from its metadata servers"), link: None, node: Some(name) }
        }
    }
}

pub(super) fn fault_text(view: &View<'_>, fault: &Fault) -> FaultText {
    let link_name = |link: u16| view.world.lab.links[usize::from(link)].name.clone();
    let end_name = |link: u16, end: u8| {
        let ends = &view.world.lab.links[usize::from(link)].ends;
        view.names.port(&ends[usize::from(end).min(1)])
    };
    let towards = |link: u16, direction: Direction| match direction {
        Direction::Forward => format!(" towards {}", end_name(link, 1)),
        Direction::Backward => format!(" towards {}", end_name(link, 0)),
        Direction::Both => String::new(),
    };
    let percent = |probability: f64| format!("{} %", probability * 100.0);
    let on_link = |link: u16, what: String| FaultText { what, link: Some(link_name(link)), node: None };
    match fault.kind {
        FaultKind::LinkDown { link } => on_link(link, format!("link {} down", link_name(link))),
        FaultKind::LinkUp { link } => on_link(link, format!("link {} up", link_name(link))),
        FaultKind::PortDown { link, end } => on_link(link, format!("port {} down", end_name(link, end))),
        FaultKind::SwitchReset { switch } => {
            let name = view.names.node(Node::Switch(switch)).to_owned();
            FaultText { what: format!("switch {name} reset"), link: None, node: Some(name) }
        }
        FaultKind::FrameLoss { link, direction, probability } => on_link(
            link,
            format!("frame loss of {} on {}{}", percent(probability), link_name(link), towards(link, direction)),
        ),
        FaultKind::CrcErrors { link, direction, probability } => on_link(
            link,
            format!(
                "CRC errors in {} of the frames on {}{}",
                percent(probability),
                link_name(link),
                towards(link, direction)
            ),
        ),
        FaultKind::SlowReceiver { link, end, delay } => {
            on_link(link, format!("slow receiver {}: {delay} more for each R_RDY", end_name(link, end)))
        }
        FaultKind::WithheldCredits { link, end } => on_link(link, format!("{} withholds credits", end_name(link, end))),
        FaultKind::LostRRdy { link, end, probability } => {
            on_link(link, format!("{} of the R_RDYs of {} are lost", percent(probability), end_name(link, end)))
        }
        FaultKind::VmMove { host, to } => {
            let (name, to) = (view.names.node(Node::Host(host)).to_owned(), view.names.node(Node::Host(to)));
            FaultText { what: format!("virtual machine {name} moves to {to}"), link: None, node: Some(name) }
        }
        FaultKind::VmStop { host } => {
            let name = view.names.node(Node::Host(host)).to_owned();
            FaultText { what: format!("virtual machine {name} stops"), link: None, node: Some(name) }
        }
        FaultKind::DuplicateName { host, of } => {
            let (name, of) = (view.names.node(Node::Host(host)).to_owned(), view.names.node(Node::Host(of)));
            FaultText {
                what: format!("virtual machine {name} uses the port names of {of}"),
                link: None,
                node: Some(name),
            }
        }
        FaultKind::ForeignAddress { host, of } => {
            let (name, of) = (view.names.node(Node::Host(host)).to_owned(), view.names.node(Node::Host(of)));
            FaultText { what: format!("{name} sends with the addresses of {of}"), link: None, node: Some(name) }
        }
        FaultKind::DiskFailure { storage, lun, member } => {
            let name = view.names.node(Node::Storage(storage)).to_owned();
            FaultText { what: format!("disk {member} of {name}:lun{lun} fails"), link: None, node: Some(name) }
        }
        FaultKind::LatentError { storage, lun, member, block } => {
            let name = view.names.node(Node::Storage(storage)).to_owned();
            let what = format!("block {block} of disk {member} of {name}:lun{lun} becomes unreadable");
            FaultText { what, link: None, node: Some(name) }
        }
        FaultKind::PowerFailure { storage } => {
            let name = view.names.node(Node::Storage(storage)).to_owned();
            FaultText { what: format!("power failure of {name}"), link: None, node: Some(name) }
        }
        FaultKind::ControllerFailure { storage, controller } => {
            let name = view.names.node(Node::Storage(storage)).to_owned();
            FaultText { what: format!("controller {controller} of {name} fails"), link: None, node: Some(name) }
        }
        FaultKind::CacheBattery { storage } => {
            let name = view.names.node(Node::Storage(storage)).to_owned();
            FaultText { what: format!("battery of the cache of {name} fails"), link: None, node: Some(name) }
        }
        FaultKind::OutOfBand(fault) => out_of_band(view, fault),
        FaultKind::Ethernet(fault) => super::ethernet::fault_text(&view.world.lab, fault),
        FaultKind::Infiniband(fault) => super::infiniband::fault_text(&view.world.lab, fault),
    }
}

/// Returns the faults of the lab.
pub(super) fn faults(view: &View<'_>) -> Vec<FaultEvent> {
    let faults = view.world.lab.faults.iter();
    faults
        .map(|fault| {
            let text = fault_text(view, fault);
            FaultEvent {
                at_s: s_of_ps(fault.at.0),
                until_s: fault.until.map(|until| s_of_ps(until.0)),
                what: text.what,
                link: text.link,
                node: text.node,
            }
        })
        .collect()
}

/// A credit deadlock of Fibre Channel.
pub(super) struct Deadlock<'v> {
    /// Time of detection; if it stands, the time since which the last of its lanes has waited.
    pub at_ps: u64,
    /// True if it holds at the end of the run.
    pub stands: bool,
    /// Lanes, each of which waits for the next one.
    pub cycle: Cow<'v, [u32]>,
}

/// Returns the credit deadlocks that held after the end of the warm-up, or hold now.
pub(super) fn deadlocks<'v>(view: &'v View<'_>) -> Vec<Deadlock<'v>> {
    let fc = &view.world.net.fc;
    let detected = fc.recorder.incidents().iter().filter_map(|incident| match incident {
        Incident::Deadlock { at_ps, until_ps, cycle } if *until_ps >= view.from_ps => {
            Some(Deadlock { at_ps: *at_ps, stands: false, cycle: Cow::Borrowed(&cycle[..]) })
        }
        _ => None,
    });
    let mut found: Vec<Deadlock<'v>> = detected.collect();
    if let Some(StandingDeadlock { since_ps, cycle }) = StandingDeadlock::find(fc, view.now_ps) {
        match found.iter_mut().find(|deadlock| deadlock.cycle[..] == cycle) {
            Some(known) => known.stands = true,
            None => found.push(Deadlock { at_ps: since_ps, stands: true, cycle: Cow::Owned(cycle) }),
        }
    }
    found
}

struct Item {
    at_ps: u64,
    kind: EventKind,
    subject: Option<String>,
    what: String,
    /// Count and its unit, which are added up when events of the same kind and subject are merged.
    counted: Option<(u64, &'static str)>,
}

/// Returns all reportable events in the order of time.
pub(super) fn events(view: &View<'_>) -> Vec<Event> {
    let mut items = Vec::new();
    of_faults(view, &mut items);
    of_notes(view, &mut items);
    of_incidents(view, &mut items);
    of_stalls(view, &mut items);
    of_losses(view, &mut items);
    items.sort_by_key(|item| item.at_ps);
    let items = join(items);
    let more = items.len().saturating_sub(MAX_EVENTS) as u64 + view.world.notes.omitted();
    let start_ps = view.world.start_ps;
    let mut events: Vec<Event> = items
        .into_iter()
        .take(MAX_EVENTS)
        .map(|item| Event {
            at_s: s_of_ps(item.at_ps.saturating_sub(start_ps)),
            kind: item.kind,
            what: match item.counted {
                Some((1, _)) | None => item.what,
                Some((count, unit)) => format!("{} ({count} {unit})", item.what),
            },
            subject: item.subject,
        })
        .collect();
    if let Some(last) = events.last_mut()
        && more > 0
    {
        last.what.push_str(&format!("; {} left out", plural(more, "more event")));
    }
    events
}

fn join(items: Vec<Item>) -> Vec<Item> {
    let mut joined: Vec<Item> = Vec::with_capacity(items.len());
    let mut last: BTreeMap<(EventKind, Option<String>, String), (usize, u64)> = BTreeMap::new();
    for item in items {
        let Some((count, _)) = item.counted else {
            joined.push(item);
            continue;
        };
        let key = (item.kind, item.subject.clone(), item.what.clone());
        let at_ps = item.at_ps;
        match last.get_mut(&key) {
            Some((index, latest)) if at_ps - *latest <= JOIN_PS => {
                *latest = at_ps;
                if let Some((sum, _)) = &mut joined[*index].counted {
                    *sum += count;
                }
            }
            _ => {
                last.insert(key, (joined.len(), at_ps));
                joined.push(item);
            }
        }
    }
    joined
}

fn of_faults(view: &View<'_>, items: &mut Vec<Item>) {
    let start_ps = view.world.start_ps;
    for fault in &view.world.lab.faults {
        let text = fault_text(view, fault);
        let subject = text.subject();
        let mut add = |at: u64, kind, what: String| {
            if start_ps + at <= view.now_ps {
                items.push(Item { at_ps: start_ps + at, kind, subject: subject.clone(), what, counted: None });
            }
        };
        add(fault.at.0, EventKind::FaultBegins, text.what.clone());
        if let Some(until) = fault.until {
            add(until.0, EventKind::FaultEnds, format!("end of: {}", text.what));
        }
    }
}

fn of_notes(view: &View<'_>, items: &mut Vec<Item>) {
    let world = view.world;
    let host_name = |host: u16| view.names.node(Node::Host(host)).to_owned();
    let storage_name = |storage: u16| view.names.node(Node::Storage(storage)).to_owned();
    // Usable paths by host and storage system. Initially, all paths that were up when the workloads
    // started.
    let mut usable: BTreeMap<(u16, u16), BTreeMap<u16, bool>> = BTreeMap::new();
    // Ports isolated while the fabric formed are reported, although they precede the workloads.
    let is_reported = |note: &&Note| note.at_ps >= world.start_ps || matches!(note.kind, NoteKind::Isolated { .. });
    for note in world.notes.list().iter().filter(is_reported) {
        let mut add = |kind, subject: String, what: String, counted| {
            items.push(Item { at_ps: note.at_ps, kind, subject: Some(subject), what, counted });
        };
        match note.kind {
            NoteKind::Path { host, storage, path, from, to } => {
                let name = view.names.path(host, storage, path);
                let subject = format!("{} {name}", host_name(host));
                let usable_state = |state| state == PathState::Active;
                let kind = match to {
                    PathState::Active => EventKind::PathRestored,
                    _ => EventKind::PathFailover,
                };
                let what = match to {
                    PathState::Active => "path is back in use",
                    PathState::Suspect => "path failed a command or its test, and is tested until it answers",
                    PathState::Blocked => "remote port of the path was lost",
                    PathState::Failed => "path failed; its commands move to other paths",
                    PathState::Gone => "remote port of the path was removed after dev_loss",
                };
                add(kind, subject, what.to_owned(), None);
                let paths = usable.entry((host, storage)).or_insert_with(|| paths_up(view, host, storage));
                paths.insert(path, usable_state(from));
                let before = paths.values().any(|&up| up);
                paths.insert(path, usable_state(to));
                if before && !paths.values().any(|&up| up) {
                    let what = format!("{} has no path left to {}", host_name(host), storage_name(storage));
                    add(EventKind::PathsLost, host_name(host), what, None);
                }
            }
            NoteKind::Link { link, up }
            | NoteKind::EthernetLink { link, up }
            | NoteKind::InfinibandLink { link, up } => {
                let lab = &world.lab;
                let name = match note.kind {
                    NoteKind::EthernetLink { .. } => &lab.ethernet_links[usize::from(link)].name,
                    NoteKind::InfinibandLink { .. } => &lab.infiniband.links[usize::from(link)].name,
                    _ => &lab.links[usize::from(link)].name,
                };
                let name = name.clone();
                let (kind, word) = if up { (EventKind::LinkUp, "up") } else { (EventKind::LinkDown, "down") };
                let what = format!("link {name} went {word}");
                add(kind, name, what, None);
            }
            NoteKind::Switch { switch, up } => {
                let name = view.names.node(Node::Switch(switch)).to_owned();
                let (kind, what) = match up {
                    true => (EventKind::SwitchUp, format!("switch {name} runs again")),
                    false => (EventKind::SwitchDown, format!("switch {name} stopped")),
                };
                add(kind, name, what, None);
            }
            NoteKind::Aborted { host, storage, path } => {
                let subject = format!("{} {}", host_name(host), view.names.path(host, storage, path));
                add(EventKind::CommandAborted, subject, "command aborted".to_owned(), Some((1, "commands")));
            }
            NoteKind::Failed { host } => {
                let what = "request failed permanently".to_owned();
                add(EventKind::IoFailed, host_name(host), what, Some((1, "requests")));
            }
            NoteKind::Isolated { switch, port, ref reason } => {
                let subject = format!("{}:{port}", view.names.node(Node::Switch(switch)));
                add(EventKind::Isolated, subject, format!("port isolated: {reason}"), None);
            }
            NoteKind::Quarantine { switch, port, starts } => {
                let subject = format!("{}:{port}", view.names.node(Node::Switch(switch)));
                let what = match starts {
                    true => "slow devices: their frames use the channels of low priority",
                    false => "the devices are no longer slow: the quarantine ends",
                };
                add(EventKind::Quarantine, subject, what.to_owned(), None);
            }
            NoteKind::Takeover { storage, home, owner } => {
                let name = storage_name(storage);
                let what = match home == owner {
                    true => format!("controller {owner} of {name} serves its own LUNs again"),
                    false => format!("controller {owner} of {name} serves the LUNs of controller {home}"),
                };
                add(EventKind::Takeover, name, what, None);
            }
            NoteKind::ZonesChanged { switch, change, ref failure } => {
                let name = view.names.node(Node::Switch(switch)).to_owned();
                let what = match failure {
                    None => format!("zones changed: {}", edits_text(&world.lab.changes[usize::from(change)].edits)),
                    Some(failure) => format!("change of the zones failed: {failure}"),
                };
                add(EventKind::ZoneChange, name, what, None);
            }
            NoteKind::Reroute => {
                let what = "links between switches changed, and with them the routes".to_owned();
                items.push(Item {
                    at_ps: note.at_ps,
                    kind: EventKind::Reroute,
                    subject: None,
                    what,
                    counted: Some((1, "times")),
                });
            }
        }
    }
}

/// Lost data of storage systems.
fn of_losses(view: &View<'_>, items: &mut Vec<Item>) {
    for (storage, system) in (0..).zip(&view.world.storage.systems) {
        let Some(losses) = system.controller.disks().map(Disks::losses) else { continue };
        let name = view.names.node(Node::Storage(storage));
        for loss in losses.requests() {
            let subject = format!("{name}:lun{}", loss.lun);
            let what = format!("{} of {subject} {}", if loss.write { "writes" } else { "reads" }, loss.reason.words());
            let counted = Some((1, "requests"));
            items.push(Item { at_ps: loss.at_ps, kind: EventKind::DataLoss, subject: Some(subject), what, counted });
        }
        for outage in losses.outages() {
            let mut parts = Vec::new();
            if outage.of_controller {
                let blocks = plural(outage.lost_blocks, "acknowledged block");
                parts.push(format!("{blocks} lost in the cache of a controller of {name}, which had no copy"));
            } else {
                parts.push(format!("{} ended with the power of {name}", plural(outage.commands, "command")));
            }
            if outage.lost_blocks > 0 && !outage.of_controller {
                parts.push(format!("{} in volatile caches lost", plural(outage.lost_blocks, "acknowledged block")));
            }
            if outage.resync_stripes > 0 {
                parts.push(format!("{} to synchronise", plural(outage.resync_stripes, "stripe")));
            }
            if outage.damaged_stripes > 0 {
                let stripes = plural(outage.damaged_stripes, "stripe");
                parts.push(format!("data of {stripes} may be wrong (write hole)"));
            }
            let is_loss = outage.lost_blocks + outage.damaged_stripes > 0;
            let kind = if is_loss { EventKind::DataLoss } else { EventKind::CommandAborted };
            let (subject, what) = (Some(name.to_owned()), parts.join("; "));
            items.push(Item { at_ps: outage.at_ps, kind, subject, what, counted: None });
        }
    }
}

/// Returns a short description of a change of the zones.
fn edits_text(edits: &[ZoneEdit]) -> String {
    // Creating or deleting a zone also adds it to configurations or removes it, so these edits are
    // omitted.
    let of_config = |edit: &&ZoneEdit| {
        matches!(edit, ZoneEdit::AddToConfig { .. } | ZoneEdit::RemoveFromConfig { .. } | ZoneEdit::Enable(_))
    };
    let follows = edits.iter().any(|edit| !of_config(&edit));
    let texts: Vec<String> = edits
        .iter()
        .filter(|edit| !follows || !of_config(edit))
        .filter_map(|edit| {
            Some(match edit {
                ZoneEdit::CreateAlias { name, .. } => format!("new alias {name}"),
                ZoneEdit::CreateZone { name, .. } => format!("new zone {name}"),
                ZoneEdit::CreateConfig { name, .. } => format!("new configuration {name}"),
                ZoneEdit::Delete { kind, name } => format!("{kind} {name} deleted"),
                ZoneEdit::Rename { kind, from, to } => format!("{kind} {from} renamed to {to}"),
                ZoneEdit::AddToAlias { name, .. } => format!("members added to alias {name}"),
                ZoneEdit::RemoveFromAlias { name, .. } => format!("members removed from alias {name}"),
                ZoneEdit::AddToZone { name, .. } => format!("members added to zone {name}"),
                ZoneEdit::RemoveFromZone { name, .. } => format!("members removed from zone {name}"),
                ZoneEdit::AddToConfig { name, .. } => format!("zones added to configuration {name}"),
                ZoneEdit::RemoveFromConfig { name, .. } => format!("zones removed from configuration {name}"),
                ZoneEdit::ReplaceAlias { name, .. } => format!("members of alias {name} replaced"),
                ZoneEdit::ReplaceZone { name, .. } => format!("members of zone {name} replaced"),
                ZoneEdit::ReplaceConfig { name, .. } => format!("zones of configuration {name} replaced"),
                ZoneEdit::ReplaceAll(_) => "all definitions replaced".to_owned(),
                ZoneEdit::Expunge { kind, name } => format!("{kind} {name} deleted with all references"),
                ZoneEdit::Clear => "all definitions deleted".to_owned(),
                ZoneEdit::SetDefault(default) => format!("default zone {default}"),
                ZoneEdit::Disable => "no effective configuration".to_owned(),
                ZoneEdit::Enable(_) => return None,
            })
        })
        .collect();
    match texts.is_empty() {
        true => "effective configuration enabled again".to_owned(),
        false => super::findings::list(&texts),
    }
}

/// Returns the paths that have ever been up. The first note about a path gives its state before the
/// note.
fn paths_up(view: &View<'_>, host: u16, storage: u16) -> BTreeMap<u16, bool> {
    let systems = view.world.hosts.nodes[usize::from(host)].paths.systems().iter();
    let mut found = BTreeMap::new();
    for system in systems.filter(|system| system.storage == storage) {
        found.extend((0..).zip(system.paths()).map(|(number, path)| (number, path.was_up)));
    }
    found
}

fn of_incidents(view: &View<'_>, items: &mut Vec<Item>) {
    for incident in view.world.net.fc.recorder.incidents() {
        let (at_ps, kind, subject, what, counted) = match incident {
            Incident::LinkReset { at_ps, lane } => {
                let from = view.names.port(view.names.from(*lane));
                let what = format!("{from} had no credit for E_D_TOV; the link was reset");
                (*at_ps, EventKind::LinkReset, view.names.link(*lane).to_owned(), what, None)
            }
            Incident::HoldTime { at_ps, switch, port, frames } => {
                let subject = format!("{}:{port}", view.names.node(Node::Switch(*switch)));
                let what = "frames that had waited for the hold time were discarded".to_owned();
                (*at_ps, EventKind::FramesDiscarded, subject, what, Some((u64::from(*frames), "frames")))
            }
            Incident::Deadlock { at_ps, cycle, .. } => {
                let ports: Vec<String> = cycle.iter().map(|&lane| view.names.port(view.names.from(lane))).collect();
                let what = format!("ports wait for each other's credit in a circle: {}", ports.join(", "));
                let subject = cycle.first().map_or_else(String::new, |&lane| view.names.link(lane).to_owned());
                (*at_ps, EventKind::Deadlock, subject, what, None)
            }
        };
        items.push(Item { at_ps, kind, subject: Some(subject), what, counted });
    }
}

fn of_stalls(view: &View<'_>, items: &mut Vec<Item>) {
    for (host, config) in view.world.hosts.nodes.iter().zip(&view.world.lab.hosts) {
        let (length_ps, began_ps) = super::hosts::longest_stall(host, view.now_ps);
        if length_ps >= super::findings::stall_threshold_ps(host) {
            let what = format!("no request of {} ended for {:.3} s", config.name, s_of_ps(length_ps));
            let subject = Some(config.name.clone());
            items.push(Item { at_ps: began_ps, kind: EventKind::Stall, subject, what, counted: None });
        }
    }
}
