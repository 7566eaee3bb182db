//! Advice about FCIP links of a simulation: windows and buffers that do not fill their distance.

use super::Problems;
use super::windows::{Limit, Ways, tunnel_limits};
use crate::san::{EthernetInterface, FcoePath, Lab, Place, ProblemKind, Section};

/// Adds a warning if the window or the buffer of an FCIP link does not keep its distance full.
pub(super) fn advise(
    lab: &Lab,
    ways: &mut Ways<'_>,
    path: &FcoePath,
    interfaces: &[EthernetInterface],
    problems: &mut Problems,
) {
    let Some((distance, limits)) = tunnel_limits(ways, path, interfaces) else { return };
    let names =
        [("fcip.window", "window", "receive window"), ("fcip.send_buffer", "send_buffer", "buffer of each gateway")];
    let link = &lab.links[usize::from(path.link)].name;
    let (rate, round_trip, held) = (distance.rate, distance.round_trip, distance.bytes());
    for ((key, word, what), limit) in names.into_iter().zip(limits).filter(|(_, limit)| limit.is_short) {
        let Limit { bytes, needed, mb_per_s, .. } = limit;
        problems.add(
            ProblemKind::SmallWindow,
            Place::of(Section::Link, usize::from(path.link)).key(key),
            format!(
                "`{link}` crosses {rate} with a round trip of {round_trip}, which holds {held} bytes, but its {what} of {bytes} bytes fills it only to {mb_per_s:.1} MB/s"
            ),
            format!("set `{word} = \"{}MiB\"` in `fcip`, or more", needed.div_ceil(1 << 20)),
        );
    }
}
