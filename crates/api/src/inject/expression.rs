//! Which frames a rule is about: [`Matcher`].

use super::field::{Field, Seen};

/// An expression over the fields of a frame. [`FromStr`](std::str::FromStr) reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Matcher {
    /// Every one of them holds.
    All(Vec<Matcher>),
    /// One of them holds.
    Any(Vec<Matcher>),
    /// It does not hold.
    Not(Box<Matcher>),
    /// A field is compared with a value.
    Is(Comparison),
}

/// A field, an operator, and a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// The field.
    pub field: Field,
    /// How both are compared.
    pub operator: Operator,
    /// The value.
    pub value: u64,
}

/// How a field and a value are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // as they read
pub enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// Longer ones come before those that they begin with.
    pub(super) const ALL: [(&'static str, Operator); 6] = [
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];

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
    /// It holds for a frame.
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
