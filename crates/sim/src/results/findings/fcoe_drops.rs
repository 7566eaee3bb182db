//! Queues and receive buffers of Ethernet that drop frames of FCoE, because their priority is not
//! lossless there.

use super::{list, with_rates};
use crate::net::{Loss, LossSite};
use crate::results::view::View;
use sanloom_api::results::{Candidate, EthernetDirection, Finding, FindingKind, HostResult, Measure, Results};
use sanloom_api::words::plural;
use sanloom_fc::config::{Node, PRIORITIES};
use sanloom_fc::san::{FcoePath, fcoe_paths, switches_below};
use std::collections::BTreeSet;

/// Largest number of switches that the candidate changes.
const MOST_CHANGED: usize = 64;

/// Returns one finding for all queues that drop frames of FCoE. Fibre Channel sends no frame again,
/// so each loss ends its command with an abort or a time-out.
pub(super) fn find(view: &View<'_>, results: &Results) -> Option<Finding> {
    let ways = || results.ethernet_links.iter().flat_map(|link| [&link.forward, &link.backward]);
    let dropping: Vec<&EthernetDirection> = ways().filter(|way| way.fcoe_queue_drops > 0).collect();
    // The first of equal queues, as for other findings.
    let worst = dropping.iter().rev().max_by_key(|way| way.fcoe_queue_drops)?;
    let frames: u64 = dropping.iter().map(|way| way.fcoe_queue_drops).sum();
    let lossy = lossy(view);
    let hosts = hosts(view, results, &lossy);
    let more = match dropping.len() {
        1 => String::new(),
        all => format!(" ({} in the queues of {})", plural(frames, "frame"), plural(all as u64, "port")),
    };
    Some(Finding {
        kind: FindingKind::CongestionLoss,
        title: format!(
            "the queue of {} dropped {} of FCoE, because its priority has no PFC",
            worst.from,
            plural(worst.fcoe_queue_drops, "frame")
        ),
        detail: format!("Fibre Channel repeats no frame{more}: {}", cost(&hosts)),
        candidates: with_pfc(view, &lossy).into_iter().collect(),
        measure: Measure::Victims,
        culprit: Some(worst.from.clone()),
        victims: with_rates(&hosts),
        ..Finding::default()
    })
}

/// Returns one finding for all ports whose receive buffers drop frames of FCoE: ports that send no
/// pauses, or whose pauses have no effect.
pub(super) fn of_receivers(view: &View<'_>, results: &Results) -> Option<Finding> {
    let lab = &view.world.lab;
    let mut dropping: Vec<(FcoePath, usize, u64)> = Vec::new();
    for path in fcoe_paths(lab).into_iter().filter(|path| path.config.fcip.is_none()) {
        for side in [0, 1] {
            // The lane that ends at this side.
            let lane = LossSite::Receiver(2 * u32::from(path.link) + 1 - side);
            let frames = view.losses.get(&(lane, Loss::FcoeBuffer)).map_or(0, |lost| lost.frames);
            if frames > 0 {
                dropping.push((path, side as usize, frames));
            }
        }
    }
    // The first of equal ports, as for other findings.
    let (path, side, most) = dropping.iter().rev().max_by_key(|(.., frames)| *frames)?;
    let port = lab.ethernet_interfaces()[usize::from(path.interfaces[*side])].end.name(lab);
    let mut lossy: Vec<FcoePath> = dropping.iter().map(|(path, ..)| *path).collect();
    lossy.dedup();
    let hosts = hosts(view, results, &lossy);
    let more = match dropping.len() {
        1 => String::new(),
        all => {
            let frames = dropping.iter().map(|(.., frames)| frames).sum::<u64>();
            format!(" ({} in the buffers of {})", plural(frames, "frame"), plural(all as u64, "port"))
        }
    };
    let reason = match path.config.pfc {
        false => format!("because {} has `pfc = false`, so it sends no pauses", lab.links[usize::from(path.link)].name),
        true => "although it pauses its sender, which does not obey or is too far away".to_owned(),
    };
    Some(Finding {
        kind: FindingKind::CongestionLoss,
        title: format!("the receive buffer of {port} dropped {} of FCoE, {reason}", plural(*most, "frame")),
        detail: format!("Fibre Channel repeats no frame{more}: {}", cost(&hosts)),
        candidates: with_pfc(view, &lossy).into_iter().collect(),
        measure: Measure::Victims,
        culprit: Some(port),
        victims: with_rates(&hosts),
        ..Finding::default()
    })
}

/// Describes the effect of lost frames on the commands of hosts.
fn cost(hosts: &[&HostResult]) -> String {
    let aborted: u64 = hosts.iter().map(|host| host.commands_aborted).sum();
    if aborted == 0 {
        return "no command of the measured time was aborted for it".to_owned();
    }
    let longest_us = hosts.iter().map(|host| host.io.latency.max_us).fold(0.0, f64::max);
    format!(
        "{} of {} were aborted and sent again, and the slowest request took {:.3} s",
        plural(aborted, "command"),
        list(&hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>()),
        longest_us / 1e6
    )
}

/// Virtual links of FCoE that have lost frames on Ethernet.
fn lossy(view: &View<'_>) -> Vec<FcoePath> {
    let is_lossy = |path: &FcoePath| {
        let lanes = [0, 1].map(|side| LossSite::Line(2 * u32::from(path.link) + side));
        path.config.fcip.is_none() && view.lost_at(&lanes).contains_key("ethernet")
    };
    fcoe_paths(&view.world.lab).into_iter().filter(is_lossy).collect()
}

/// Hosts with aborted commands: those at lossy links, or all if a link between switches loses
/// frames.
fn hosts<'r>(view: &View<'_>, results: &'r Results, lossy: &[FcoePath]) -> Vec<&'r HostResult> {
    let mut at_links = BTreeSet::new();
    for path in lossy {
        let ends = view.world.lab.links[usize::from(path.link)].ends.map(|end| end.node);
        let host = ends.into_iter().find_map(|node| if let Node::Host(host) = node { Some(host) } else { None });
        at_links.insert(host);
    }
    let everywhere = at_links.contains(&None);
    let is_hit = |(number, host): &(u16, &HostResult)| {
        host.commands_aborted > 0 && (everywhere || at_links.contains(&Some(*number)))
    };
    (0..).zip(&results.hosts).filter(is_hit).map(|(_, host)| host).collect()
}

/// Returns the change to PFC at the switches on the ways of the lossy links that do not keep their
/// priorities lossless, and at the adapters of the links.
fn with_pfc(view: &View<'_>, lossy: &[FcoePath]) -> Option<Candidate> {
    let lab = &view.world.lab;
    let needed = lossy.iter().fold(0_u8, |mask, path| mask | 1 << path.config.priority);
    let on_ways = switches_below(lab, lossy).into_iter().map(|switch| &lab.ethernet_switches[usize::from(switch)]);
    let lacking = on_ways.filter(|switch| needed & !switch.lossless_priorities() != 0);
    let numbers = |mask: u8| -> Vec<String> {
        (0..PRIORITIES).filter(|priority| mask & 1 << priority != 0).map(|priority| priority.to_string()).collect()
    };
    let mut set: Vec<(String, String)> = lacking
        .map(|switch| {
            let all = numbers(switch.lossless_priorities() | needed);
            let value = if let [one] = &all[..] { one.clone() } else { format!("[{}]", all.join(", ")) };
            (format!("ethernet_switch.{}.pfc", switch.name), value)
        })
        .collect();
    for path in lossy.iter().filter(|path| !path.config.pfc) {
        set.push((format!("link.{}.ethernet.pfc", lab.links[usize::from(path.link)].name), "true".to_owned()));
    }
    let what = format!("PFC for priority {}, which FCoE uses", numbers(needed).join(" and "));
    (!set.is_empty() && set.len() <= MOST_CHANGED).then_some(Candidate { what, set })
}
