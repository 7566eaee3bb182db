//! Conditions of a rule on the fields of a frame: [`Matcher`].

use super::field::{Field, Seen};

/// An expression over the fields of a frame, parsed by [`FromStr`](std::str::FromStr).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Matcher {
    /// True if every operand is true.
    All(Vec<Matcher>),
    /// True if at least one operand is true.
    Any(Vec<Matcher>),
    /// True if the operand is false.
    Not(Box<Matcher>),
    /// Comparison of a field with a value.
    Is(Comparison),
}

/// Comparison of a field with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// Field of the frame.
    pub field: Field,
    /// Operator between field and value.
    pub operator: Operator,
    /// Value to compare with.
    pub value: u64,
}

named_variants! {
    /// Comparison operator. An operator precedes the operators that are prefixes of it, because the
    /// parser tries them in this order.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Operator {
        /// Field and value are equal.
        Equal => "==",
        /// Field and value differ.
        Unequal => "!=",
        /// The field is at most the value.
        LessOrEqual => "<=",
        /// The field is at least the value.
        GreaterOrEqual => ">=",
        /// The field is below the value.
        Less => "<",
        /// The field is above the value.
        Greater => ">",
    }
}

impl Operator {
    fn holds(self, field: u64, value: u64) -> bool {
        match self {
            Operator::Equal => field == value,
            Operator::Unequal => field != value,
            Operator::Less => field < value,
            Operator::LessOrEqual => field <= value,
            Operator::Greater => field > value,
            Operator::GreaterOrEqual => field >= value,
        }
    }
}

impl Matcher {
    /// True if the expression matches the frame.
    pub fn holds(&self, seen: &Seen<'_>) -> bool {
        match self {
            Matcher::All(list) => list.iter().all(|one| one.holds(seen)),
            Matcher::Any(list) => list.iter().any(|one| one.holds(seen)),
            Matcher::Not(one) => !one.holds(seen),
            Matcher::Is(Comparison { field, operator, value }) => {
                field.of(seen).is_some_and(|found| operator.holds(found, *value))
            }
        }
    }
}
