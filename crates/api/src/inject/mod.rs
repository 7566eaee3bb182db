//! Faults that an operator injects at a port of a running switch: which frames ([`Matcher`]) and what becomes of them ([`Act`]).
//!
//! ```text
//!   expression = term { "||" term }
//!   term       = factor { "&&" factor }
//!   factor     = "!" factor | "(" expression ")" | field operator value
//!   operator   = "==" | "!=" | "<" | "<=" | ">" | ">="
//! ```
//!
//! A field that a frame does not have (`els` of a data frame) makes every comparison with it false. Addresses are six
//! hexadecimal digits, other numbers decimal or hexadecimal behind `0x`; `els`, `sw_ils`, `ct`, `bls`, `fcp` and `scsi` take the
//! names of the standards, too.

mod act;
mod expression;
mod field;
mod parse;

pub use act::{Act, BadAct};
pub use expression::{Comparison, Matcher, Operator};
pub use field::{Direction, Field, Seen};
pub use parse::BadMatch;

use serde::{Deserialize, Serialize};

/// A rule as an operator sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleRow {
    /// Names it.
    pub id: u32,
    /// Port of the switch, as `sw1:0`.
    pub port: String,
    /// Which frames, as it was written.
    pub matches: String,
    /// What becomes of them.
    #[serde(rename = "do")]
    pub act: String,
    /// Frames that it has done that to.
    pub injected: u64,
    /// Frames that it still waits for; nothing: there is no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
}

/// The rules of an instance, in the order in which they were made; those that are over are kept until they are cleared.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RulesView {
    /// The rules.
    pub rules: Vec<RuleRow>,
}
