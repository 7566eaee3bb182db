//! Parser of a [`Matcher`], and its error with a position: [`BadMatch`].

use super::expression::{Comparison, Matcher, Operator};
use super::field::{FIELDS, Field};
use std::fmt;
use std::str::FromStr;

/// Longest permitted expression, in bytes.
const MAX_BYTES: usize = 1_000;
/// Deepest permitted nesting of brackets and negations.
const MAX_DEPTH: usize = 32;

/// Syntax error in an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadMatch {
    /// The whole text.
    pub text: String,
    /// Offset of the error, in bytes.
    pub at: usize,
    /// Length of the wrong part, in bytes.
    pub len: usize,
    /// Description of the error.
    pub reason: String,
    /// Suggested correction.
    pub remedy: String,
}

impl std::error::Error for BadMatch {}

impl fmt::Display for BadMatch {
    /// Writes the reason, the text with a mark under the error, and the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.text[..self.at].chars().count();
        let width = self.text[self.at..self.at + self.len].chars().count().max(1);
        writeln!(f, "{}", self.reason)?;
        writeln!(f, "  {}", self.text)?;
        writeln!(f, "  {}{}", " ".repeat(column), "^".repeat(width))?;
        write!(f, "  help: {}", self.remedy)
    }
}

impl FromStr for Matcher {
    type Err = BadMatch;

    fn from_str(text: &str) -> Result<Matcher, BadMatch> {
        let text = text.trim_end();
        if text.len() > MAX_BYTES || text.chars().any(char::is_control) {
            let reason = format!("an expression is one line of at most {MAX_BYTES} bytes");
            let remedy = "split it into several rules".to_owned();
            return Err(BadMatch { text: String::new(), at: 0, len: 0, reason, remedy });
        }
        let mut parser = Parser { text, at: 0, depth: 0 };
        let matcher = parser.any()?;
        match parser.rest() {
            "" => Ok(matcher),
            _ => Err(parser.wrong(
                parser.word_len(),
                "unexpected text after the expression",
                "join comparisons with && or ||",
            )),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Skips spaces and returns the remaining text.
    fn rest(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Length of the next word in bytes: at least one character, unless the text ends here.
    fn word_len(&self) -> usize {
        let rest = &self.text[self.at..];
        let word = rest.find(|c: char| !(c.is_alphanumeric() || "_-.:".contains(c))).unwrap_or(rest.len());
        word.max(rest.chars().next().map_or(0, char::len_utf8))
    }

    fn wrong(&self, len: usize, reason: impl Into<String>, remedy: impl Into<String>) -> BadMatch {
        BadMatch { text: self.text.to_owned(), at: self.at, len, reason: reason.into(), remedy: remedy.into() }
    }

    fn any(&mut self) -> Result<Matcher, BadMatch> {
        self.list("||", Parser::all, Matcher::Any)
    }

    fn all(&mut self) -> Result<Matcher, BadMatch> {
        self.list("&&", Parser::one, Matcher::All)
    }

    fn list(
        &mut self,
        between: &str,
        item: fn(&mut Parser<'t>) -> Result<Matcher, BadMatch>,
        join: fn(Vec<Matcher>) -> Matcher,
    ) -> Result<Matcher, BadMatch> {
        let first = item(self)?;
        let mut list = vec![first];
        while self.take(between) {
            list.push(item(self)?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { join(list) })
    }

    fn one(&mut self) -> Result<Matcher, BadMatch> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.wrong(1, "the expression is nested too deep", "use fewer brackets"));
        }
        let matcher = if !self.rest().starts_with("!=") && self.take("!") {
            Matcher::Not(Box::new(self.one()?))
        } else if self.take("(") {
            let inner = self.any()?;
            if !self.take(")") {
                let len = self.word_len();
                return Err(self.wrong(len, "a closing bracket is missing here", "add )"));
            }
            inner
        } else {
            Matcher::Is(self.comparison()?)
        };
        self.depth -= 1;
        Ok(matcher)
    }

    fn comparison(&mut self) -> Result<Comparison, BadMatch> {
        let rest = self.rest();
        let len = self.word_len();
        let Some(field) = Field::named(&rest[..len]) else {
            let reason = match len {
                0 => "a comparison is missing here".to_owned(),
                _ => format!("there is no field `{}`", &rest[..len]),
            };
            let known: Vec<&str> = FIELDS.iter().map(|(_, name)| *name).collect();
            return Err(self.wrong(len, reason, format!("fields are {}", known.join(", "))));
        };
        self.at += len;
        self.rest();
        let operator = Operator::NAMES.iter().find(|(text, _)| self.take(text)).map(|(_, operator)| *operator);
        let Some(operator) = operator else {
            let len = self.word_len();
            let reason = format!("`{field}` has no comparison operator");
            return Err(self.wrong(len, reason, "write ==, !=, <, <=, > or >= and a value"));
        };
        let rest = self.rest();
        let len = self.word_len();
        let value = self.value(field, &rest[..len])?;
        self.at += len;
        Ok(Comparison { field, operator, value })
    }

    fn value(&self, field: Field, word: &str) -> Result<u64, BadMatch> {
        let hex = |digits: &str| match digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            true => u64::from_str_radix(digits, 16).ok(),
            false => None,
        };
        let number = match (word.strip_prefix("0x"), field.is_address()) {
            (Some(digits), _) => hex(digits),
            (None, true) if word.len() == 6 => hex(word),
            (None, true) => None,
            (None, false) if word.bytes().all(|b| b.is_ascii_digit()) => word.parse().ok(),
            (None, false) => field.value_of(word),
        };
        let remedy = || match field {
            Field::SId | Field::DId => "an address is six hexadecimal digits, such as 010200".to_owned(),
            Field::Direction => "write in or out".to_owned(),
            Field::Els => {
                "write a name of the standard such as PLOGI, FDISC or LS_ACC, or a number such as 0x03".to_owned()
            }
            Field::Ct => "write a name of the standard such as GID_FT, or a number such as 0x0171".to_owned(),
            Field::SwIls => "write a name of the standard such as SFC, or a number such as 0x25".to_owned(),
            Field::Bls => "write ABTS, BA_ACC or BA_RJT, or a number such as 0x81".to_owned(),
            Field::Fcp => "write CMND, XFER_RDY, DATA, RSP or CONF".to_owned(),
            Field::Scsi => "write a name of the standard such as READ_10, or a number such as 0x28".to_owned(),
            _ => format!("write a number from 0 to {}; a hexadecimal number starts with 0x", field.max()),
        };
        match number {
            Some(value) if value <= field.max() => Ok(value),
            Some(_) => Err(self.wrong(word.len(), format!("`{word}` is too large for `{field}`"), remedy())),
            None if word.is_empty() => Err(self.wrong(0, format!("the value of `{field}` is missing"), remedy())),
            None => Err(self.wrong(word.len(), format!("`{word}` is not a value of `{field}`"), remedy())),
        }
    }
}
