//! FCIP links of an instance: ports of switches whose frames a TCP connection carries.

use super::instance::Instance;
use super::ports::LivePort;
use super::work::Source;
use crate::ports::Driver;
use crate::sequence::{self, MESSAGE_FRAME_BYTES};
use sanloom_api::view::FcipRow;
use sanloom_fc::fabric_switch;
use sanloom_fc::switch::PortKind;
use sanloom_scsi::time::Instant;
use sanloom_wire::Frame;
use sanloom_wire::ether::MacAddr;
use sanloom_wire::fcoe;
use std::collections::BTreeMap;

impl Instance {
    /// Sends a message of a switch over an FCIP link, by index of its port, cut into frames.
    pub(super) fn tunnel_message(&mut self, now: Instant, port: usize, frame: Frame) {
        for piece in sequence::cut(frame, MESSAGE_FRAME_BYTES) {
            let buffer = self.ports.compose(|out| fcoe::encapsulate(MacAddr::ZERO, MacAddr::ZERO, None, &piece, out));
            self.push_ethernet(now, port, Source::Machine, buffer);
        }
    }
}

/// Reports to the switch whether the FCIP link at a port is up, if the port has one.
pub(super) fn link_changed(instance: &mut Instance, number: usize) {
    let Some((switch, port)) = instance.ports[number].tunnel else { return };
    let input = match instance.ports[number].up {
        true => fabric_switch::Input::PortUp { port, kind: PortKind::E },
        false => fabric_switch::Input::PortDown { port },
    };
    instance.work.push_switch(switch, input);
}

/// Disables or enables an FCIP link, by index of its port.
pub(super) fn enable(instance: &mut Instance, now: Instant, number: usize, enabled: bool) {
    if let Driver::Fcip(driver) = &mut instance.ports[number].ethernet.driver {
        driver.enable(enabled);
    }
    // The switch learns the end of the link before an enabled port could count it as a failure.
    update(instance, now, number);
    instance.ports.mark(number);
}

/// State and counters of the FCIP link at a port.
pub(super) fn row(port: &LivePort) -> Option<FcipRow> {
    match &port.ethernet.driver {
        Driver::Fcip(driver) => Some(driver.row()),
        _ => None,
    }
}

/// Counters of the FCIP link at a port, and of its frames.
pub(super) fn counters(port: &LivePort) -> BTreeMap<String, u64> {
    let LivePort { ethernet, .. } = port;
    let mut counters: BTreeMap<String, u64> =
        [("frames in", ethernet.received.frames), ("frames out", ethernet.sent.frames)]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
    counters.extend(ethernet.drops.iter().map(|(reason, frames)| (format!("dropped: {reason}"), *frames)));
    if let Some(row) = row(port) {
        let of_link = [
            ("FCIP connections", row.connections),
            ("FCIP connections closed here", row.closed),
            ("FCIP keep-alives", row.keep_alives),
            ("FCIP frames without time stamp", row.unstamped),
            ("FCIP resynchronisations", row.resynchronised),
            ("FCIP bytes skipped", row.skipped_bytes),
        ];
        counters.extend(of_link.map(|(name, value)| (name.to_owned(), value)));
    }
    counters
}

/// Reports a change of the FCIP link at a port that has been read, if it has one.
#[inline]
pub(super) fn update(instance: &mut Instance, now: Instant, number: usize) {
    let port = &mut instance.ports[number];
    let light = port.ethernet.has_peer();
    if port.tunnel.is_some() && port.set_light(light) {
        instance.peer_changed(now, number);
    }
}
