//! Reasons for lost frames and packets: the keys of the maps in the results.

/// Reasons for lost frames of Fibre Channel: `drops`, and `links.*.*.frames_lost`.
pub const FRAMES: [&str; 17] = [
    "bad_source_id",
    "no_route",
    "unknown_destination",
    "zone_denied",
    "port_down",
    "link_down",
    "link_reset",
    "hold_time",
    "crc_error",
    "crc_error_at_destination",
    "frame_loss",
    "switch_reset",
    "loop_initialised",
    "no_loop_port",
    "ethernet",
    "fcoe_buffer",
    "stale",
];

/// Reasons for lost frames of Ethernet: `ethernet_links.*.*.drops`.
pub const ETHERNET: [&str; 8] =
    ["congestion", "headroom", "fcs", "frame_loss", "link_down", "vlan", "too_long", "no_path"];

/// Reasons for lost packets of InfiniBand: `infiniband_links.*.*.drops`.
pub const INFINIBAND: [&str; 8] =
    ["lifetime", "stalled_lane", "crc_error", "packet_loss", "link_down", "no_path", "no_lane", "management_full"];

/// Returns the path of the map and the key, if `path` is a reason in one of the maps. Results have
/// only the reasons that occurred; the number of another one is 0.
pub(super) fn reason(path: &str) -> Option<(&str, &str)> {
    let (map, reason) = path.rsplit_once('.')?;
    let reasons: &[&str] = match map.split('.').next()? {
        "drops" if map == "drops" => &FRAMES,
        "links" if map.ends_with(".frames_lost") => &FRAMES,
        "ethernet_links" if map.ends_with(".drops") => &ETHERNET,
        "infiniband_links" if map.ends_with(".drops") => &INFINIBAND,
        _ => return None,
    };
    reasons.contains(&reason).then_some((map, reason))
}
