//! Faults that an operator injects at a port of a running switch. A rule has a condition on frames
//! ([`Matcher`]) and an action ([`Act`]).
//!
//! ```text
//!   expression = term { "||" term }
//!   term       = factor { "&&" factor }
//!   factor     = "!" factor | "(" expression ")" | field operator value
//!   operator   = "==" | "!=" | "<" | "<=" | ">" | ">="
//! ```
//!
//! If a frame does not have a field (`els` of a data frame), every comparison with this field is
//! false. Addresses are six hexadecimal digits. Other numbers are decimal, or hexadecimal after
//! `0x`. The fields `els`, `sw_ils`, `ct`, `bls`, `fcp` and `scsi` also accept the names of the
//! standards.

mod act;
mod expression;
mod field;
mod parse;

pub use act::{Act, BadAct};
pub use expression::{Comparison, Matcher, Operator};
pub use field::{Direction, Field, Seen};
pub use parse::BadMatch;

use serde::{Deserialize, Serialize};

/// A rule as displayed to an operator.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleRow {
    /// Identifier of the rule.
    pub id: u32,
    /// Port of the switch, for example `sw1:0`.
    pub port: String,
    /// Condition on frames, as the operator wrote it.
    pub matches: String,
    /// Action on matching frames.
    #[serde(rename = "do")]
    pub act: String,
    /// Number of frames on which the action was performed.
    pub injected: u64,
    /// Number of frames still to inject; absent if unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
}

/// Rules of an instance, in order of creation. Completed rules are kept until they are cleared.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RulesView {
    /// One row for each rule.
    pub rules: Vec<RuleRow>,
}
