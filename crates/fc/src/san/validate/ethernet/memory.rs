//! Validation of the memory of Ethernet switches: reserves, headroom, and room for queues.

use super::super::Problems;
use super::switch_place;
use crate::config::{EthernetNode, EthernetSwitch, FRAME_OVERHEAD_BYTES, Host};
use crate::san::{Lab, ProblemKind};

/// Longest frames that the queue of a port holds at least without a warning.
const FEW_FRAMES: u64 = 4;

/// Checks that the memory of a switch holds its reserves and headroom, and a frame.
pub(super) fn validate(lab: &Lab, number: u16, switch: &EthernetSwitch, problems: &mut Problems) {
    let place = switch_place(number);
    let classes = u64::from(switch.lossless_groups());
    let (needed, last) = set_aside(lab, number, switch);
    if needed > switch.memory_bytes {
        let (groups, or) = match (switch.pauses_links, classes) {
            (true, _) => ("the pause of whole links".to_owned(), " or `headroom`"),
            (false, 1) => ("1 lossless priority".to_owned(), ", `headroom` or the list `pfc`"),
            (false, _) => (format!("{classes} lossless priorities"), ", `headroom` or the list `pfc`"),
        };
        problems.add(
            ProblemKind::BadSize,
            place.key("memory"),
            format!(
                "reserves and headroom of {groups} at {last} ports need {needed} bytes, the memory has {}",
                switch.memory_bytes
            ),
            format!("make `memory` larger than {needed} bytes, or `reserve`{or} smaller"),
        );
    } else if let Some((room, frame)) = lossy_room(lab, number, switch, needed)
        && room < frame
    {
        problems.add(
            ProblemKind::BadSize,
            place.key("memory"),
            format!(
                "{room} bytes are left for a queue without PFC, but a frame takes up to {frame}: it is always dropped"
            ),
            "make `memory` or `lossy_alpha` larger, or `mtu` smaller",
        );
    }
}

/// Returns the room in an empty switch for the queue of a priority that is not lossless, and the
/// memory of the longest frame, in bytes. `set_aside`: reserves and headroom. `None` if all traffic
/// is lossless.
fn lossy_room(lab: &Lab, number: u16, switch: &EthernetSwitch, set_aside: u64) -> Option<(u64, u64)> {
    let (ethernet, lossless) = (lab.iscsi_paths(), switch.lossless_priorities());
    let is_lossy = |(host, config): (u16, &Host)| {
        let is_linked = !ethernet.interfaces_of(EthernetNode::Host(host)).is_empty();
        is_linked && lossless & 1 << (config.iscsi.priority.unwrap_or(0) & 7) == 0
    };
    let has_ports = lab.ethernet_links.iter().any(|link| link.switches().any(|(_, own)| own == number));
    if !has_ports || (lossless != 0 && !(0..).zip(&lab.hosts).any(is_lossy)) {
        return None;
    }
    let pool = switch.memory_bytes.saturating_sub(set_aside);
    let room = pool.min(pool.saturating_mul(u64::from(switch.lossy_alpha_256)) / 256);
    let cell = u64::from(switch.cell_bytes.max(1));
    let frame = (u64::from(lab.largest_mtu(number)) + u64::from(FRAME_OVERHEAD_BYTES)).div_ceil(cell) * cell;
    Some((room, frame))
}

/// Returns reserves and headroom of a switch, in bytes, and the number of its ports.
fn set_aside(lab: &Lab, number: u16, switch: &EthernetSwitch) -> (u64, u64) {
    let ports = lab.ethernet_links.iter().flat_map(|link| link.ends.iter().map(move |end| (link, end)));
    let own = ports.filter(|(_, end)| end.node == EthernetNode::Switch(number));
    let (headrooms, last) = own.fold((0, 0), |(sum, last), (link, end)| {
        (sum + lab.headroom_bytes(number, link), last.max(u64::from(end.port) + 1))
    });
    (u64::from(switch.lossless_groups()) * (headrooms + last * switch.reserve_bytes), last)
}

/// Memory that holds few frames of a priority without PFC.
pub(super) fn few_frames(lab: &Lab, problems: &mut Problems) {
    for (number, switch) in (0..).zip(&lab.ethernet_switches) {
        let (set_aside, _) = set_aside(lab, number, switch);
        let Some((room, frame)) = lossy_room(lab, number, switch, set_aside) else { continue };
        // Less than one frame is an error.
        if room >= frame && room < FEW_FRAMES * frame {
            problems.add(
                ProblemKind::SmallMemory,
                switch_place(number).key("memory"),
                format!(
                    "a queue without PFC of `{}` has room for {room} bytes, which is {} of the longest frames",
                    switch.name,
                    room / frame
                ),
                format!("make `memory` or `lossy_alpha` larger: {FEW_FRAMES} frames need {} bytes", FEW_FRAMES * frame),
            );
        }
    }
}

/// Headroom that does not cover what arrives after a pause.
pub(super) fn headroom(lab: &Lab, problems: &mut Problems) {
    for link in &lab.ethernet_links {
        for (_, switch) in link.switches() {
            let Some(config) = lab.ethernet_switches.get(usize::from(switch)).filter(|s| s.lossless_priorities() != 0)
            else {
                continue;
            };
            let (given, needed) = (lab.headroom_bytes(switch, link), lab.headroom_needed(switch, link));
            if given >= needed {
                continue;
            }
            let metres = link.propagation.0 / 5_000;
            problems.add(
                ProblemKind::SmallHeadroom,
                switch_place(switch).key("headroom"),
                format!(
                    "the headroom of {given} bytes of `{}` is too small for `{}`: {} over {metres} m with frames of {} bytes and a reaction of {} need {needed}",
                    config.name,
                    link.name,
                    link.rate,
                    lab.largest_mtu(switch) + FRAME_OVERHEAD_BYTES,
                    link.reaction(),
                ),
                format!("set `headroom = \"{needed}B\"`, or leave it out; frames of lossless priorities are lost otherwise"),
            );
        }
    }
}
