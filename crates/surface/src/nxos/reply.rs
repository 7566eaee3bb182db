//! Results of commands: [`Shown`], [`Problem`].

use crate::fos::fault::Fault;
use serde_json::{Map, Value};

const LATE: &str = "Maximum time of a message exceeded";

/// Output of a command.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shown {
    /// Text of a terminal.
    pub text: String,
    /// The same as values, if the command has such an output.
    pub body: Option<Value>,
}

impl Shown {
    /// Text without values.
    pub fn text(text: impl Into<String>) -> Shown {
        Shown { text: text.into(), body: None }
    }

    /// Text with values.
    pub fn with(text: String, body: Value) -> Shown {
        Shown { text, body: Some(body) }
    }
}

/// Reason why a command has no output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// The command is unknown or incomplete.
    Syntax(String),
    /// The command failed, with the text of the switch.
    Failed(String),
    /// There is nothing to show. It is text at a terminal, and a failure where values are expected.
    Absent(String),
    /// The role of the user does not permit the command.
    Denied,
    /// The command has no structured output.
    Unstructured,
    /// The output goes to a filter, so it has no structure.
    Piped,
    /// A command that changes something, where only `show` is permitted.
    NotShow,
    /// A `show`, where only changes are permitted.
    NotConfiguration,
    /// The fabric does not answer.
    Busy,
    /// The output is too long.
    TooLong,
    /// The time of the message is over.
    Late,
}

impl Problem {
    /// Number and text of the interface.
    pub fn code(&self) -> (&'static str, &'static str) {
        match self {
            Problem::Syntax(_) => ("400", "Input CLI command error"),
            Problem::Failed(_) | Problem::Absent(_) => ("400", "CLI execution error"),
            Problem::Denied => ("401", "Permission denied"),
            Problem::Unstructured => ("501", "Structured output unsupported"),
            Problem::Piped => ("501", "Pipe operation not supported in the message"),
            Problem::NotShow => ("405", "Show mode does not allow configuration"),
            Problem::NotConfiguration => ("405", "Configuration mode does not allow show"),
            Problem::Busy => ("500", "Backend processing error"),
            Problem::Late => ("413", LATE),
            Problem::TooLong => ("413", "Response size is too large"),
        }
    }

    /// Text of a terminal.
    pub fn text(&self) -> String {
        match self {
            Problem::Syntax(text) | Problem::Failed(text) | Problem::Absent(text) => text.clone(),
            Problem::Denied => "% Permission denied for the role\n".to_owned(),
            Problem::Busy => "the fabric is busy; try again\n".to_owned(),
            Problem::Late => format!("{LATE}\n"),
            _ => String::new(),
        }
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        match fault.status {
            503 => Problem::Busy,
            _ => failed(fault.message),
        }
    }
}

/// A failure with the text of the switch.
pub fn failed(text: impl std::fmt::Display) -> Problem {
    Problem::Failed(format!("{text}\n"))
}

/// Nothing to show, with the text of the switch.
pub fn absent(text: impl std::fmt::Display) -> Problem {
    Problem::Absent(format!("{text}\n"))
}

/// Result of a command.
pub type Outcome = Result<Shown, Problem>;

/// A table in the shape of the interface: one row is an object, several are a list.
pub fn table(name: &str, mut rows: Vec<Value>) -> (String, Value) {
    let rows = if rows.len() == 1 { rows.remove(0) } else { Value::Array(rows) };
    (format!("TABLE_{name}"), Value::Object(Map::from_iter([(format!("ROW_{name}"), rows)])))
}

/// An object of named values.
pub fn object(values: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(Map::from_iter(values))
}

/// An object of texts and numbers, with further members behind them.
pub fn row(values: &[(&str, Value)], more: impl IntoIterator<Item = (String, Value)>) -> Value {
    object(values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).chain(more))
}
