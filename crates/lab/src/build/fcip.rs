//! `fcip` of `[[isl]]`: links between switches over TCP.

use super::Where;
use super::live::{BAD_ADDRESS, BAD_PERIOD};
use super::workloads::CONFLICT;
use crate::diagnostic::{Origin, Sink};
use crate::element::Element;
use crate::value;
use sanloom_fc::config::{FcipAddresses, FcipTunnel, K_A_TOV, Node, Picos};
use sanloom_fc::san::Lab;
use sanloom_wire::fcip::PORT;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

/// Range of K_A_TOV in milliseconds.
const KEEP_ALIVE_MS: RangeInclusive<u64> = 100..=3_600_000;

/// Returns the addresses of FCIP links, by index of the link.
pub(super) fn build(lab: &Lab, links: &[Where<'_>], sink: &mut Sink) -> BTreeMap<usize, FcipAddresses> {
    let mut found: BTreeMap<usize, FcipAddresses> = BTreeMap::new();
    // Switches may run on machines of their own, so addresses of one switch are compared.
    let mut listening: Vec<(Node, SocketAddr, usize)> = Vec::new();
    for (index, place) in links.iter().enumerate() {
        let element = &place.element;
        if !element.has_table("fcip") {
            continue;
        }
        let header = element.origin("fcip");
        for (other, remedy) in [
            ("ethernet", "remove `ethernet` for a link over TCP, or `fcip` for one of FCoE"),
            ("bundle", "remove `bundle`: FSPF uses several FCIP links of the same cost side by side"),
        ] {
            let is_given = if other == "bundle" { lab.links[index].bundle.is_some() } else { element.has_table(other) };
            if is_given {
                let reason = format!("`{other}` has no effect on a link with `fcip`");
                sink.error(CONFLICT, &header, reason, remedy);
            }
        }
        let listen = address(element, "fcip.listen", sink).unwrap_or((Ipv4Addr::UNSPECIFIED, PORT).into());
        let peer = address(element, "fcip.peer", sink).unwrap_or((Ipv4Addr::LOCALHOST, listen.port()).into());
        let node = lab.links[index].ends[0].node;
        let overlaps = |at: &SocketAddr| {
            let any = at.ip().is_unspecified() || listen.ip().is_unspecified();
            at.port() == listen.port() && (any || at.ip() == listen.ip())
        };
        if let Some((_, at, other)) = listening.iter().find(|(own, at, _)| *own == node && overlaps(at)) {
            duplicate(element, &header, &lab.links[*other].name, *at, sink);
        }
        listening.push((node, listen, index));
        check_keep_alive(element, sink);
        found.insert(index, FcipAddresses { listen, peer, keep_alive: keep_alive(element) });
    }
    found
}

fn duplicate(element: &Element<'_>, header: &Origin, other: &str, listen: SocketAddr, sink: &mut Sink) {
    let origin = if element.is_given("fcip.listen") { element.origin("fcip.listen") } else { header.clone() };
    let reason = format!("the FCIP link {} listens at {listen} as well", value::cut(other));
    let remedy =
        format!("choose another TCP port, as in listen = \"{}:{}\"", listen.ip(), listen.port().wrapping_add(1));
    sink.error(CONFLICT, &origin, reason, remedy);
}

fn address(element: &Element<'_>, key: &str, sink: &mut Sink) -> Option<SocketAddr> {
    let text = element.is_given(key).then(|| element.text(key)).flatten()?;
    let address: Option<SocketAddr> = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
    if address.is_none() {
        let reason = format!("`{}` is not an IP address with a TCP port", value::cut(text));
        let name = key.trim_start_matches("fcip.");
        sink.error(BAD_ADDRESS, &element.origin(key), reason, format!("write it as in {name} = \"192.0.2.1:{PORT}\""));
    }
    address
}

fn keep_alive(element: &Element<'_>) -> Picos {
    element.time("fcip.keep_alive").unwrap_or(K_A_TOV)
}

fn check_keep_alive(element: &Element<'_>, sink: &mut Sink) {
    let keep_alive = keep_alive(element);
    if !KEEP_ALIVE_MS.contains(&(keep_alive.0 / 1_000_000_000)) {
        sink.error(
            BAD_PERIOD,
            &element.origin("fcip.keep_alive"),
            "keep-alive time-outs of FCIP are 100 ms to 1 h",
            "write keep_alive = \"10s\"",
        );
    }
}

/// Settings of the link in a simulation. [`build`] reports the mistakes.
pub(super) fn tunnel(element: &Element<'_>) -> FcipTunnel {
    let size = |key| element.size(key).and_then(|bytes| u32::try_from(bytes).ok());
    FcipTunnel {
        window_bytes: size("fcip.window"),
        send_buffer_bytes: size("fcip.send_buffer"),
        keep_alive: keep_alive(element),
    }
}
