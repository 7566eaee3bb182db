//! Advice about links with too few credits for their length.

use super::Problems;
use super::fabric::node_name;
use crate::config::{Link, SizeDistribution, Workload, buffers_with_data};
use crate::san::{Lab, Place, ProblemKind, Section};

/// Delimiters, header and CRC of a frame, and the smallest gap after it, in bytes (FC-FS).
const AROUND_BYTES: u64 = 36 + 24;
/// Data field of a full frame in bytes, if ports have the default receive size.
const FULL_DATA_BYTES: u64 = 2_048;
/// Data field of an FCP_RSP without sense data, in bytes; between FCP_XFER_RDY (12) and FCP_CMND
/// (32).
const SMALL_DATA_BYTES: u64 = 24;

pub(super) fn advise(lab: &Lab, problems: &mut Problems) {
    let full_bytes = FULL_DATA_BYTES + AROUND_BYTES;
    let smallest = lab.workloads.iter().map(|workload| (mean_frame_bytes(workload), workload)).min_by_key(|(b, _)| *b);
    // On a loop, credits last for a circuit only. A virtual link has none.
    let is_meant = |(_, link): &(usize, &Link)| link.loop_end().is_none() && link.fcoe.is_none();
    for (index, link) in lab.links.iter().enumerate().filter(is_meant) {
        let needed_by = |bytes| {
            let for_data = needed(link, bytes);
            if lab.has_channels(link) { buffers_with_data(for_data) } else { for_data }
        };
        let needed = needed_by(full_bytes);
        let Some(end) = link.ends.iter().find(|end| u64::from(end.bb_credit) < needed) else { continue };
        let (advised, of_workload) = match smallest {
            Some((bytes, workload)) if bytes < full_bytes => {
                let advised = needed_by(bytes);
                (advised, format!(", and those of `{}`, {bytes} bytes on average, {advised}", workload.name))
            }
            _ => (needed, String::new()),
        };
        problems.add(
            ProblemKind::FewCredits,
            Place::of(Section::Link, index).key("length"),
            format!(
                "{} buffers at `{}` cannot keep the link `{}` busy: full frames need {needed} at {} over this \
                 length{of_workload}",
                end.bb_credit,
                node_name(lab, end.node),
                link.name,
                link.rate
            ),
            format!("give the link `credits = {advised}`, unless this is intended"),
        );
    }
}

/// Credits that keep a line busy with frames of this length, including the gap. A credit is in use
/// while its frame propagates and the R_RDY, one word, returns.
fn needed(link: &Link, frame_bytes: u64) -> u64 {
    (2 * link.propagation.0 + link.rate.time_of(4).0).div_ceil(link.rate.time_of(frame_bytes).0) + 1
}

/// Mean length of a workload's frames, including gaps, in the direction with more of its data.
/// FCP_RSP, FCP_CMND and FCP_XFER_RDY are included, because each needs a credit like a full frame.
fn mean_frame_bytes(workload: &Workload) -> u64 {
    let request_bytes = mean_bytes(&workload.size).max(1.0);
    let frames = (request_bytes / FULL_DATA_BYTES as f64).ceil();
    let reads = workload.read_share.clamp(0.0, 1.0);
    let with_data = reads.max(1.0 - reads);
    // The direction of read data also carries the responses of all commands and the XFER_RDYs of
    // writes; the direction of write data carries all commands.
    let small = if reads >= 0.5 { 1.0 + (1.0 - reads) } else { 1.0 };
    let around = AROUND_BYTES as f64;
    let bytes = with_data * (request_bytes + frames * around) + small * (SMALL_DATA_BYTES as f64 + around);
    (bytes / (with_data * frames + small)) as u64
}

fn mean_bytes(size: &SizeDistribution) -> f64 {
    match size {
        SizeDistribution::Fixed(bytes) => f64::from(*bytes),
        SizeDistribution::Weighted(list) => {
            let weights: f64 = list.iter().map(|(_, weight)| weight).sum();
            list.iter().map(|(bytes, weight)| f64::from(*bytes) * weight).sum::<f64>() / weights
        }
        SizeDistribution::Uniform { min, max, .. } => (f64::from(*min) + f64::from(*max)) / 2.0,
        SizeDistribution::Exponential { mean, .. } => f64::from(*mean),
    }
}
