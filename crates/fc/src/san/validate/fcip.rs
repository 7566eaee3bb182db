//! Advice about FCIP links of a simulation: windows and buffers that do not fill their distance.

use super::Problems;
use super::windows::{Ways, distance_between};
use crate::config::FcipTunnel;
use crate::san::{EthernetInterface, FcoePath, Lab, Place, ProblemKind, Section};

/// Adds a warning if the window or the buffer of an FCIP link does not keep its distance full.
pub(super) fn advise(
    lab: &Lab,
    ways: &mut Ways<'_>,
    path: &FcoePath,
    tunnel: &FcipTunnel,
    interfaces: &[EthernetInterface],
    problems: &mut Problems,
) {
    let ends = path.interfaces.map(|number| interfaces[usize::from(number)].link);
    let Some(distance) = distance_between(ways, path.config.vlan, ends) else { return };
    let tcp = tunnel.tcp();
    let (window, buffer) = (u64::from(tcp.largest_window_bytes()), u64::from(tcp.largest_send_buffer_bytes()));
    let limits = [
        ("fcip.window", "window", "receive window", window, distance.bytes(), distance.rate_of_window(window)),
        (
            "fcip.send_buffer",
            "send_buffer",
            "buffer of each gateway",
            buffer,
            distance.buffer_bytes(),
            distance.rate_of_buffer(buffer),
        ),
    ];
    let link = &lab.links[usize::from(path.link)].name;
    let (rate, round_trip, held) = (distance.rate, distance.round_trip, distance.bytes());
    for (key, word, what, bytes, needed, per_s) in limits {
        if bytes >= needed {
            continue;
        }
        problems.add(
            ProblemKind::SmallWindow,
            Place::of(Section::Link, usize::from(path.link)).key(key),
            format!(
                "`{link}` crosses {rate} with a round trip of {round_trip}, which holds {held} bytes, but its {what} of {bytes} bytes fills it only to {per_s:.1} MB/s"
            ),
            format!("set `{word} = \"{}MiB\"` in `fcip`, or more", needed.div_ceil(1 << 20)),
        );
    }
}
