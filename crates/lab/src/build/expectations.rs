//! `[[expect]]`: bounds, and whether their paths can lead to anything in the results.

use super::Where;
use crate::diagnostic::{Origin, Sink};
use crate::document::Document;
use crate::{overrides, suggest, value};
use sanloom_core::config::{Expectation, Lab, ProblemKind};

/// The fields of the results that hold numbers, as `sanloom sim --json` prints them.
const FIELDS: [&str; 15] = [
    "totals",
    "hosts",
    "streams",
    "links",
    "ports",
    "storage",
    "switches",
    "drops",
    "conservation",
    "faults",
    "events",
    "findings",
    "replications",
    "lab",
    "engine",
];

/// What may be made of several numbers.
const FOLDS: [&str; 5] = ["sum", "min", "max", "mean", "count"];

/// Fills `lab.expectations`. `names_are_missing`: nodes or links are broken, so names in paths are not looked at.
pub(super) fn build<'d>(
    document: &'d Document,
    lab: &mut Lab,
    names_are_missing: bool,
    sink: &mut Sink,
) -> Vec<Where<'d>> {
    let mut places = Vec::new();
    for element in document.list("expect") {
        element.require_keys(sink);
        let metric = element.text("metric").unwrap_or("").to_owned();
        if element.get("metric").is_some() {
            check(&metric, lab, names_are_missing, &element.origin("metric"), sink);
        }
        lab.expectations.push(Expectation { metric, min: element.number("min"), max: element.number("max") });
        places.push(Where::new(element));
    }
    places
}

fn check(metric: &str, lab: &Lab, names_are_missing: bool, origin: &Origin, sink: &mut Sink) {
    let mut fail = |reason: String, remedy: String| {
        sink.error(ProblemKind::BadExpectation.name(), origin, reason, remedy);
    };
    let mut path = metric.trim();
    if let Some((fold, inner)) = path.strip_suffix(')').and_then(|path| path.split_once('(')) {
        if !FOLDS.contains(&fold.trim()) {
            let remedy = suggest::remedy(fold, FOLDS.into_iter(), &format!("choose one of {}", FOLDS.join(", ")));
            return fail(format!("`{}` cannot be made of several numbers", value::cut(fold)), remedy);
        }
        path = inner.trim();
    }
    let mut parts = path.split('.');
    let first = parts.next().unwrap_or("");
    if !FIELDS.iter().any(|field| fits(first, field)) {
        let near = suggest::remedy(first, FIELDS.into_iter(), &format!("paths begin with {}", FIELDS.join(", ")));
        return fail(format!("the results have no field `{}`", value::cut(first)), near);
    }
    let Some(name) = parts.next() else {
        return;
    };
    let known: Vec<&str> = match first {
        "hosts" => lab.hosts.iter().map(|h| h.name.as_str()).collect(),
        "links" => lab.links.iter().map(|l| l.name.as_str()).collect(),
        "storage" => lab.storage.iter().map(|s| s.name.as_str()).collect(),
        "switches" => lab.switches.iter().map(|s| s.name.as_str()).collect(),
        "streams" => lab.workloads.iter().map(|w| w.name.as_str()).collect(),
        _ => return,
    };
    if names_are_missing || known.iter().any(|known| fits(name, known)) {
        return;
    }
    let otherwise = match known.is_empty() {
        true => "name something that the lab has".to_owned(),
        false => format!("the lab has {}", overrides::few(&known)),
    };
    fail(
        format!("`{}` in `{}` names nothing in the lab", value::cut(name), value::cut(path)),
        suggest::remedy(name, known.iter().copied(), &otherwise),
    );
}

/// Whether `name` fits `pattern`, in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let (middle, end) = tail.rsplit_once('*').unwrap_or(("", tail));
    let Some(mut rest) = name.strip_prefix(head).and_then(|rest| rest.strip_suffix(end)) else {
        return false;
    };
    for part in middle.split('*') {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name) in [("*", "a"), ("a*", "a"), ("a*c", "abbc"), ("*b*", "abc"), ("a*b*c", "a1b2c")] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "b"), ("ab*ba", "aba"), ("a*d", "abc"), ("*x*", "abc"), ("a*b*c", "acb")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
