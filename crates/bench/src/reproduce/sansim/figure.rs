//! Figure 9 of the SANSim paper: throughput against offered load.

use super::cases::{Ask, Case, Measured, Setup};
use sanloom_console::report::figure9::{Curve, Panel, PaperPoint};
use serde_json::{Value, json};

/// Offered loads of a server in MB/s of 1000 * 1024 bytes, for requests of 32 KB.
const LOADS_32: [f64; 9] = [10.0, 25.0, 35.0, 40.0, 45.0, 55.0, 70.0, 85.0, 100.0];
/// The same for requests of 2 KB.
const LOADS_2: [f64; 9] = [10.0, 20.0, 30.0, 35.0, 36.5, 38.0, 40.0, 45.0, 50.0];
/// "significant long (>2ms)": response time in milliseconds.
const LONG_RESPONSE_MS: f64 = 2.0;

/// Case, size in KB, group of servers, and throughput that the text states for the right end of the
/// curve.
const LEVELS: [(Case, u32, usize, f64); 14] = [
    (Case::Healthy, 32, 0, 80.0),
    (Case::Healthy, 2, 0, 45.0),
    (Case::Isl1, 32, 0, 46.0),
    (Case::Isl1, 32, 1, 58.0),
    (Case::Isl1, 2, 0, 44.0),
    (Case::Isl8, 32, 0, 50.0),
    (Case::Isl8, 2, 0, 45.0),
    (Case::Both, 32, 0, 40.0),
    (Case::Both, 32, 1, 42.0),
    (Case::Both, 2, 0, 35.0),
    (Case::Both, 2, 1, 46.0),
    (Case::Healthy, 32, 1, 80.0),
    (Case::Isl8, 32, 1, 50.0),
    (Case::Healthy, 2, 1, 45.0),
];

/// Returns the runs of the whole figure.
pub fn setups() -> Vec<Setup> {
    let mut setups = Vec::new();
    for case in Case::ALL {
        for (size_kib, loads) in [(32, LOADS_32), (2, LOADS_2)] {
            setups.extend(loads.map(|load| offered(case, size_kib, load)));
        }
    }
    setups
}

/// Returns the runs that [`load_of_long_response`] requires.
pub fn response_setups() -> Vec<Setup> {
    LOADS_2.map(|load| offered(Case::Both, 2, load)).to_vec()
}

fn offered(case: Case, size_kib: u32, load: f64) -> Setup {
    Setup { ask: Ask::Offered(load), ..Setup::saturated(case, size_kib) }
}

/// Returns the offered load of a server above which the response time of servers 1 to 4 exceeds 2
/// ms in case IV at 2 KB, in MB/s of 1000 * 1024 bytes, interpolated between two points of the
/// figure.
pub fn load_of_long_response(loaded: &[(Setup, Measured)]) -> Option<f64> {
    let points: Vec<(f64, f64)> = points(loaded, Case::Both, 2, |measured| measured.response_ms[0]);
    points.windows(2).find_map(|pair| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        (y0 <= LONG_RESPONSE_MS && y1 > LONG_RESPONSE_MS).then(|| x0 + (x1 - x0) * (LONG_RESPONSE_MS - y0) / (y1 - y0))
    })
}

/// Returns the four panels.
pub fn panels(loaded: &[(Setup, Measured)]) -> Vec<Panel> {
    Case::ALL
        .iter()
        .map(|&case| {
            let mut panel = Panel { title: format!("Case {}: {}", case.numeral(), case.words()), ..Panel::default() };
            for size_kib in [32, 2] {
                for (group, name) in ["servers 1–4", "servers 5–8"].into_iter().enumerate() {
                    let curve = panel.curves.len();
                    panel.curves.push(Curve {
                        name: format!("{name}, {size_kib} KB"),
                        points: points(loaded, case, size_kib, |measured| measured.servers[group]),
                    });
                    panel.paper.extend(
                        LEVELS.iter().filter(|level| (level.0, level.1, level.2) == (case, size_kib, group)).map(
                            |level| PaperPoint {
                                name: format!("paper: {} MB/s", level.3),
                                offered: None,
                                throughput: level.3,
                                curve,
                            },
                        ),
                    );
                }
            }
            panel
        })
        .collect()
}

fn points(
    loaded: &[(Setup, Measured)],
    case: Case,
    size_kib: u32,
    value: impl Fn(&Measured) -> f64,
) -> Vec<(f64, f64)> {
    loaded
        .iter()
        .filter(|(setup, _)| setup.case == case && setup.size_kib == size_kib)
        .filter_map(|(setup, measured)| match setup.ask {
            Ask::Offered(load) => Some((load, value(measured))),
            Ask::Saturated | Ask::OneDevice => None,
        })
        .collect()
}

/// Returns the figure as data.
pub fn data(panels: &[Panel]) -> Value {
    let panels: Vec<Value> = panels
        .iter()
        .map(|panel| {
            json!({
                "title": panel.title,
                "curves": panel.curves.iter().map(|curve| json!({
                    "name": curve.name,
                    "offered": curve.points.iter().map(|point| point.0).collect::<Vec<_>>(),
                    "throughput": curve.points.iter().map(|point| point.1).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
                "paper": panel.paper.iter().map(|paper| json!({
                    "name": paper.name,
                    "throughput": paper.throughput,
                    "curve": panel.curves.get(paper.curve).map(|curve| &curve.name),
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "unit": super::UNIT_IN_WORDS, "panels": panels })
}
