//! Formats of metrics, and their negotiation: [`Format`].
//!
//! An instance writes its metrics in the text format of OpenMetrics 1.0. Older programs read the
//! text format of Prometheus 0.0.4.

use crate::accept::quality;
use std::collections::BTreeSet;

/// A text format of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Text format 0.0.4 of Prometheus.
    Prometheus,
}

impl Format {
    /// Format for a client with this `Accept` header: OpenMetrics if the client names it, and does
    /// not prefer the older format.
    pub fn accepted(accept: &str) -> Format {
        let open = quality(accept, &["application/openmetrics-text"]);
        let plain = quality(accept, &["text/plain"]);
        match open.is_named && open.thousandths > 0 && open.thousandths >= plain.thousandths {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    /// Value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts metrics in OpenMetrics to this format.
    pub fn of(self, text: String) -> String {
        match self {
            Format::OpenMetrics => text,
            Format::Prometheus => prometheus(&text),
        }
    }
}

/// Metric families under construction, for drivers without a registry of metrics.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    text: String,
}

impl Sheet {
    /// Adds a counter with its current rows: labels of [`labels`], and values.
    pub fn counter(&mut self, name: &str, help: &str, rows: impl IntoIterator<Item = (String, u64)>) {
        self.family(name, help, "counter");
        for (labels, value) in rows {
            self.text += &format!("sanloom_{name}_total{labels} {value}\n");
        }
    }

    /// Adds a counter of time in seconds: labels of [`labels`], and values in nanoseconds.
    pub fn seconds(&mut self, name: &str, help: &str, rows: impl IntoIterator<Item = (String, u64)>) {
        self.family(name, help, "counter");
        for (labels, ns) in rows {
            let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
            self.text += &format!("sanloom_{name}_total{labels} {seconds}.{rest:09}\n");
        }
    }

    /// Adds a state with its current rows: labels of [`labels`], and values.
    pub fn gauge(&mut self, name: &str, help: &str, rows: impl IntoIterator<Item = (String, f64)>) {
        self.family(name, help, "gauge");
        for (labels, value) in rows {
            self.text += &format!("sanloom_{name}{labels} {value}\n");
        }
    }

    fn family(&mut self, name: &str, help: &str, kind: &str) {
        self.text += &format!("# HELP sanloom_{name} {help}.\n# TYPE sanloom_{name} {kind}\n");
    }

    /// Returns the text in the format of OpenMetrics.
    pub fn text(self) -> String {
        self.text + "# EOF\n"
    }
}

/// Labels of a row. Quotation marks, line feeds and backslashes in values are escaped.
pub fn labels(pairs: &[(&str, &str)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// Comments of a counter name its samples, which end with `_total`. There are neither units nor an
/// end.
fn prometheus(text: &str) -> String {
    let mut counters = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
            counters.insert(name);
        }
    }
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let comment = ["# HELP ", "# TYPE "].into_iter().find_map(|kind| Some((kind, line.strip_prefix(kind)?)));
        match comment.and_then(|(kind, rest)| Some((kind, rest.split_once(' ')?))) {
            Some((kind, (name, rest))) if counters.contains(name) => {
                out.extend([kind, name, "_total ", rest, "\n"]);
            }
            None if line.starts_with("# UNIT ") || line == "# EOF" => {}
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_openmetrics_only_if_it_names_it() {
        let scraper = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        for open in [scraper, "application/openmetrics-text", "application/openmetrics-text;q=0.5, */*;q=0.5"] {
            assert_eq!(Format::accepted(open), Format::OpenMetrics, "{open}");
        }
        for other in [
            "",
            "*/*",
            "application/*",
            "text/plain",
            "application/openmetrics-text;q=0, text/plain",
            "application/openmetrics-text;q=0.1,text/plain",
            "application/openmetrics-text;q=0.1,*/*",
        ] {
            assert_eq!(Format::accepted(other), Format::Prometheus, "{other}");
        }
    }

    #[test]
    fn a_sheet_is_openmetrics_with_escaped_labels() {
        let mut sheet = Sheet::default();
        sheet.counter("port_frames", "Frames of the port", [(labels(&[("link", "a\"b\\c\nd"), ("port", "sw1:0")]), 7)]);
        sheet.gauge("up", "State", [(labels(&[("lab", "x")]), 1.5)]);
        sheet.seconds("wait_seconds", "Time", [(String::new(), 12_000_000_034)]);
        let expected = "# HELP sanloom_port_frames Frames of the port.\n# TYPE sanloom_port_frames counter\n\
                        sanloom_port_frames_total{link=\"a\\\"b\\\\c\\nd\",port=\"sw1:0\"} 7\n\
                        # HELP sanloom_up State.\n# TYPE sanloom_up gauge\nsanloom_up{lab=\"x\"} 1.5\n\
                        # HELP sanloom_wait_seconds Time.\n# TYPE sanloom_wait_seconds counter\n\
                        sanloom_wait_seconds_total 12.000000034\n# EOF\n";
        assert_eq!(sheet.text(), expected);
    }

    #[test]
    fn comments_of_counters_name_their_samples_in_the_older_format() {
        let text = "# HELP sent Frames.\n# TYPE sent counter\n# UNIT sent frames\nsent_total{port=\"a\"} 1\n\
                    # HELP up State.\n# TYPE up gauge\nup 1\n# EOF\n";
        let older = "# HELP sent_total Frames.\n# TYPE sent_total counter\nsent_total{port=\"a\"} 1\n\
                     # HELP up State.\n# TYPE up gauge\nup 1\n";
        assert_eq!(Format::Prometheus.of(text.to_owned()), older);
        assert_eq!(Format::OpenMetrics.of(text.to_owned()), text);
    }
}
