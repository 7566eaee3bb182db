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
    /// True if the value exists and is within both bounds.
    pub ok: bool,
}

impl ExpectationResult {
    /// Compares a number of the results with its bounds.
    pub fn check(metrics: &Metrics, metric: &str, min: Option<f64>, max: Option<f64>) -> ExpectationResult {
        let value = metrics.get(metric);
        let ok = value.is_some_and(|value| min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max));
        ExpectationResult { metric: metric.to_owned(), min, max, value, ok }
    }
}
