//! Verdicts on the lab's expectations: [`ExpectationResult`].

use super::Metrics;
use serde::{Deserialize, Serialize};

/// A bound of the lab file and the measured value.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectationResult {
    /// Path of the number; see [`Metrics`].
    pub metric: String,
    /// Lower bound, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Upper bound, inclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Measured value; absent if the results have no such number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// True if the value exists and is within both bounds, and says something: a bound on totals
    /// does not hold if the run had no request.
    pub ok: bool,
}

impl ExpectationResult {
    /// Compares a number of the results with its bounds.
    pub fn check(metrics: &Metrics, metric: &str, min: Option<f64>, max: Option<f64>) -> ExpectationResult {
        let value = metrics.get(metric);
        let mut verdict = ExpectationResult { metric: metric.to_owned(), min, max, value, ok: false };
        let requests = ["ios_offered", "ios_completed", "ios_failed", "ios_unfinished"];
        let is_idle = || requests.into_iter().all(|name| metrics.get(&format!("totals.{name}")) == Some(0.0));
        verdict.ok = verdict.is_within() && !(metric.contains("totals.") && is_idle());
        verdict
    }

    /// Returns whether the value exists and is within both bounds.
    fn is_within(&self) -> bool {
        let (min, max) = (self.min.unwrap_or(f64::NEG_INFINITY), self.max.unwrap_or(f64::INFINITY));
        self.value.is_some_and(|value| (min..=max).contains(&value))
    }

    /// Returns whether the expectation fails only because the run had no request.
    pub fn is_about_nothing(&self) -> bool {
        !self.ok && self.is_within()
    }
}
