//! The keys that make a storage system an iSCSI target, [`Iscsi`], and those of the initiator of a
//! host, [`IscsiHost`].

use super::Where;
use super::links::RANGE_MISMATCH;
use super::live::BAD_ADDRESS;
use super::workloads::CONFLICT;
use crate::check::MISSING_KEY;
use crate::diagnostic::{Origin, Sink};
use crate::document::Budget;
use crate::element::Element;
use crate::schema;
use crate::value;
use sanloom_fc::config::{Chap, Congestion, Iscsi, IscsiHost, Tcp};
use sanloom_fc::san::Lab;
use sanloom_scsi::iscsi::parameters::Offers;
use sanloom_wire::iscsi::name;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Code of an invalid iSCSI name, or one that two targets share.
pub(crate) const BAD_ISCSI_NAME: &str = "bad-iscsi-name";
/// Lengths are multiples of this, so that no PDU splits a block.
const GRAIN: u64 = 512;

/// Returns all targets, by index of their storage system.
pub(super) fn build(lab: &Lab, storage: &[Where<'_>], budget: &mut Budget, sink: &mut Sink) -> BTreeMap<u16, Iscsi> {
    let mut targets = BTreeMap::new();
    let mut names = BTreeSet::new();
    for (number, (place, config)) in (0..).zip(storage.iter().zip(&lab.storage)) {
        let element = &place.element;
        if !element.has_table("iscsi") {
            continue;
        }
        let target = target(element, &config.name, budget, sink);
        if !names.insert(target.name.clone()) {
            let reason = format!("`{}` is the name of another target", value::cut(&target.name));
            sink.error(BAD_ISCSI_NAME, &element.origin("iscsi.name"), reason, "give each target a name of its own");
        }
        targets.insert(number, target);
    }
    targets
}

fn target(element: &Element<'_>, storage: &str, budget: &mut Budget, sink: &mut Sink) -> Iscsi {
    let text = |key| element.text(key).filter(|_| element.is_given(key)).map(str::to_owned);
    let mut portals = Vec::new();
    for (text, origin) in expanded(element, "iscsi.portals", budget, sink) {
        portals.extend(address(&text, &origin, sink));
    }
    let mut initiators = Vec::new();
    for (text, origin) in expanded(element, "iscsi.initiators", budget, sink) {
        check_name(&text, &origin, sink);
        initiators.push(text);
    }
    let chap = Chap {
        name: text("iscsi.chap_name"),
        secret_file: text("iscsi.chap_secret_file"),
        own_name: text("iscsi.own_chap_name"),
        own_secret_file: text("iscsi.own_chap_secret_file"),
    };
    check_chap(element, &chap, sink);
    if element.is_given("iscsi.redirect_permanent") && !element.is_given("iscsi.redirect") {
        let origin = element.origin("iscsi.redirect_permanent");
        sink.error(MISSING_KEY, &origin, "it needs `redirect` too", "add redirect = \"192.0.2.2:3260\"");
    }
    let unasked = element.flag("iscsi.unasked_data");
    let [max_burst_bytes, first_burst_bytes] = bursts(element, sink);
    Iscsi {
        name: target_name(element, storage, budget, sink),
        alias: text("iscsi.alias"),
        portals,
        initiators,
        chap,
        redirect: text("iscsi.redirect").and_then(|text| address(&text, &element.origin("iscsi.redirect"), sink)),
        redirect_permanent: element.flag("iscsi.redirect_permanent"),
        header_digest: element.choice("iscsi.header_digest", schema::DIGESTS).unwrap_or_default(),
        data_digest: element.choice("iscsi.data_digest", schema::DIGESTS).unwrap_or_default(),
        max_segment_bytes: bytes(element, "iscsi.max_segment", sink),
        max_burst_bytes,
        first_burst_bytes,
        max_outstanding_r2t: element.integer("iscsi.max_r2t").unwrap_or(1),
        initial_r2t: !unasked,
        immediate_data: unasked,
        queue_depth: element.integer("iscsi.queue_depth").unwrap_or(128),
        forward: element.flag("iscsi.forward"),
        tcp: tcp(element, sink),
    }
}

/// Returns the initiator of a host.
pub(super) fn initiator(element: &Element<'_>, budget: &mut Budget, sink: &mut Sink) -> IscsiHost {
    let default = IscsiHost::of(&element.name);
    if !element.has_table("iscsi") {
        return default;
    }
    let unasked = element.flag("iscsi.unasked_data");
    let [max_burst_bytes, first_burst_bytes] = bursts(element, sink);
    IscsiHost {
        name: own_name(element, default.name.clone(), budget, sink),
        offers: Offers {
            header_digest: element.choice("iscsi.header_digest", schema::DIGESTS).unwrap_or_default(),
            data_digest: element.choice("iscsi.data_digest", schema::DIGESTS).unwrap_or_default(),
            receive_bytes: bytes(element, "iscsi.max_segment", sink),
            initial_r2t: !unasked,
            immediate_data: unasked,
            max_burst_bytes,
            first_burst_bytes,
            max_outstanding_r2t: element.integer("iscsi.max_r2t").unwrap_or(default.offers.max_outstanding_r2t),
        },
        sessions: element.integer("iscsi.sessions").unwrap_or(default.sessions),
        queue_depth: element.integer("iscsi.queue_depth").unwrap_or(default.queue_depth),
        priority: element.integer("iscsi.priority"),
        vlan: element.integer("iscsi.vlan"),
        tcp: tcp(element, sink),
    }
}

fn tcp(element: &Element<'_>, sink: &mut Sink) -> Tcp {
    let default = Tcp::default();
    let time = |key, default| element.time(key).unwrap_or(default);
    let size = |key| element.size(key).map(|bytes| bytes as u32);
    let tcp = Tcp {
        congestion: element.choice("iscsi.tcp.congestion", schema::CONGESTIONS).unwrap_or(Congestion::Cubic),
        window_bytes: size("iscsi.tcp.window"),
        send_buffer_bytes: size("iscsi.tcp.send_buffer"),
        initial_window: element.integer("iscsi.tcp.initial_window").unwrap_or(default.initial_window),
        rto_initial: time("iscsi.tcp.rto_initial", default.rto_initial),
        rto_min: time("iscsi.tcp.rto_min", default.rto_min),
        rto_max: time("iscsi.tcp.rto_max", default.rto_max),
        delayed_ack: time("iscsi.tcp.delayed_ack", default.delayed_ack),
        nagle: element.flag("iscsi.tcp.nagle"),
        timestamps: element.flag("iscsi.tcp.timestamps"),
        sack: element.flag("iscsi.tcp.sack"),
        window_scaling: element.flag("iscsi.tcp.window_scaling"),
        ecn: element.flag("iscsi.tcp.ecn"),
        idle_restart: element.flag("iscsi.tcp.idle_restart"),
        pacing: element.flag("iscsi.tcp.pacing"),
        batch_bytes: size("iscsi.tcp.batch").unwrap_or(default.batch_bytes),
    };
    if tcp.rto_min.0 == 0 || tcp.rto_min > tcp.rto_max {
        let reason = format!("the shortest time-out of {} does not fit the longest of {}", tcp.rto_min, tcp.rto_max);
        let remedy = "choose a time above 0s and up to `rto_max`";
        sink.error(CONFLICT, &element.origin("iscsi.tcp.rto_min"), reason, remedy);
    }
    tcp
}

/// Returns the longest burst and the longest first burst.
fn bursts(element: &Element<'_>, sink: &mut Sink) -> [u32; 2] {
    let max_burst_bytes = bytes(element, "iscsi.max_burst", sink);
    let mut first_burst_bytes = bytes(element, "iscsi.first_burst", sink);
    if first_burst_bytes > max_burst_bytes {
        if element.is_given("iscsi.first_burst") {
            let reason = "`first_burst` is larger than `max_burst`";
            sink.error(CONFLICT, &element.origin("iscsi.first_burst"), reason, "make it at most as large");
        }
        first_burst_bytes = max_burst_bytes;
    }
    [max_burst_bytes, first_burst_bytes]
}

/// Returns all names of the patterns of a key, each with its location.
pub(super) fn expanded(
    element: &Element<'_>,
    key: &str,
    budget: &mut Budget,
    sink: &mut Sink,
) -> Vec<(String, Origin)> {
    let mut all = Vec::new();
    for (text, origin) in element.patterns(key) {
        let names = budget.expand(text, origin, sink).unwrap_or_default();
        // In a range of targets, the list is stored once for each of them.
        if budget.spend(names.len(), origin, sink).is_none() {
            break;
        }
        all.extend(names.iter().map(|name| (name.clone(), origin.clone())));
    }
    all
}

/// Returns the target name. A range of storage systems has a range of names of the same length.
fn target_name(element: &Element<'_>, storage: &str, budget: &mut Budget, sink: &mut Sink) -> String {
    own_name(element, IscsiHost::of(storage).name, budget, sink)
}

/// Returns the iSCSI name of a target or host, or `default`.
fn own_name(element: &Element<'_>, default: String, budget: &mut Budget, sink: &mut Sink) -> String {
    let Some((text, origin)) = element.patterns("iscsi.name").first().filter(|_| element.is_given("iscsi.name")) else {
        return default;
    };
    let all = budget.expand(text, origin, sink).unwrap_or_default();
    let (count, offset) = (element.count as usize, element.offset as usize);
    match all.get(offset).filter(|_| all.len() == count) {
        Some(name) => {
            check_name(name, origin, sink);
            name.clone()
        }
        None => {
            if offset == 0 && !all.is_empty() {
                let reason = format!("{} names cannot serve {count} nodes", all.len());
                sink.error(RANGE_MISMATCH, origin, reason, "give as many names as nodes, or leave `name` out");
            }
            text.clone()
        }
    }
}

pub(super) fn check_name(text: &str, origin: &Origin, sink: &mut Sink) {
    if !name::is_valid(text) {
        let reason = format!("`{}` is not an iSCSI name", value::cut(text));
        let remedy = "write one such as iqn.2026-11.net.example:disk1, in lower case";
        sink.error(BAD_ISCSI_NAME, origin, reason, remedy);
    }
}

pub(super) fn address(text: &str, origin: &Origin, sink: &mut Sink) -> Option<SocketAddr> {
    let parsed = text.parse().ok();
    if parsed.is_none() {
        let reason = format!("`{}` is not an address and a port", value::cut(text));
        sink.error(BAD_ADDRESS, origin, reason, "write it as 192.0.2.1:3260 or [2001:db8::1]:3260");
    }
    parsed
}

fn check_chap(element: &Element<'_>, chap: &Chap, sink: &mut Sink) {
    let pairs = [
        ("iscsi.chap_name", &chap.name, "iscsi.chap_secret_file", &chap.secret_file),
        ("iscsi.own_chap_name", &chap.own_name, "iscsi.own_chap_secret_file", &chap.own_secret_file),
    ];
    for (name_key, name, file_key, file) in pairs {
        let (here, missing) = match (name, file) {
            (Some(_), None) => (name_key, file_key),
            (None, Some(_)) => (file_key, name_key),
            _ => continue,
        };
        let missing = missing.trim_start_matches("iscsi.");
        sink.error(
            MISSING_KEY,
            &element.origin(here),
            format!("it needs `{missing}` too"),
            format!("add {missing} = \"…\""),
        );
    }
    if chap.own_name.is_some() && chap.name.is_none() {
        let reason = "the target authenticates itself only if initiators do too";
        sink.error(CONFLICT, &element.origin("iscsi.own_chap_name"), reason, "add chap_name and chap_secret_file");
    }
    if chap.secret_file.is_some() && chap.secret_file == chap.own_secret_file {
        let reason = "both directions have the same secret";
        sink.error(
            CONFLICT,
            &element.origin("iscsi.own_chap_secret_file"),
            reason,
            "give each direction its own secret",
        );
    }
}

fn bytes(element: &Element<'_>, key: &str, sink: &mut Sink) -> u32 {
    let bytes = element.size(key).unwrap_or(GRAIN);
    if !bytes.is_multiple_of(GRAIN) {
        let reason = "it is not a multiple of 512 bytes";
        sink.error(CONFLICT, &element.origin(key), reason, "write one, such as \"64KiB\"");
    }
    bytes as u32
}
