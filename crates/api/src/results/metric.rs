//! Look-up of a number by its path: [`Metrics`].

use super::{Results, drops};
use serde_json::Value;

/// Look-up of numbers in results by their path in the JSON. Expectations, sweeps and what-if
/// rankings use such paths.
///
/// - Fields are separated by dots. Elements of a list are identified by their `name`, or by their
///   position from 0: `hosts.server1.throughput_bytes_per_s`, `links.isl1.forward.utilisation`,
///   `faults.0.at_s`.
/// - `*` matches any number of characters of one part. Matches without the rest of the path are
///   left out: `hosts.server*.iops`, `links.*.*.utilisation`.
/// - A path that matches several numbers needs a function: `sum(…)`, `min(…)`, `max(…)`, `mean(…)`,
///   `count(…)`. `count` also counts values that are not numbers: `count(findings.*)`.
/// - A statistic without samples does not exist: if the `count` of a latency is 0, its percentiles,
///   its mean and its maximum are left out.
/// - A reason for drops that did not occur is 0: `drops.crc_error`.
/// - `true` and `false` count as 1 and 0. `series` is not searched.
#[derive(Clone, Debug)]
pub struct Metrics {
    root: Value,
}

impl Metrics {
    /// Prepares results for look-ups.
    pub fn new(results: &Results) -> Metrics {
        let lean = Results { series: super::Series::default(), ..results.clone() };
        let mut root = serde_json::to_value(lean).unwrap_or_default();
        remove_empty_statistics(&mut root);
        Metrics { root }
    }

    /// Returns the number at `path`. `None` if there is none, or if there are several and the path
    /// has no function.
    pub fn get(&self, path: &str) -> Option<f64> {
        if !is_metric_path(path) {
            return None;
        }
        let (fold, inner) = split_fold(path.trim());
        let mut values = Vec::new();
        let none = Value::from(0);
        if let Some((map, reason)) = drops::reason(inner) {
            collect(&self.root, map, &mut values);
            values.iter_mut().for_each(|map| *map = map.get(reason).unwrap_or(&none));
        } else {
            collect(&self.root, inner, &mut values);
        }
        let found: Vec<f64> = values.iter().copied().filter_map(number).collect();
        match fold {
            Some(Fold::Count) => Some(values.len() as f64),
            _ if found.is_empty() => None,
            Some(Fold::Sum) => Some(found.iter().sum()),
            Some(Fold::Mean) => Some(found.iter().sum::<f64>() / found.len() as f64),
            Some(Fold::Min) => found.into_iter().reduce(f64::min),
            Some(Fold::Max) => found.into_iter().reduce(f64::max),
            None => match found[..] {
                [one] => Some(one),
                _ => None,
            },
        }
    }

    /// Returns the frames that Ethernet links brought to the switches whose names match `pattern`.
    /// `None` if there is no such switch.
    pub(super) fn frames_into(&self, pattern: &str) -> Option<f64> {
        let list = |section: &str| self.root.get(section).and_then(Value::as_array).into_iter().flatten();
        let text = |value: &'_ Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        list("ethernet_switches").find(|switch| text(switch, "name").is_some_and(|name| fits(pattern, &name)))?;
        let ways = list("ethernet_links").flat_map(|link| ["forward", "backward"].map(|way| &link[way]));
        let is_into = |way: &&Value| {
            let to = text(way, "to").unwrap_or_default();
            to.rsplit_once(':').is_some_and(|(node, _)| fits(pattern, node))
        };
        Some(ways.filter(is_into).filter_map(|way| way["frames"].as_f64()).sum())
    }

    /// Returns every path of a single number, with the number, in the order of the JSON (keys
    /// sorted). Histograms are left out.
    pub fn all(&self) -> Vec<(String, f64)> {
        let mut out = Vec::new();
        walk(&self.root, &mut String::new(), &mut out);
        out
    }
}

/// Removes the fields of every [`super::Latency`] without samples, except their number.
fn remove_empty_statistics(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("count").and_then(Value::as_u64) == Some(0) && fields.contains_key("p99_9_us") {
                fields.retain(|field, _| field == "count");
            }
            fields.values_mut().for_each(remove_empty_statistics);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_empty_statistics),
        _ => {}
    }
}

/// True if `path` has the syntax of a path of [`Metrics`]: balanced parentheses and no empty part.
/// The results are not considered.
pub fn is_metric_path(path: &str) -> bool {
    let (_, inner) = split_fold(path.trim());
    !inner.is_empty() && !inner.contains(['(', ')']) && inner.split('.').all(|part| !part.trim().is_empty())
}

named_variants! {
    /// Function that reduces several numbers to one.
    #[derive(Clone, Copy)]
    pub(super) enum Fold {
        Sum => "sum",
        Min => "min",
        Max => "max",
        Mean => "mean",
        Count => "count",
    }
}

impl Fold {
    /// True if the function also accepts values that are not numbers.
    pub(super) fn counts(self) -> bool {
        matches!(self, Fold::Count)
    }
}

pub(super) fn split_fold(path: &str) -> (Option<Fold>, &str) {
    let Some((word, inner)) = path.strip_suffix(')').and_then(|path| path.split_once('(')) else {
        return (None, path);
    };
    match Fold::NAMES.iter().find(|(known, _)| *known == word.trim()) {
        Some((_, fold)) => (Some(*fold), inner.trim()),
        None => (None, path),
    }
}

/// Collects the values at `path`. Names may contain dots, so every split of the path at a dot is
/// tried.
fn collect<'a>(value: &'a Value, path: &str, found: &mut Vec<&'a Value>) {
    if path.is_empty() {
        found.push(value);
        return;
    }
    let cuts = path.match_indices('.').map(|(at, _)| (&path[..at], &path[at + 1..])).chain(std::iter::once((path, "")));
    for (part, rest) in cuts {
        if part.contains('*') && part.contains('.') {
            // A wildcard does not extend over a dot.
            continue;
        }
        match value {
            Value::Object(fields) => {
                for (_, child) in fields.iter().filter(|(key, _)| fits(part, key)) {
                    collect(child, rest, found);
                }
            }
            Value::Array(elements) => {
                for (at, child) in elements.iter().enumerate() {
                    let named = child.get("name").and_then(Value::as_str);
                    let hit = match named {
                        Some(name) => fits(part, name),
                        None => part == "*" || part.parse() == Ok(at),
                    };
                    if hit {
                        collect(child, rest, found);
                    }
                }
            }
            _ => {}
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        _ => None,
    }
}

/// True if `name` matches `pattern`, in which `*` stands for any characters.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut rest) = name.strip_prefix(head) else {
        return false;
    };
    let mut parts = tail.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

fn walk(value: &Value, path: &mut String, out: &mut Vec<(String, f64)>) {
    let length = path.len();
    let mut step = |part: &str, child: &Value, path: &mut String| {
        if length > 0 {
            path.push('.');
        }
        path.push_str(part);
        walk(child, path, out);
        path.truncate(length);
    };
    match value {
        Value::Object(fields) => {
            for (key, child) in fields {
                if key != "latency_histogram" {
                    step(key, child, path);
                }
            }
        }
        Value::Array(elements) => {
            for (at, child) in elements.iter().enumerate() {
                match child.get("name").and_then(Value::as_str) {
                    Some(name) => step(name, child, path),
                    None => step(&at.to_string(), child, path),
                }
            }
        }
        other => {
            if let Some(n) = number(other) {
                out.push((path.clone(), n));
            }
        }
    }
}
