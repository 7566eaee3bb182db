//! Faults of all kinds and combinations.

use super::Dice;
use sanloom_fc::config::{Direction, Fault, FaultKind, Picos};
use sanloom_fc::san::Lab;
use std::collections::BTreeSet;

#[derive(Clone, Copy)]
enum Kind {
    LinkDown,
    LinkUp,
    PortDown,
    SwitchReset,
    FrameLoss,
    CrcErrors,
    SlowReceiver,
    WithheldCredits,
    LostRRdy,
}

pub(super) fn draw(dice: &mut Dice, lab: &mut Lab) {
    let kinds = dice.swarm(&[
        Kind::LinkDown,
        Kind::LinkUp,
        Kind::PortDown,
        Kind::SwitchReset,
        Kind::FrameLoss,
        Kind::CrcErrors,
        Kind::SlowReceiver,
        Kind::WithheldCredits,
        Kind::LostRRdy,
    ]);
    let many = if dice.chance(1, 8) { 0 } else { dice.spread(1, 12) };
    let duration = lab.run.duration.0;
    // In a third of the labs, all faults affect the same link, so that they interact.
    let focus = dice.chance(1, 3).then(|| dice.index(lab.links.len()) as u16);
    for _ in 0..many {
        let link = focus.unwrap_or(dice.index(lab.links.len()) as u16);
        let end = dice.range(0, 1) as u8;
        let direction = dice.pick(&[Direction::Forward, Direction::Backward, Direction::Both]);
        let probability = dice.pick(&[0.001, 0.01, 0.1, 0.5, 1.0]);
        let kind = match dice.weighted(&kinds) {
            Kind::LinkDown => FaultKind::LinkDown { link },
            Kind::LinkUp => FaultKind::LinkUp { link },
            Kind::PortDown => FaultKind::PortDown { link, end },
            Kind::SwitchReset => FaultKind::SwitchReset { switch: dice.index(lab.switches.len()) as u16 },
            Kind::FrameLoss => FaultKind::FrameLoss { link, direction, probability },
            Kind::CrcErrors => FaultKind::CrcErrors { link, direction, probability },
            Kind::SlowReceiver => FaultKind::SlowReceiver { link, end, delay: Picos::from_us(dice.spread(1, 5_000)) },
            Kind::WithheldCredits => FaultKind::WithheldCredits { link, end },
            Kind::LostRRdy => FaultKind::LostRRdy { link, end, probability },
        };
        let at = Picos(dice.range(0, duration * 3 / 4));
        if let FaultKind::LinkUp { link } = kind {
            let down = Picos(dice.range(0, at.0));
            lab.faults.push(Fault { at: down, until: None, kind: FaultKind::LinkDown { link } });
        }
        let ends = !matches!(kind, FaultKind::LinkUp { .. }) && dice.chance(3, 4);
        let until = ends.then(|| Picos(dice.range(at.0 + 1, duration)));
        lab.faults.push(Fault { at, until, kind });
    }
    lab.faults.sort_by_key(|fault| fault.at);
    drop_idle_link_ups(lab);
}

/// Removes each `LinkUp` fault without an earlier permanent `LinkDown` of its link.
fn drop_idle_link_ups(lab: &mut Lab) {
    let mut down = BTreeSet::new();
    lab.faults.retain(|fault| match fault.kind {
        FaultKind::LinkDown { link } | FaultKind::PortDown { link, .. } => {
            if fault.until.is_none() {
                down.insert(link);
            }
            true
        }
        FaultKind::LinkUp { link } => down.remove(&link),
        _ => true,
    });
}
