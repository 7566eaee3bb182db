//! Figures in the style of the GUPFS report, whose originals are lost.

use super::bridges::{CURVE_KIB, FOUR_PORTS, SIDE_BY_SIDE};
use super::labs::{Case, Fabric, Measured};
use super::{LARGE, SIZES_KIB, load};
use sanloom_console::report::plot::{Level, Plot, PlotCurve};
use std::collections::BTreeMap;

/// Returns a figure over the size of reads.
pub fn by_size(title: String, y: &str, curves: Vec<PlotCurve>) -> Plot {
    Plot { title, x: "size of a read, KiB".to_owned(), y: y.to_owned(), curves, levels: Vec::new(), is_log: true }
}

fn plot(title: &str, y: &str, curves: Vec<PlotCurve>) -> Plot {
    by_size(format!("{title} (ours; the original is lost)"), y, curves)
}

/// Returns Figures 2 to 6 and 8 to 11, except the photographs. Figures 8 and 9 have many requests
/// at once, and the others one.
pub fn plots(measured: &BTreeMap<Case, Measured>) -> Vec<Plot> {
    let points = |fabric: Fabric, sizes: &[u32], depth: u32, value: fn(&Measured) -> f64| {
        let point = |size: u32| Some((f64::from(size), value(measured.get(&load(fabric, false, (size, depth)))?)));
        sizes.iter().filter_map(|&size| point(size)).collect::<Vec<_>>()
    };
    let curves = |fabrics: &[(Fabric, &str)], sizes: &[u32], depth, value| -> Vec<PlotCurve> {
        let curve = |&(fabric, name): &(Fabric, &str)| PlotCurve {
            name: name.to_owned(),
            points: points(fabric, sizes, depth, value),
        };
        fabrics.iter().map(curve).collect()
    };
    let alone = |fabrics: &[(Fabric, &str)], value| curves(fabrics, &SIZES_KIB, 1, value);
    let (mb, cpu, per_gb) = (Measured::document_mb_per_s as fn(&Measured) -> f64, percent as _, seconds_per_gb as _);
    let switches = [(Fabric::Direct, "direct"), (Fabric::SanBox, "SANbox2-16"), (Fabric::SilkWorm, "SilkWorm 3800")];
    let two = [(Fabric::Server, "FC"), (Fabric::SoftwareIscsi, "software iSCSI")];
    let adapters = [(Fabric::Router, "software iSCSI"), (Fabric::RouterHba, "iSCSI adapter")];
    let hbas = [adapters[0], adapters[1], (Fabric::Server, "FC HBA")];
    let cards = [(Fabric::TwoCards, "cards behind 1x links"), (Fabric::HostBus, "bus of the host")];
    let srp = [(Fabric::Server, "FC HBA"), (Fabric::Srp4x, "SRP, 4x, one port of 2GFC")];
    let (load, per_byte) = ("% of the processor", "processor time, s/GB");
    let mut cards =
        plot("Figure 8: a 4x HCA and two gateway cards", "MB/s", curves(&cards, &CURVE_KIB, FOUR_PORTS.1, mb));
    cards.levels.push(Level { name: "best of the document".to_owned(), y: 470.0 });
    vec![
        plot("Figure 2: switches of Fibre Channel", "MB/s", alone(&switches, mb)),
        plot("Figure 3: FC and iSCSI", "MB/s", alone(&two, mb)),
        plot("Figure 4: processor load", load, alone(&two, cpu)),
        plot("Figure 5: software iSCSI and an iSCSI adapter", "MB/s", alone(&adapters, mb)),
        plot("Figure 6: processor time for the same data", per_byte, alone(&hbas, per_gb)),
        cards,
        plot("Figure 9: SRP and an HBA", "MB/s", curves(&srp, &CURVE_KIB, LARGE.1, mb)),
        plot("Figure 10: storage fabrics", "MB/s", alone(&SIDE_BY_SIDE, mb)),
        plot("Figure 11: processor load of the fabrics", load, alone(&SIDE_BY_SIDE, cpu)),
    ]
}

fn percent(of: &Measured) -> f64 {
    100.0 * of.cpu
}

fn seconds_per_gb(of: &Measured) -> f64 {
    of.cpu_s_per_gb
}
