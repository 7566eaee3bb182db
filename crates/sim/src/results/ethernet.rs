//! Results of Ethernet links and switches.

use super::events::FaultText;
use super::view::View;
use crate::net::ethernet::{PRIORITIES, PacketLoss, PauseDeadlock, Station};
use crate::world::ethernet::Counts;
use sanloom_api::results::measure::{per_s, ratio, s_of_ps};
use sanloom_api::results::{EthernetDirection, EthernetLinkResult, EthernetSwitchResult};
use sanloom_fc::config::{Direction, EthernetFault, EthernetLink};
use sanloom_fc::san::Lab;

pub(super) fn links(view: &View<'_>) -> Vec<EthernetLinkResult> {
    let counts = view.world.measured().ethernet();
    let whole = Counts::read(&view.world.net);
    let one = |(number, link): (u32, &EthernetLink)| EthernetLinkResult {
        name: link.name.clone(),
        rate: link.rate.name().to_owned(),
        rate_bytes_per_s: link.rate.bytes_per_s() as f64,
        downtime_s: s_of_ps(view.world.ethernet_faults.downtimes.measured_ps(number as u16, view.now_ps)),
        forward: direction(view, [&counts, &whole], link, 2 * number),
        backward: direction(view, [&counts, &whole], link, 2 * number + 1),
    };
    (0..).zip(&view.world.lab.ethernet_links).map(one).collect()
}

/// Returns the results of a line from the counters of the measured time and of the whole run.
fn direction(view: &View<'_>, [counts, whole]: [&Counts; 2], link: &EthernetLink, number: u32) -> EthernetDirection {
    let (lab, plane) = (&view.world.lab, &view.world.net.ethernet);
    let side = (number % 2) as usize;
    let (line, own) = (&plane.lines()[number as usize], &counts.lines[number as usize]);
    let paused = own.paused_ps.map(|ps| ps.min(view.measured_ps));
    let on_line = own.count.line_bytes();
    let (headroom_bytes, headroom_max_bytes) = match line.to {
        Station::Switch { switch, port } if lab.ethernet_switches[usize::from(switch)].lossless_priorities() != 0 => {
            let memory = plane.memory(switch);
            let most = (0..PRIORITIES).map(|p| memory.group(port.into(), p).headroom_max_bytes).max();
            (lab.headroom_bytes(switch, link), most.unwrap_or(0))
        }
        Station::Switch { .. } | Station::Interface(_) => (0, 0),
    };
    let losses = counts.losses.range((number, PacketLoss::Congestion)..(number + 1, PacketLoss::Congestion));
    let drops = losses.filter(|(_, frames)| **frames > 0).map(|((_, why), frames)| (why.name().to_owned(), *frames));
    EthernetDirection {
        from: link.ends[side].name(lab),
        to: link.ends[1 - side].name(lab),
        frames: own.count.packets,
        bytes: own.count.bytes,
        throughput_bytes_per_s: per_s(own.count.bytes, view.measured_ps),
        utilisation: ratio(line.time_of(on_line).min(view.measured_ps), view.measured_ps),
        pauses: own.count.pauses,
        paused_s: line.pauses_by_name(paused).filter(|(_, ps)| *ps > 0).map(|(p, ps)| (p, s_of_ps(ps))).collect(),
        paused_fraction: ratio(paused.into_iter().max().unwrap_or(0), view.measured_ps),
        marked_frames: own.count.marked,
        queue_drops: own.count.refused,
        fcoe_queue_drops: own.count.refused_fcoe,
        queue_max_bytes: line.queue_max_bytes(),
        headroom_bytes,
        headroom_max_bytes,
        frames_lost: counts.lost(number, |_| true),
        headroom_drops: whole.lost(number, |why| why == PacketLoss::Headroom),
        drops: drops.collect(),
    }
}

pub(super) fn switches(view: &View<'_>) -> Vec<EthernetSwitchResult> {
    let (counts, plane) = (view.world.measured().ethernet(), &view.world.net.ethernet);
    let whole = Counts::read(&view.world.net);
    let one = |(number, switch): (u16, &sanloom_fc::config::EthernetSwitch)| {
        let is_own = |station: Station| matches!(station, Station::Switch { switch, .. } if switch == number);
        let memory = plane.memory(number);
        let lines = || (0..).zip(plane.lines());
        let sent =
            || lines().filter(|(_, line)| is_own(line.from)).map(|(n, _): (u32, _)| &counts.lines[n as usize].count);
        let arriving = || lines().filter(|(_, line)| is_own(line.to)).map(|(n, _)| n);
        let dropped = |why: PacketLoss| {
            matches!(
                why,
                PacketLoss::Congestion
                    | PacketLoss::Headroom
                    | PacketLoss::Vlan
                    | PacketLoss::TooLong
                    | PacketLoss::NoPath
            )
        };
        EthernetSwitchResult {
            name: switch.name.clone(),
            memory_bytes: switch.memory_bytes,
            memory_max_bytes: memory.max_bytes(),
            memory_held_bytes: memory.held_bytes(),
            pauses: sent().map(|count| count.pauses).sum(),
            marked_frames: sent().map(|count| count.marked).sum(),
            frames_dropped: arriving().map(|line| counts.lost(line, dropped)).sum(),
            headroom_drops: arriving().map(|line| whole.lost(line, |why| why == PacketLoss::Headroom)).sum(),
        }
    };
    (0..).zip(&view.world.lab.ethernet_switches).map(one).collect()
}

/// Returns the description of a fault.
pub(super) fn fault_text(lab: &Lab, fault: EthernetFault) -> FaultText {
    let of_link = |link: u16| &lab.ethernet_links[usize::from(link)];
    let end_name = |link: u16, end: u8| of_link(link).ends[usize::from(end).min(1)].name(lab);
    let on_link = |link: u16, what: String| FaultText { what, link: Some(of_link(link).name.clone()), node: None };
    // Part of the frames, and the line on which they travel.
    let share = |link: u16, direction: Direction, probability: f64| {
        let towards = match direction {
            Direction::Forward => format!(" towards {}", end_name(link, 1)),
            Direction::Backward => format!(" towards {}", end_name(link, 0)),
            Direction::Both => String::new(),
        };
        (format!("{} %", probability * 100.0), format!("{}{towards}", of_link(link).name))
    };
    match fault {
        EthernetFault::LinkDown { link } => on_link(link, format!("link {} down", of_link(link).name)),
        EthernetFault::LinkUp { link } => on_link(link, format!("link {} up", of_link(link).name)),
        EthernetFault::PortDown { link, end } => on_link(link, format!("port {} down", end_name(link, end))),
        EthernetFault::SwitchReset { switch } => {
            let name = lab.ethernet_switches[usize::from(switch)].name.clone();
            FaultText { what: format!("switch {name} reset"), link: None, node: Some(name) }
        }
        EthernetFault::FrameLoss { link, direction, probability } => {
            let (part, line) = share(link, direction, probability);
            on_link(link, format!("frame loss of {part} on {line}"))
        }
        EthernetFault::FcsErrors { link, direction, probability } => {
            let (part, line) = share(link, direction, probability);
            on_link(link, format!("FCS errors in {part} of the frames on {line}"))
        }
        EthernetFault::Reordering { link, direction, probability, delay } => {
            let (part, line) = share(link, direction, probability);
            on_link(link, format!("{part} of the frames on {line} arrive {delay} late"))
        }
        EthernetFault::PauseStorm { link, end, priorities } => {
            let all: Vec<String> = (0..8).filter(|p| priorities & 1 << p != 0).map(|p: u8| p.to_string()).collect();
            let which = if priorities == u8::MAX {
                "all priorities".to_owned()
            } else {
                format!("priorit{} {}", if all.len() == 1 { "y" } else { "ies" }, all.join(", "))
            };
            on_link(link, format!("{} pauses {which} of {}", end_name(link, end), end_name(link, 1 - end.min(1))))
        }
    }
}

/// Returns the number of circles of pauses that held since the end of the warm-up. One that grows
/// counts once.
pub(super) fn deadlocks(view: &View<'_>) -> u64 {
    standing(view).next_back().map_or(0, |last| last.cycles.len() as u64)
}

/// Returns the deadlocks of pauses that held since the end of the warm-up. One that grows is found
/// again; the last one has all of its links.
pub(super) fn standing<'v>(view: &'v View<'_>) -> impl DoubleEndedIterator<Item = &'v PauseDeadlock> + use<'v> {
    let from_ps = view.from_ps;
    view.world.net.ethernet.deadlocks().iter().filter(move |deadlock| deadlock.until_ps >= from_ps)
}
