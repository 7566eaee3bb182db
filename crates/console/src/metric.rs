//! Suggestions for a name of a number that results do not have.

use crate::report::format::clean;
use sanloom_api::results::Metrics;
use std::collections::BTreeMap;

/// Maximum number of suggestions.
const OFFERED: usize = 3;
/// Maximum length of a path that is compared. A longer one is not a typing error, and the
/// comparison is quadratic.
const MAX_LENGTH: usize = 200;
/// Minimum similarity of a suggestion, 0 to 1.
const ALIKE: f64 = 0.8;

/// A remedy for a path that gives no single number.
pub fn remedy(metrics: &Metrics, path: &str) -> String {
    let path = path.trim();
    let (fold, inner) = match path.strip_suffix(')').and_then(|path| path.split_once('(')) {
        Some((fold, inner)) => (Some(fold.trim()), inner.trim()),
        None => (None, path),
    };
    if fold.is_none() && metrics.get(&format!("count({inner})")).is_some_and(|count| count > 1.0) {
        let inner = clean(inner);
        return format!("it fits several numbers; write sum({inner}), min(…), max(…) or mean(…)");
    }
    let near = nearest(metrics, inner);
    if near.is_empty() {
        return "`sanloom sim LAB --json` shows all names".into();
    }
    let near: Vec<String> = near
        .iter()
        .map(|name| match fold {
            Some(fold) => format!("`{}({})`", clean(fold), clean(name)),
            None => format!("`{}`", clean(name)),
        })
        .collect();
    match near.split_last() {
        Some((last, [])) => format!("did you mean {last}?"),
        Some((last, others)) => format!("did you mean {} or {last}?", others.join(", ")),
        None => String::new(),
    }
}

/// The names most like `path`, best first. Names that begin or end like `path` come before names
/// that are only similar.
fn nearest(metrics: &Metrics, path: &str) -> Vec<String> {
    if path.len() > MAX_LENGTH {
        return Vec::new();
    }
    let wanted = path.to_lowercase();
    let mut scores: BTreeMap<String, f64> = BTreeMap::new();
    for (name, _) in metrics.all() {
        let name = with_wildcards(&name, path);
        if name.len() > MAX_LENGTH || scores.contains_key(&name) {
            continue;
        }
        let other = name.to_lowercase();
        let contains =
            other.strip_suffix(&wanted).is_some_and(|rest| rest.ends_with('.')) || other.starts_with(&wanted);
        let score = f64::from(u8::from(contains)) + strsim::jaro_winkler(&wanted, &other);
        scores.insert(name, score);
    }
    let mut near: Vec<(String, f64)> =
        scores.into_iter().filter(|(name, score)| *score > ALIKE && name != path).collect();
    // Equally similar names keep their order.
    near.sort_by(|a, b| b.1.total_cmp(&a.1));
    near.truncate(OFFERED);
    near.into_iter().map(|(name, _)| name).collect()
}

/// Replaces the parts of a name at which `path` has wildcards by these wildcards.
fn with_wildcards(name: &str, path: &str) -> String {
    if !path.contains('*') {
        return name.to_owned();
    }
    let mut wanted = path.split('.');
    let parts: Vec<&str> =
        name.split('.').map(|part| wanted.next().filter(|wanted| wanted.contains('*')).unwrap_or(part)).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sanloom_api::results::{HostResult, IoStats, Latency, Results};

    fn hint(path: &str) -> String {
        // Percentiles of nothing would be no numbers.
        let latency = Latency { count: 1, ..Latency::default() };
        let io = IoStats { latency, ..IoStats::default() };
        let host = |name: &str| HostResult { name: name.into(), io: io.clone(), ..HostResult::default() };
        let results = Results { hosts: vec![host("server1"), host("server2")], ..Results::default() };
        remedy(&Metrics::new(&results), path)
    }

    #[test]
    fn finds_the_intended_metric() {
        for (path, meant) in [
            ("totals.iopss", "`totals.iops`"),
            ("iops", "`totals.iops`"),
            ("totals.throughput", "`totals.throughput_bytes_per_s`"),
            ("hosts.server9.iops", "`hosts.server1.iops`"),
            ("max(hosts.*.latency.p99)", "`max(hosts.*.latency.p99_us)`"),
        ] {
            let hint = hint(path);
            assert!(hint.starts_with("did you mean ") && hint.contains(meant), "{path}: {hint}");
        }
    }

    #[test]
    fn a_path_to_several_numbers_requires_a_function() {
        assert!(hint("hosts.*.iops").contains("sum(hosts.*.iops)"), "{}", hint("hosts.*.iops"));
    }

    #[test]
    fn an_unrelated_name_has_no_suggestion() {
        assert!(hint("zzz").contains("--json"), "{}", hint("zzz"));
        assert!(hint(&"x".repeat(10_000)).contains("--json"));
    }
}
