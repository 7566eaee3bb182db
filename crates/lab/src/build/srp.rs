//! The keys that make a storage system an SRP target on RoCEv2: [`SrpPortals`].

use super::Where;
use super::iscsi::expanded;
use super::live::BAD_ADDRESS;
use super::workloads::CONFLICT;
use crate::check::MISSING_KEY;
use crate::diagnostic::{Origin, Sink};
use crate::document::Budget;
use crate::element::Element;
use crate::value;
use sanloom_fc::config::SrpPortals;
use sanloom_fc::san::Lab;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, SocketAddrV4};

/// Digits of a port identifier.
const ID_DIGITS: usize = 32;

/// Returns all targets with portals, by index of their storage system.
pub(super) fn build(
    lab: &Lab,
    storage: &[Where<'_>],
    budget: &mut Budget,
    sink: &mut Sink,
) -> BTreeMap<u16, SrpPortals> {
    let mut targets = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (number, place) in (0..lab.storage.len() as u16).zip(storage) {
        let element = &place.element;
        if !element.has_table("srp") {
            continue;
        }
        let mut portals = Vec::new();
        for (text, origin) in expanded(element, "srp.portals", budget, sink) {
            let Some(portal) = portal(&text, &origin, sink) else { continue };
            if !taken.insert(portal) {
                let reason = format!("{portal} is a portal of SRP already");
                sink.error(CONFLICT, &origin, reason, "set another port, which may have the same address");
            }
            portals.push(portal);
        }
        let initiators = initiators(element, budget, sink);
        if !portals.is_empty() {
            targets.insert(number, SrpPortals { portals, initiators });
        } else if element.is_given("srp.initiators") && !element.is_given("srp.portals") {
            let origin = element.origin("srp.initiators");
            sink.error(MISSING_KEY, &origin, "it needs `portals` too", "add portals = \"192.0.2.1:5555\"");
        }
    }
    targets
}

fn portal(text: &str, origin: &Origin, sink: &mut Sink) -> Option<SocketAddrV4> {
    let reason = match text.parse() {
        Ok(SocketAddr::V4(portal)) if !portal.ip().is_unspecified() && portal.port() != 0 => return Some(portal),
        Ok(SocketAddr::V4(_)) => "the checksum of RoCEv2 needs one address, and hosts need a port".to_owned(),
        Ok(SocketAddr::V6(_)) => format!("`{}` is an IPv6 address, over which SRP is not served", value::cut(text)),
        Err(_) => format!("`{}` is not an address and a port", value::cut(text)),
    };
    let remedy = "write an address of this machine and a port, such as 192.0.2.1:5555";
    sink.error(BAD_ADDRESS, origin, reason, remedy);
    None
}

fn initiators(element: &Element<'_>, budget: &mut Budget, sink: &mut Sink) -> Vec<[u8; 16]> {
    let mut all = Vec::new();
    for (text, origin) in expanded(element, "srp.initiators", budget, sink) {
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        let is_id = digits.len() == ID_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u128::from_str_radix(digits, 16) {
            Ok(id) if is_id => all.push(id.to_be_bytes()),
            _ => {
                let reason = format!("`{}` is not a port identifier of SRP", value::cut(&text));
                let remedy = "write identifier extension and GUID in 32 hexadecimal digits";
                sink.error(BAD_ADDRESS, &origin, reason, remedy);
            }
        }
    }
    all
}
