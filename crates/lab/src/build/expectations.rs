//! `[[expect]]`: bounds, and a check whether their paths can occur in the results.

use super::Where;
use crate::diagnostic::{Origin, Sink};
use crate::document::Document;
use crate::element::Element;
use crate::{amount, overrides, suggest, value};
use sanloom_api::results::{Stray, stray};
use sanloom_fc::san::{Expectation, Lab, ProblemKind};

/// Text before the list of all result fields.
const ALL_PATHS: &str = "paths begin with";

/// Fills `lab.expectations`. If `names_are_missing`, nodes or links have errors, and names in paths
/// are not checked.
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
        if element.get("metric").is_some()
            && let Some(stray) = stray(&metric, (!names_are_missing).then_some(&*lab))
        {
            report(&metric, stray, &element.origin("metric"), sink);
        }
        let [min, max] = ["min", "max"].map(|key| bound(&element, key, &metric, sink));
        lab.expectations.push(Expectation { metric, min, max });
        places.push(Where::new(element));
    }
    places
}

/// Returns a bound in the unit of the metric.
fn bound(element: &Element<'_>, key: &str, metric: &str, sink: &mut Sink) -> Option<f64> {
    let Some(text) = element.text(key) else { return element.number(key) };
    amount::bound(metric, text).map_err(|bad| sink.error(bad.code, &element.origin(key), bad.reason, bad.remedy)).ok()
}

fn report(metric: &str, stray: Stray, origin: &Origin, sink: &mut Sink) {
    let metric = value::cut(metric.trim());
    let (reason, (word, known), otherwise) = match stray {
        Stray::Fold { word, known } => {
            let reason = format!("`{}` cannot be made of several numbers", value::cut(&word));
            (reason, (word, known), "choose one of")
        }
        Stray::Field { inside, part, known } if inside.is_empty() => {
            (format!("the results have no field `{}`", value::cut(&part)), (part, known), ALL_PATHS)
        }
        Stray::Field { inside, part, known } => {
            let reason = format!("`{}` of the results has no field `{}`", value::cut(&inside), value::cut(&part));
            (reason, (part, known), "its fields are")
        }
        Stray::Name { part, known } => {
            let reason = format!("`{}` in `{metric}` does not exist in the lab", value::cut(&part));
            (reason, (part, known), "the lab has")
        }
        Stray::NoNumber { known } => {
            (format!("`{metric}` is not a number"), (String::new(), known), "append the name of a field, such as")
        }
    };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let otherwise = match (known.is_empty(), otherwise) {
        (true, _) => "name something that the lab has; `sanloom sim LAB --json -` shows all names".to_owned(),
        (false, ALL_PATHS) => format!("{otherwise} {}", known.join(", ")),
        (false, _) => format!("{otherwise} {}", overrides::few(&known)),
    };
    sink.error(
        ProblemKind::BadExpectation.name(),
        origin,
        reason,
        suggest::remedy(&word, known.iter().copied(), &otherwise),
    );
}
