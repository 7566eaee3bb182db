//! Sections 3 and 4 of the GUPFS report: SRP through gateways to Fibre Channel, iSCSI over IPoIB,
//! and all four fabrics side by side.

use super::labs::{Case, Fabric, MTU_2003, Measured};
use super::{LARGE, SIZES_KIB, known, load};
use crate::reproduce::verdict::{Kind, Verdict};
use sanloom_fc::config::IPOIB_HEADER_BYTES;
use std::collections::BTreeMap;

/// Clock of a bus of 64 bits at 66 MHz of which 88 % carry data, in kHz: 470 of 533 MB/s, both
/// numbers of the document.
pub const BUS_KHZ: u32 = 58_667;

/// Large requests that keep four ports busy.
pub const FOUR_PORTS: (u32, u32) = (512, 32);

/// Sizes of the curves of Figures 8 and 9.
pub const CURVE_KIB: [u32; 6] = [4, 16, 64, 128, 256, 512];

/// Sizes of [`CURVE_KIB`] at which SRP and an HBA are compared.
pub const SRP_SIZES_KIB: [u32; 3] = [64, 128, 512];

/// The fabrics of Figures 10 and 11, in the order of the document.
pub const SIDE_BY_SIDE: [(Fabric, &str); 4] = [
    (Fabric::Server, "FC"),
    (Fabric::Srp1x, "SRP, 1x"),
    (Fabric::Router, "iSCSI, GigE"),
    (Fabric::Ipoib, "iSCSI, IPoIB"),
];

pub fn cases() -> Vec<Case> {
    let mut cases = [Fabric::TwoCards, Fabric::HostBus].map(|fabric| load(fabric, false, FOUR_PORTS)).to_vec();
    for size in CURVE_KIB {
        cases.extend([Fabric::TwoCards, Fabric::HostBus].map(|fabric| load(fabric, false, (size, FOUR_PORTS.1))));
        cases.extend([Fabric::Srp4x, Fabric::Server].map(|fabric| load(fabric, false, (size, LARGE.1))));
    }
    for (fabric, _) in SIDE_BY_SIDE {
        cases.extend(SIZES_KIB.map(|size| load(fabric, false, (size, 1))));
    }
    cases
}

/// Returns the largest deviation of a number of sizes from 1, as a number near 1; NaN if a rate
/// is 0.
fn farthest(ratios: impl Iterator<Item = f64>) -> f64 {
    let worse = |worst: f64, ratio: f64| if (ratio - 1.0).abs() > (worst - 1.0).abs() { ratio } else { worst };
    let all: Option<Vec<f64>> = ratios.map(known).collect();
    all.map_or(f64::NAN, |ratios| ratios.into_iter().fold(1.0, worse))
}

pub fn judged(measured: &BTreeMap<Case, Measured>) -> Vec<Verdict> {
    let of = |fabric, size, depth| measured.get(&load(fabric, false, (size, depth)));
    let rate = |fabric, (size, depth)| of(fabric, size, depth).map_or(0.0, |of: &Measured| of.bytes_per_s);
    let mb = |fabric| of(fabric, FOUR_PORTS.0, FOUR_PORTS.1).map_or(0.0, Measured::document_mb_per_s);
    let shown =
        |id: &str, what: &str, paper, ours, unit| Verdict::shown(Kind::Prediction, id, what, paper, known(ours), unit);
    let either = "either explanation is possible; the document leaves it open: \"the CPU, the PCI-X bus, benchmark \
                  software, driver software, Vfx module, or something else\"";
    let ratios =
        SRP_SIZES_KIB.iter().map(|&size| rate(Fabric::Srp4x, (size, LARGE.1)) / rate(Fabric::Server, (size, LARGE.1)));
    let mut verdicts = vec![
        shown("G16-cards", "4x HCA, two gateway cards behind a 1x link each", 470.0, mb(Fabric::TwoCards), "MB/s")
            .of("G16")
            .predicted(0.05)
            .tolerance_reason(either)
            .note(format!(
                "First explanation. The MTU is not known: 440, 463, 476 or 481 MB/s at 256, 512, 1,024 or 2,048 bytes; \
                 {MTU_2003} was assumed."
            )),
        Verdict::shown(
            Kind::Fit,
            "G16-bus",
            "4x HCA behind a host bus of 64 bits and 66 MHz",
            470.0,
            known(mb(Fabric::HostBus)),
            "MB/s",
        )
        .of("G16")
        .held(0.05)
        .tolerance_reason(either)
        .note(
            "Second explanation. 88 % of the cycles of the bus carry data: 470 of its 533 MB/s, so the number is an input and \
             no prediction.",
        ),
        Verdict::shown(
            Kind::Derived,
            "G18",
            "4x HCA through two cards / one HBA of 2GFC",
            2.35,
            known(rate(Fabric::TwoCards, FOUR_PORTS) / rate(Fabric::Server, LARGE)),
            "",
        )
        .of("G18")
        .note("The document says \"twice\": 470 MB/s of G16 and the 200 MB/s of a line of 2GFC."),
        shown(
            "G19",
            "SRP through a gateway with one port of 2GFC / HBA, farthest of three sizes",
            100.0,
            100.0 * farthest(ratios),
            "%",
        )
        .of("G19")
        .predicted(0.03)
        .tolerance_reason("the document compares two curves")
        .note("Reads of 64, 128 and 512 KiB, 8 at once. The gateway passes data on frame by frame."),
    ];
    verdicts.extend(orderings(measured));
    verdicts
}

/// The orderings of the four fabrics. The number is that of the sizes at which they hold.
fn orderings(measured: &BTreeMap<Case, Measured>) -> Vec<Verdict> {
    let of = |fabric, size| measured.get(&load(fabric, false, (size, 1)));
    let all = SIZES_KIB.len() as f64;
    let holds = |better: Fabric, worse: Fabric, value: fn(&Measured) -> f64| {
        let is_so = |size: &&u32| {
            of(better, **size).zip(of(worse, **size)).is_some_and(|(better, worse)| {
                let both_move = better.bytes_per_s > 0.0 && worse.bytes_per_s > 0.0;
                both_move && value(better) > value(worse)
            })
        };
        SIZES_KIB.iter().filter(is_so).count() as f64
    };
    let row = |id: &'static str, what: &str, ours: f64, note: &str| {
        Verdict::shown(Kind::Prediction, id, what, all, Some(ours), "sizes")
            .of(id)
            .predicted(0.0)
            .tolerance_reason("an ordering holds at every size")
            .note(note.to_owned())
    };
    let rate = |measured: &Measured| measured.bytes_per_s;
    // Seconds per byte, so that less is more.
    let thrift = |measured: &Measured| measured.bytes_per_s / measured.cpu.max(1e-12);
    let lowest = [Fabric::Srp1x, Fabric::Router, Fabric::Ipoib]
        .map(|other| holds(Fabric::Server, other, thrift))
        .into_iter()
        .fold(all, f64::min);
    let one = "reads of 1 to 128 KiB, one at a time";
    vec![
        row(
            "G20",
            &format!("FC faster than SRP over 1x, {one}"),
            holds(Fabric::Server, Fabric::Srp1x, rate),
            "The 1x line is not slower than FC; the gateway adds its time to each command.",
        ),
        row(
            "G21",
            &format!("SRP over 1x faster than iSCSI on GigE, {one}"),
            holds(Fabric::Srp1x, Fabric::Router, rate),
            "206 MB/s behind the gateway against 118 MB/s.",
        ),
        row(
            "G22",
            &format!("iSCSI on GigE faster than iSCSI on IPoIB, {one}"),
            holds(Fabric::Router, Fabric::Ipoib, rate),
            &format!(
                "One router more, packets of at most {} bytes from end to end because the MTU of the subnet is {MTU_2003}, and \
                 more processor time for each packet.",
                MTU_2003 - IPOIB_HEADER_BYTES
            ),
        ),
        row(
            "G23",
            &format!("FC needs the least processor time per byte of the four, {one}"),
            lowest,
            "The costs are those of the preset server-2003. Those of SRP are an input: a command as over FC, 6 us to register its \
             memory and 3 us for its completion. So FC against SRP is assumed, and FC against iSCSI predicted.",
        ),
    ]
}

/// Statements that are not checked, with the reasons.
pub const NOT_CHECKED: [&str; 3] = [
    "G24 (prices): an iSCSI HBA cost 25 to 50 % less than an FC HBA, and a GigE NIC under 10 % of it. A price is no result \
     of a simulation.",
    "G15 (a definition): the document divides the load of the processor by the throughput. Seconds of processor time per GB \
     are the same number in other units; Figure 6 and the rows of G13, G14 and G23 have it.",
    "Figures 2 to 6 and 8 to 11 are lost; the text names no host, no bus, no kernel and no sizes. The figures here are \
     ours alone, in the style of the document, and no curve is compared with an original.",
];
