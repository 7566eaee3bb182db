//! Counters of ports: `interface/fibrechannel-statistics`, and their values for the other surfaces.

use super::fault::Fault;
use super::ports::{Port, all, find};
use super::resources::Change;
use super::room::Room;
use super::tree::Element;
use sanloom_api::view::PortRow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Unit of the counter of time without credit, `tim_txcrd_z`, in nanoseconds.
const TICK_NS: u64 = 2_500;
/// Shortest time between two samples of the rates, in seconds.
const SHORTEST_S: f64 = 1.0;

/// Value of a counter in the view; `None` if the fabric has no such events.
type Count = fn(&PortRow) -> Option<u64>;

/// Counters of the interfaces: name, and value in the view. Names with a hyphen are leaves of REST,
/// the others belong to the command line. Counters of errors that every port has are 0 for a port
/// without such events.
const COUNTERS: &[(&str, Count)] = &[
    ("in-frames", |row| Some(row.frames_received)),
    ("out-frames", |row| Some(row.frames_sent)),
    ("in-octets", |row| row.bytes_received),
    ("out-octets", |row| row.bytes_sent),
    ("class-3-frames", |row| Some(row.frames_received)),
    ("class-3-discards", |row| Some(discards(row))),
    ("class3-in-discards", |row| row.errors.discards_received),
    ("class3-out-discards", |row| row.errors.discards_sent),
    ("crc-errors", |row| Some(row.errors.crc_errors.unwrap_or_default())),
    // No switch marks a frame with a wrong CRC, so its EOF is always good.
    ("in-crc-errors", |row| Some(row.errors.crc_errors.unwrap_or_default())),
    ("frames-too-long", |row| Some(row.errors.frames_too_long.unwrap_or_default())),
    // A frame that is too short is no frame, and counts as a discard.
    ("truncated-frames", |_| Some(0)),
    ("link-failures", |row| Some(row.errors.link_failures.unwrap_or_default())),
    ("loss-of-signal", |row| Some(row.errors.link_failures.unwrap_or_default())),
    ("in-link-resets", |row| row.errors.link_resets_received),
    ("out-link-resets", |row| row.errors.link_resets_sent),
    ("bb-credit-zero", |row| row.errors.credit_zeros),
    ("er_rx_c3_timeout", |row| row.errors.timeouts_received),
    ("er_tx_c3_timeout", |row| row.errors.timeouts_sent),
    ("tim_txcrd_z", |row| Some(row.errors.credit_zero_ns? / TICK_NS)),
];

/// Discarded frames in both directions.
fn discards(row: &PortRow) -> u64 {
    let of = |count: Option<u64>| count.unwrap_or_default();
    of(row.errors.discards_received).saturating_add(of(row.errors.discards_sent))
}

/// Counters of a port by the names of the interfaces. A counter without such events in the fabric
/// is absent.
pub fn counted(row: &PortRow) -> BTreeMap<&'static str, u64> {
    COUNTERS.iter().filter_map(|(name, of)| Some((*name, of(row)?))).collect()
}

/// Counters of a port since their last reset.
pub fn since_reset(room: &Room<'_>, row: &PortRow) -> BTreeMap<&'static str, u64> {
    let mut counters = counted(row);
    if let Some(zero) = room.shared.lock().zero.get(&row.number) {
        for (name, value) in &mut counters {
            *value = value.saturating_sub(zero.get(name).copied().unwrap_or_default());
        }
    }
    counters
}

/// Values of a port for a rate, received and sent.
type Pair = [u64; 2];

/// Rates of a port between the last two samples of its counters, per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Time between the samples in seconds; 0 before the second sample.
    pub interval_s: f64,
    /// Bytes received and sent, if the fabric counts them.
    pub octets: Option<Pair>,
    /// Frames received and sent.
    pub frames: Pair,
    /// Highest rates since the last reset.
    peaks: (Pair, Pair),
    /// Last sample: time in seconds, bytes, frames.
    sample: (f64, Option<Pair>, Pair),
}

impl Rates {
    /// Starts with a first sample.
    fn new(at_s: f64, row: &PortRow) -> Rates {
        Rates { sample: (at_s, octets(row), frames(row)), ..Rates::default() }
    }

    /// Takes a sample, unless the last one is younger than [`SHORTEST_S`].
    fn update(&mut self, at_s: f64, row: &PortRow) {
        let (before_s, octets_before, frames_before) = self.sample;
        let interval_s = at_s - before_s;
        if interval_s < 0.0 {
            *self = Rates::new(at_s, row);
        }
        if interval_s < SHORTEST_S {
            return;
        }
        let rate = |now: Pair, before: Pair| {
            let per_second = |index: usize| (now[index].saturating_sub(before[index]) as f64 / interval_s) as u64;
            [per_second(0), per_second(1)]
        };
        let higher = |one: Pair, other: Pair| [one[0].max(other[0]), one[1].max(other[1])];
        self.interval_s = interval_s;
        self.octets = octets(row).zip(octets_before).map(|(now, before)| rate(now, before));
        self.frames = rate(frames(row), frames_before);
        self.peaks = (higher(self.peaks.0, self.octets.unwrap_or_default()), higher(self.peaks.1, self.frames));
        self.sample = (at_s, octets(row), frames(row));
    }

    /// Leaves of the rates; none before the second sample.
    fn leaves(&self) -> Vec<(&'static str, u64)> {
        if self.interval_s == 0.0 {
            return Vec::new();
        }
        let [received, sent] = self.frames;
        let mut leaves = vec![
            ("in-frame-rate", received),
            ("out-frame-rate", sent),
            ("in-max-frame-rate", self.peaks.1[0]),
            ("out-max-frame-rate", self.peaks.1[1]),
        ];
        if let Some([received, sent]) = self.octets {
            leaves.extend([("in-rate", received), ("out-rate", sent)]);
            leaves.extend([("in-peak-rate", self.peaks.0[0]), ("out-peak-rate", self.peaks.0[1])]);
        }
        leaves
    }
}

fn octets(row: &PortRow) -> Option<Pair> {
    Some([row.bytes_received?, row.bytes_sent?])
}

fn frames(row: &PortRow) -> Pair {
    [row.frames_received, row.frames_sent]
}

/// Updates the rates of ports that were read just now. Every request of any surface of the switch
/// that reads its ports is a sample.
pub fn sample<'r>(room: &Room<'_>, rows: impl Iterator<Item = &'r PortRow>) {
    let mut settings = room.shared.lock();
    for row in rows {
        match settings.rates.entry(row.number) {
            Entry::Occupied(mut rates) => rates.get_mut().update(room.uptime_s, row),
            Entry::Vacant(place) => _ = place.insert(Rates::new(room.uptime_s, row)),
        }
    }
}

/// GET of `fibrechannel-statistics`.
pub fn statistics(room: &mut Room<'_>) -> Result<Vec<Element>, Fault> {
    let (_, ports) = all(room)?;
    let entries = ports.iter().map(|port| {
        let row = PortRow { number: port.number, ..port.row.clone().unwrap_or_default() };
        let rates = room.shared.lock().rates.get(&port.number).copied().unwrap_or_default();
        let mut leaves = vec![
            Element::text("name", format!("0/{}", port.number)),
            Element::number("sampling-interval", rates.interval_s.round() as u64),
            Element::number("time-generated", room.now.unix_s),
        ];
        let counted = since_reset(room, &row).into_iter().filter(|(name, _)| !name.contains('_'));
        let values = counted.chain(rates.leaves());
        leaves.extend(values.map(|(name, value)| Element::number(name, value)));
        Element::entry("fibrechannel-statistics", leaves)
    });
    Ok(entries.collect())
}

/// PATCH of `fibrechannel-statistics`: resets the counters of a port.
pub fn patch_statistics(room: &mut Room<'_>, entry: &Element) -> Result<Change, Fault> {
    let port = find(room, entry)?;
    match entry.leaf("reset-statistics").as_deref() {
        Some("1" | "true") => Ok(Box::new(move |room| {
            reset(room, &port);
            Ok(())
        })),
        _ => Err(Fault::invalid("reset-statistics permits 1 only")),
    }
}

/// Resets the counters of a port, for the management interfaces only.
pub fn reset(room: &Room<'_>, port: &Port) {
    if let Some(row) = &port.row {
        let mut settings = room.shared.lock();
        settings.zero.insert(port.number, counted(row));
        settings.rates.insert(port.number, Rates::new(room.uptime_s, row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discards_are_the_sum_of_both_directions() {
        let mut row = PortRow::default();
        (row.errors.discards_received, row.errors.discards_sent) = (Some(5), Some(2));
        let counted = counted(&row);
        let [all, received, sent] =
            ["class-3-discards", "class3-in-discards", "class3-out-discards"].map(|name| counted[name]);
        assert_eq!((all, received, sent), (7, 5, 2));
    }

    #[test]
    fn rates_are_those_between_two_samples_at_least_a_second_apart() {
        let row = |bytes: u64, frames: u64| PortRow {
            bytes_received: Some(bytes),
            bytes_sent: Some(2 * bytes),
            frames_received: frames,
            ..PortRow::default()
        };
        let mut rates = Rates::new(10.0, &row(1_000, 1));
        rates.update(10.5, &row(9_000, 9));
        assert!(rates.leaves().is_empty(), "half a second is no sample");
        rates.update(12.0, &row(9_000, 9));
        assert_eq!((rates.interval_s, rates.octets, rates.frames), (2.0, Some([4_000, 8_000]), [4, 0]));
        rates.update(16.0, &row(9_000, 9));
        let leaves: BTreeMap<&str, u64> = rates.leaves().into_iter().collect();
        assert_eq!((leaves["in-rate"], leaves["out-peak-rate"], leaves["in-max-frame-rate"]), (0, 8_000, 4));
        rates.update(1.0, &row(0, 0));
        assert!(rates.leaves().is_empty(), "a fabric that has started again has other counters");
    }
}
