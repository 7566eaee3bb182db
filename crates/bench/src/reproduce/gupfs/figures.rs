//! Figures in the style of document 004, whose originals are lost.

use super::bridges::SIDE_BY_SIDE;
use super::labs::{Case, Fabric, Measured};
use super::{SIZES_KIB, load};
use sanloom_console::report::plot::{Plot, PlotCurve};
use std::collections::BTreeMap;

/// Returns a figure over the size of reads.
pub fn by_size(title: String, y: &str, curves: Vec<PlotCurve>) -> Plot {
    Plot { title, x: "size of a read, KiB".to_owned(), y: y.to_owned(), curves, levels: Vec::new(), is_log: true }
}

fn plot(title: &str, y: &str, curves: Vec<PlotCurve>) -> Plot {
    by_size(format!("{title} (ours; the original is lost)"), y, curves)
}

/// Returns Figures 3, 4, 10 and 11: reads one at a time.
pub fn plots(measured: &BTreeMap<Case, Measured>) -> Vec<Plot> {
    let curve = |fabric: Fabric, name: &str, value: fn(&Measured) -> f64| PlotCurve {
        name: name.to_owned(),
        points: SIZES_KIB
            .iter()
            .filter_map(|&size| Some((f64::from(size), value(measured.get(&load(fabric, false, (size, 1)))?))))
            .collect(),
    };
    let cpu = |of: &Measured| 100.0 * of.cpu;
    let two = [(Fabric::Server, "FC"), (Fabric::SoftwareIscsi, "software iSCSI")];
    let both = |value| two.map(|(fabric, name)| curve(fabric, name, value)).to_vec();
    let four = |value| SIDE_BY_SIDE.map(|(fabric, name)| curve(fabric, name, value)).to_vec();
    vec![
        plot("Figure 3: FC and iSCSI", "MB/s", both(Measured::document_mb_per_s)),
        plot("Figure 4: processor load", "% of the processor", both(cpu)),
        plot("Figure 10: storage fabrics", "MB/s", four(Measured::document_mb_per_s)),
        plot("Figure 11: processor load of the fabrics", "% of the processor", four(cpu)),
    ]
}
