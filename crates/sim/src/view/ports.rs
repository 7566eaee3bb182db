//! The port table.

use crate::net::{Loss, LossSite};
use crate::world::{World, operator};
use sanloom_api::view::build::{Shown, blocked, isolated, port_name};
use sanloom_api::view::{Dark, PortErrors, PortMode, PortRow, PortsView};
use sanloom_fc::config::{Link, Node};
use sanloom_fc::fabric::PortMode as Mode;
use std::collections::BTreeMap;

pub(super) fn ports(world: &World, shown: &Shown<'_>) -> PortsView {
    let mut rows: Vec<(u16, u16, PortRow)> = Vec::new();
    for (link, number) in world.lab.links.iter().zip(0u32..) {
        for side in 0..2u32 {
            let end = &link.ends[side as usize];
            if let Node::Switch(switch) = end.node
                && shown.on.is_none_or(|on| on == switch)
            {
                rows.push((switch, end.port, row(world, shown, link, (number, side), switch)));
            }
        }
    }
    rows.sort_by_key(|(switch, port, _)| (*switch, *port));
    PortsView { ports: rows.into_iter().map(|(.., row)| row).collect() }
}

fn row(world: &World, shown: &Shown<'_>, link: &Link, (number, side): (u32, u32), switch: u16) -> PortRow {
    let (net, node) = (&world.net, &world.control.switches[usize::from(switch)]);
    let end = &link.ends[side as usize];
    // Lane 2n + side leaves from the end `side` of link n.
    let (tx, rx) = (2 * number + side, 2 * number + 1 - side);
    let lane = &net.fc.lanes()[tx as usize];
    let mut discards = BTreeMap::new();
    for (&(site, reason), lost) in net.fc.recorder.losses() {
        if site == LossSite::Receiver(rx) {
            *discards.entry(reason.name().to_owned()).or_default() += lost.frames;
        }
    }
    let dark = operator::state(world).and_then(|operator| match () {
        () if operator.is_disabled(switch, end.port) => Some(Dark::Disabled),
        () if operator.is_switch_disabled(switch) => Some(Dark::SwitchDisabled),
        () => None,
    });
    // A running fabric does not restart its counters at the end of the warm-up.
    let measured = world.measured();
    let received = if operator::state(world).is_some() { measured.all_received(rx) } else { measured.received(rx) };
    PortRow {
        port: shown.port(end),
        number: end.port.into(),
        port_name: port_name(&node.machine, end.port),
        mode: match node.machine.port_mode(end.port) {
            Mode::F => PortMode::F,
            Mode::E => PortMode::E,
            Mode::Isolated => PortMode::Isolated,
            Mode::Down => PortMode::Down,
        },
        light: lane.up,
        dark,
        isolated: isolated(&node.machine, end.port),
        blocked: blocked(&node.machine, end.port),
        rate: shown.rate(number as usize).to_owned(),
        link: link.name.clone(),
        attached: shown.port(&link.ends[1 - side as usize]),
        logins: node.machine.logins().filter(|(_, port)| *port == end.port).count() as u32,
        credits: [lane.credits_at(net.now()), lane.bb_credit],
        channels: net.fc.channels(tx).map_or(0, |channels| channels.list().len() as u32),
        frames_sent: lane.count().frames,
        frames_received: received.0,
        bytes_sent: Some(lane.count().bytes),
        bytes_received: Some(received.1),
        discards,
        errors: errors(world, (number, side), (switch, end.port)),
        fcip: None,
    }
}

/// Counters of errors of a port at an end of a link, since the first login. A virtual link has no
/// credits, and no link resets.
fn errors(world: &World, (number, side): (u32, u32), (switch, port): (u16, u16)) -> PortErrors {
    let net = &world.net.fc;
    let (tx, rx) = (2 * number + side, 2 * number + 1 - side);
    let [sent, received] = [tx, rx].map(|lane| &net.lanes()[lane as usize]);
    let at_receiver = |reasons: &[Loss]| {
        let lost =
            |reason: &Loss| net.recorder.losses().get(&(LossSite::Receiver(rx), *reason)).map_or(0, |l| l.frames);
        reasons.iter().map(lost).sum()
    };
    let timeouts = net.switch(switch).timeouts(port);
    let errors = PortErrors {
        link_failures: Some(world.downtimes.failures(number as u16, side as u8)),
        crc_errors: Some(at_receiver(&[Loss::CrcError, Loss::CrcAtDestination])),
        discards_received: Some(at_receiver(&Loss::ALL)),
        discards_sent: Some(timeouts),
        timeouts_sent: Some(timeouts),
        timeouts_received: Some(at_receiver(&[Loss::HoldTime])),
        ..PortErrors::default()
    };
    if net.fcoe.has(tx) {
        return errors;
    }
    let (count, now) = (sent.count(), world.net.now());
    PortErrors {
        link_resets_sent: Some(count.resets),
        link_resets_received: Some(received.count().resets),
        credit_zeros: Some(count.credit_zeros.into()),
        credit_zero_ns: Some(sent.zero_credit_ps(now) / 1_000),
        credit_wait_ns: Some(sent.credit_wait_ps(now) / 1_000),
        credits_lost: Some(count.credits_lost),
        credits_recovered: Some(count.credits_recovered),
        ..errors
    }
}
