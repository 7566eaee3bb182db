//! World-wide names of nodes and ports: given in the file, or generated.

use super::workloads::CONFLICT;
use crate::diagnostic::Sink;
use crate::element::Element;
use crate::value;
use sanloom_wire::Wwpn;

/// Code of a text in `wwpns` that is no port name, and of too few or too many names.
pub(crate) const BAD_PORT_NAMES: &str = "bad-port-names";

const WWPNS: &str = "wwpns";

/// Returns the name given in the file, incremented along a range of nodes with `ports` names each,
/// or the generated name `made`.
pub(super) fn world_wide_name(element: &Element<'_>, key: &str, ports: u64, made: u64) -> u64 {
    match element.wwn(key) {
        Some(first) => first.saturating_add(element.offset.saturating_mul(ports)),
        None => made,
    }
}

/// Returns the name of a port: from `wwpns`, counted up from `wwpn`, or the generated name `made`.
pub(super) fn port_name(element: &Element<'_>, ports: u64, port: u64, made: u64) -> u64 {
    let index = element.offset.saturating_mul(ports).saturating_add(port);
    let listed = usize::try_from(index).ok().and_then(|index| element.patterns(WWPNS).get(index));
    if let Some((text, _)) = listed
        && let Ok(Wwpn(name)) = text.parse()
    {
        return name;
    }
    let increment = if element.wwn("wwpn").is_some() { port } else { 0 };
    world_wide_name(element, "wwpn", ports, made).saturating_add(increment)
}

/// Reports errors of `wwpns`, once for a range of nodes with `ports` ports each.
pub(super) fn check(element: &Element<'_>, ports: u64, sink: &mut Sink) {
    let names = element.patterns(WWPNS);
    if names.is_empty() || element.offset > 0 {
        return;
    }
    let origin = element.origin(WWPNS);
    if element.is_given("wwpn") {
        sink.error(CONFLICT, &origin, "`wwpn` and `wwpns` both name the ports", "remove one of them");
    }
    for (text, origin) in names {
        if text.parse::<Wwpn>().is_err() {
            let reason = format!("`{}` is not a port name", value::cut(text));
            sink.error(BAD_PORT_NAMES, origin, reason, "write eight bytes, such as 21:00:00:24:ff:00:00:01");
        }
    }
    let wanted = ports.saturating_mul(element.count.max(1));
    if names.len() as u64 != wanted {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let given = names.len() as u64;
        sink.error(
            BAD_PORT_NAMES,
            &origin,
            format!("{given} port name{} for {wanted} port{}", plural(given), plural(wanted)),
            "name every port once, or give only the first name with `wwpn`",
        );
    }
}

/// Returns a name of NAA 1 or 2: the locally administered address 02:5a:00 (FC-FS, name
/// identifiers), then node and port number.
pub(super) fn host_name(first_byte: u64, index: usize, port: u64) -> u64 {
    first_byte << 56 | 0x02_5a00 << 24 | (index as u64 + 1) << 8 | port & 0xff
}

/// Returns a name of NAA 5: a 24-bit company number, here the locally administered 02:5a:00, then
/// 36 bits assigned here.
pub(super) fn storage_name(index: usize, port: u64) -> u64 {
    0x5 << 60 | 0x02_5a00 << 36 | (index as u64 + 1) << 12 | port
}
