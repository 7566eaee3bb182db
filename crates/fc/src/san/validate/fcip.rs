//! Advice about FCIP links of a simulation: windows and buffers that do not fill their distance.

use super::Problems;
use super::ethernet::{Ways, route_between};
use crate::config::FcipTunnel;
use crate::san::{EthernetInterface, FcoePath, Lab, Place, ProblemKind, Section};

/// Adds a warning if the window or the buffer of an FCIP link is smaller than the bytes that its
/// distance holds.
pub(super) fn advise(
    lab: &Lab,
    ways: &mut Ways<'_>,
    path: &FcoePath,
    tunnel: &FcipTunnel,
    interfaces: &[EthernetInterface],
    problems: &mut Problems,
) {
    let ends = path.interfaces.map(|number| interfaces[usize::from(number)].link);
    let Some((rate, round_trip)) = route_between(ways, ends) else { return };
    let needed = round_trip.0 / rate.ps_per_byte();
    let tcp = tunnel.tcp();
    let limits = [
        ("fcip.window", "window", "receive window", tcp.largest_window_bytes()),
        ("fcip.send_buffer", "send_buffer", "buffer of each gateway", tcp.largest_send_buffer_bytes()),
    ];
    let link = &lab.links[usize::from(path.link)].name;
    for (key, word, what, bytes) in limits {
        if u64::from(bytes) >= needed {
            continue;
        }
        let per_s = f64::from(bytes) / round_trip.as_secs_f64() / 1e6;
        problems.add(
            ProblemKind::SmallWindow,
            Place::of(Section::Link, usize::from(path.link)).key(key),
            format!(
                "`{link}` crosses {rate} with a round trip of {round_trip}, which holds {needed} bytes, but its {what} of {bytes} bytes fills it only to {per_s:.1} MB/s",
            ),
            format!("set `{word} = \"{}MiB\"` in `fcip`, or more", needed.div_ceil(1 << 20)),
        );
    }
}
