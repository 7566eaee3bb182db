//! The columns of a time series: [`SeriesColumn`].

use super::Series;

/// One quantity of one element over time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeriesColumn<'a> {
    /// `total`, `hosts`, `links`, `plane_links` or `storage`.
    pub part: &'static str,
    /// Index of the element in the list of the part; 0 for the totals.
    pub index: usize,
    /// Name of the element; `None` for the totals.
    pub element: Option<&'a str>,
    /// Name of the quantity.
    pub quantity: &'static str,
    /// One value for each step.
    pub values: SeriesValues<'a>,
}

/// Values of a column, one for each step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SeriesValues<'a> {
    /// Rates, times and fractions.
    Floats(&'a [f64]),
    /// Counts.
    Counts(&'a [u64]),
}

impl SeriesColumn<'_> {
    /// Name of the column, like a path of the results: `hosts.server1.throughput_bytes_per_s`.
    pub fn name(&self) -> String {
        match self.element {
            Some(element) => format!("{}.{element}.{}", self.part, self.quantity),
            None => format!("{}.{}", self.part, self.quantity),
        }
    }
}

impl Series {
    /// Start of a step in seconds.
    pub fn at_s(&self, step: usize) -> f64 {
        // Rounded because 0.1 * 3 would print as 0.30000000000000004.
        (step as f64 * self.interval_s * 1e12).round() / 1e12
    }

    /// All columns: the totals, then hosts, links of Fibre Channel, those of other planes, and
    /// storage systems.
    pub fn columns(&self) -> Vec<SeriesColumn<'_>> {
        let lengths = [
            ("total", 1),
            ("hosts", self.hosts.len()),
            ("links", self.links.len()),
            ("plane_links", self.plane_links.len()),
            ("storage", self.storage.len()),
        ];
        let elements = lengths.into_iter().flat_map(|(part, length)| (0..length).map(move |index| (part, index)));
        elements.flat_map(|(part, index)| self.columns_of(part, index)).collect()
    }

    /// The columns of one element, by the name of its part and its index in the list of the part.
    pub fn columns_of(&self, part: &str, index: usize) -> Vec<SeriesColumn<'_>> {
        use SeriesValues::{Counts, Floats};
        let column = |part, element, quantity, values| SeriesColumn { part, index, element, quantity, values };
        match part {
            "total" => {
                let column = |quantity, values| column("total", None, quantity, values);
                vec![
                    column("throughput_bytes_per_s", Floats(&self.total.throughput_bytes_per_s)),
                    column("iops", Floats(&self.total.iops)),
                    column("latency_mean_us", Floats(&self.total.latency_mean_us)),
                    column("frames_dropped", Counts(&self.total.frames_dropped)),
                ]
            }
            "hosts" => self.hosts.get(index).map_or_else(Vec::new, |host| {
                let column = |quantity, values| column("hosts", Some(&host.name), quantity, values);
                vec![
                    column("throughput_bytes_per_s", Floats(&host.throughput_bytes_per_s)),
                    column("iops", Floats(&host.iops)),
                    column("latency_mean_us", Floats(&host.latency_mean_us)),
                ]
            }),
            "links" => self.links.get(index).map_or_else(Vec::new, |link| {
                let column = |quantity, values| column("links", Some(&link.name), quantity, values);
                vec![
                    column("utilisation", Floats(&link.utilisation)),
                    column("credit_wait_fraction", Floats(&link.credit_wait_fraction)),
                ]
            }),
            "plane_links" => self.plane_links.get(index).map_or_else(Vec::new, |link| {
                vec![column("plane_links", Some(&link.name), "utilisation", Floats(&link.utilisation))]
            }),
            _ => self.storage.get(index).map_or_else(Vec::new, |storage| {
                let column = |quantity, values| column("storage", Some(&storage.name), quantity, values);
                vec![
                    column("throughput_bytes_per_s", Floats(&storage.throughput_bytes_per_s)),
                    column("queue_mean", Floats(&storage.queue_mean)),
                ]
            }),
        }
    }
}
