//! Stop rule of a run: [`Precision`].

use super::Lab;

/// A run ends when the 95 % confidence interval of a mean is this narrow.
#[derive(Clone, PartialEq, Debug)]
pub struct Precision {
    /// Path of the number, such as `totals.iops` or `hosts.server1.latency.mean_us`.
    pub metric: String,
    /// Largest half width of the interval, as a share of the mean: 0.02 is ± 2 %.
    pub relative: f64,
}

/// Number that a stop rule can observe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Completed requests per second.
    Iops,
    /// Completed bytes per second.
    Throughput,
    /// Mean response time.
    Latency,
}

/// Paths of the numbers that a stop rule can observe, behind `totals.` or `hosts.NAME.`.
const QUANTITIES: [(&str, Quantity); 3] = [
    ("iops", Quantity::Iops),
    ("throughput_bytes_per_s", Quantity::Throughput),
    ("latency.mean_us", Quantity::Latency),
];

impl Precision {
    /// Returns the rule of a text such as "ci 2% of totals.iops"; `None` if it has another form.
    pub fn parse(text: &str) -> Option<Precision> {
        let rest = text.trim().strip_prefix("ci ")?;
        let (percent, metric) = rest.split_once('%')?;
        let metric = metric.trim().strip_prefix("of ")?.trim();
        let relative = percent.trim().parse::<f64>().ok()? / 100.0;
        (!metric.is_empty()).then(|| Precision { metric: metric.to_owned(), relative })
    }

    /// Returns the observed number and its host (`None`: all hosts together); `None` if the path
    /// names no such number.
    pub fn target(&self, lab: &Lab) -> Option<(Option<u16>, Quantity)> {
        let quantity_of = |rest: &str| QUANTITIES.iter().find(|(path, _)| *path == rest).map(|&(_, quantity)| quantity);
        if let Some(rest) = self.metric.strip_prefix("totals.") {
            return quantity_of(rest).map(|quantity| (None, quantity));
        }
        let rest = self.metric.strip_prefix("hosts.")?;
        (0..).zip(&lab.hosts).find_map(|(number, host)| {
            let rest = rest.strip_prefix(&host.name)?.strip_prefix('.')?;
            quantity_of(rest).map(|quantity| (Some(number), quantity))
        })
    }
}
