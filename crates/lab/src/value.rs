//! Check of one TOML value against one [`Kind`].

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

use crate::diagnostic::{Origin, Sink};
use crate::schema::{Kind, Word};
use crate::units::{self, BadQuantity, Dimension};
use crate::{forms, presets, suggest};
use sanloom_fc::config::{Arrival, EthernetRate, InfinibandRate, LineRate, Picos, SizeDistribution, TimeDistribution};
use sanloom_fc::san::Precision;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

/// A value of a [`Kind`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    /// An invalid value, which has been reported.
    Bad,
    /// A table; its keys have entries of their own.
    Present,
    Text(String),
    Integer(u64),
    /// The word of [`Kind::IntegerOr`] or [`Kind::TimeOr`].
    Word,
    Number(f64),
    Flag(bool),
    Time(Picos),
    /// In millimetres.
    Length(u64),
    /// In bytes.
    Size(u64),
    /// In thousandths per second.
    PerSecond(u64),
    /// In hertz.
    Clock(u64),
    /// Bits per second.
    BitRate(u64),
    LineRate(LineRate),
    EthernetRate(EthernetRate),
    InfinibandRate(InfinibandRate),
    Numbers(Vec<u64>),
    /// Index of the word.
    Choice(usize),
    Wwn(u64),
    Patterns(Vec<(String, Origin)>),
    Arrivals(Vec<Arrival>),
    Sizes(SizeDistribution),
    Times(TimeDistribution),
    StopRule(Precision),
}

/// Converts byte ranges of a parsed text to origins.
#[derive(Clone, Copy)]
pub(crate) enum Places {
    /// Byte ranges of the file.
    File,
    /// Byte ranges of a value in a `--set` argument: number of the argument, offset of the value.
    Set(u32, usize),
    /// Byte ranges of a preset or default.
    BuiltIn,
}

impl Places {
    pub fn origin(self, span: Range<usize>) -> Origin {
        match self {
            Places::File => Origin::File(span.start, span.end),
            Places::Set(number, offset) => Origin::Set(number, span.start + offset, span.end + offset),
            Places::BuiltIn => Origin::BuiltIn,
        }
    }
}

/// Code of a value of the wrong type.
pub(crate) const WRONG_TYPE: &str = "wrong-type";
/// Code of a word that is not among the choices.
pub(crate) const UNKNOWN_WORD: &str = "unknown-word";
/// Code of an unknown preset.
pub(crate) const UNKNOWN_PRESET: &str = "unknown-preset";
/// Code of a text that is not a world-wide name.
pub(crate) const BAD_WWN: &str = "bad-wwn";

/// Checks `value`. Reports an error to `sink` and returns [`Value::Bad`] if it is invalid.
pub(crate) fn check(
    kind: &Kind,
    example: &str,
    value: &Spanned<DeValue<'_>>,
    places: Places,
    sink: &mut Sink,
) -> Value {
    let origin = places.origin(value.span());
    let mut reader = Reader { kind, example, origin: &origin, places, sink };
    reader.read(value).unwrap_or(Value::Bad)
}

struct Reader<'a> {
    kind: &'a Kind,
    example: &'a str,
    origin: &'a Origin,
    places: Places,
    sink: &'a mut Sink,
}

impl Reader<'_> {
    fn read(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        match *self.kind {
            Kind::Text => self.text(value).map(|t| Value::Text(t.to_owned())),
            Kind::Integer { min, max } => self.integer(value, min, max, None),
            Kind::IntegerOr { word, min, max } => match value.get_ref().as_str() {
                Some(text) if text == word => Some(Value::Word),
                _ => self.integer(value, min, max, Some(word)),
            },
            Kind::Numbers { min, max } => self.numbers(value, min, max),
            Kind::Share => {
                let number = self.number(value)?;
                if (0.0..=1.0).contains(&number) {
                    return Some(Value::Number(number));
                }
                self.fail(
                    units::OUT_OF_RANGE,
                    format!("{number} is not a share from 0 to 1"),
                    "choose a number from 0 to 1, such as 0.7",
                )
            }
            Kind::Number => self.number(value).map(Value::Number),
            Kind::NumberFrom { min } => {
                let number = self.number(value)?;
                if number >= min {
                    return Some(Value::Number(number));
                }
                self.fail(
                    units::OUT_OF_RANGE,
                    format!("{number} is out of range"),
                    format!("choose a number of at least {min}, such as {}", self.example),
                )
            }
            Kind::Bound => match value.get_ref().as_str() {
                Some(text) => Some(Value::Text(text.to_owned())),
                None => self.number(value).map(Value::Number),
            },
            Kind::Flag => match value.get_ref() {
                DeValue::Boolean(flag) => Some(Value::Flag(*flag)),
                other => self.wrong_type(other, "`true` or `false`"),
            },
            Kind::TimeOr { word } if value.get_ref().as_str() == Some(word) => Some(Value::Word),
            Kind::Time | Kind::TimeOr { .. } => self.quantity(value, &units::TIME).map(|v| Value::Time(Picos(v))),
            Kind::Length => self.quantity(value, &units::LENGTH).map(Value::Length),
            Kind::Size { min, max } => {
                let bytes = self.quantity(value, &units::SIZE)?;
                if (min..=max).contains(&bytes) {
                    return Some(Value::Size(bytes));
                }
                self.fail(
                    units::OUT_OF_RANGE,
                    format!("{} is {bytes} bytes, out of range", show(value.get_ref())),
                    format!("choose a size from {} to {}", size(min), size(max)),
                )
            }
            Kind::PerSecond => match value.get_ref().as_str() {
                Some(text) => self.quantity_result(units::parse_rate(text, self.example)),
                None => self.quantity(value, &units::PER_SECOND),
            }
            .map(Value::PerSecond),
            Kind::Clock => self.quantity(value, &units::CLOCK).map(Value::Clock),
            Kind::BitRate => self.quantity(value, &units::BIT_RATE).map(Value::BitRate),
            Kind::LineRate => match value.get_ref().as_str() {
                Some(text) => self.quantity_result(units::parse_line_rate(text)).map(Value::LineRate),
                None => {
                    let text = show(value.get_ref());
                    let example = format!("write the rate in quotes, for example {}", self.example);
                    self.fail(units::MISSING_UNIT, format!("{text} is not a Fibre Channel line rate"), example)
                }
            },
            Kind::LinkRate => self.link_rate(value),
            Kind::Choice(words) => self.choice(value, words).map(Value::Choice),
            Kind::ChoiceOrFile(words) => match value.get_ref().as_str() {
                Some(text) if text.ends_with(".toml") => Some(Value::Text(text.to_owned())),
                _ => self.choice(value, words).map(Value::Choice),
            },
            Kind::Preset => self.preset(value, &presets::NAMES.map(|(name, _)| name)),
            Kind::HostPreset => self.preset(value, &presets::HOST_NAMES.map(|(name, _)| name)),
            Kind::SwitchPreset => self.preset(value, &presets::SWITCH_NAMES.map(|(name, _)| name)),
            Kind::Wwn => {
                let text = self.text(value)?;
                match text.parse::<sanloom_wire::Wwpn>() {
                    Ok(name) if name.0 != 0 => Some(Value::Wwn(name.0)),
                    _ => self.fail(
                        BAD_WWN,
                        format!("`{}` is not a world-wide name", cut(text)),
                        "write sixteen hex digits, not all zero, such as \"21:00:00:24:ff:00:00:01\"",
                    ),
                }
            }
            Kind::Pattern => {
                let text = self.text(value)?;
                Some(Value::Patterns(vec![(text.to_owned(), self.origin.clone())]))
            }
            Kind::Patterns => self.patterns(value),
            Kind::Arrivals => forms::arrivals(value, self.places, self.sink).map(Value::Arrivals),
            Kind::Sizes => forms::sizes(value, self.places, self.sink).map(Value::Sizes),
            Kind::Times => forms::times(value, self.places, self.sink).map(Value::Times),
            Kind::StopRule => {
                let text = self.text(value)?;
                match Precision::parse(text) {
                    Some(rule) => Some(Value::StopRule(rule)),
                    None => self.fail(
                        UNKNOWN_WORD,
                        format!("`{}` is not a stop rule", cut(text)),
                        "for example \"ci 2% of totals.iops\"",
                    ),
                }
            }
            Kind::Table => match value.get_ref() {
                DeValue::Table(_) => Some(Value::Present),
                other => self.wrong_type(other, "a table"),
            },
        }
    }

    fn text<'v>(&mut self, value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
        match value.get_ref().as_str() {
            Some(text) => Some(text),
            None => self.wrong_type(value.get_ref(), "text in quotes"),
        }
    }

    fn integer(&mut self, value: &Spanned<DeValue<'_>>, min: u64, max: u64, word: Option<&str>) -> Option<Value> {
        let wanted = match word {
            Some(word) => format!("a whole number or \"{word}\""),
            None => "a whole number".to_owned(),
        };
        let DeValue::Integer(integer) = value.get_ref() else {
            return self.wrong_type(value.get_ref(), &wanted);
        };
        let number = i128::from_str_radix(&integer.as_str().replace('_', ""), integer.radix());
        match number.ok().and_then(|n| u64::try_from(n).ok()) {
            Some(number) if (min..=max).contains(&number) => Some(Value::Integer(number)),
            _ => self.fail(
                units::OUT_OF_RANGE,
                format!("{integer} is out of range"),
                format!("choose {wanted} from {min} to {max}"),
            ),
        }
    }

    fn numbers(&mut self, value: &Spanned<DeValue<'_>>, min: u64, max: u64) -> Option<Value> {
        let mut numbers = Vec::new();
        let mut add = |reader: &mut Reader<'_>, item: &Spanned<DeValue<'_>>| match reader.integer(item, min, max, None)
        {
            Some(Value::Integer(number)) => {
                numbers.push(number);
                Some(())
            }
            _ => None,
        };
        match value.get_ref() {
            DeValue::Array(items) => {
                for item in items.iter() {
                    let origin = self.places.origin(item.span());
                    let Reader { kind, example, places, .. } = *self;
                    add(&mut Reader { kind, example, origin: &origin, places, sink: self.sink }, item)?;
                }
            }
            DeValue::Integer(_) => add(self, value)?,
            other => return self.wrong_type(other, "a whole number or a list of them"),
        }
        numbers.sort_unstable();
        numbers.dedup();
        Some(Value::Numbers(numbers))
    }

    fn link_rate(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let Some(text) = value.get_ref().as_str() else {
            let text = show(value.get_ref());
            let example = format!("write the rate in quotes, for example {}", self.example);
            return self.fail(units::MISSING_UNIT, format!("{text} is not a line rate"), example);
        };
        if let Some(rate) = units::ethernet_rate(text) {
            return Some(Value::EthernetRate(rate));
        }
        if let Some(rate) = units::infiniband_rate(text) {
            return Some(Value::InfinibandRate(rate));
        }
        self.quantity_result(units::parse_link_rate(text)).map(Value::LineRate)
    }

    fn number(&mut self, value: &Spanned<DeValue<'_>>) -> Option<f64> {
        let digits = match value.get_ref() {
            DeValue::Integer(i) if i.radix() == 10 => i.as_str(),
            DeValue::Float(f) => f.as_str(),
            other => return self.wrong_type(other, "a number"),
        };
        match digits.replace('_', "").parse::<f64>() {
            Ok(number) if number.is_finite() => Some(number),
            _ => self.fail(
                units::OUT_OF_RANGE,
                format!("{} is not a finite number", cut(digits)),
                format!("choose a finite number, for example {}", self.example),
            ),
        }
    }

    fn quantity(&mut self, value: &Spanned<DeValue<'_>>, dimension: &Dimension) -> Option<u64> {
        match value.get_ref() {
            DeValue::String(text) => self.quantity_result(units::parse_like(text, dimension, self.example)),
            DeValue::Integer(_) | DeValue::Float(_) => {
                let number = show(value.get_ref());
                let bad = units::missing_unit(number.trim_matches('`'), dimension, self.example);
                self.quantity_result(Err(bad))
            }
            other => self.wrong_type(other, &format!("{} in quotes", dimension.noun)),
        }
    }

    fn quantity_result<T>(&mut self, result: Result<T, BadQuantity>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(bad) => self.fail(bad.code, bad.reason, bad.remedy),
        }
    }

    /// Returns the name of one of the presets `names`.
    fn preset(&mut self, value: &Spanned<DeValue<'_>>, names: &[&'static str]) -> Option<Value> {
        let text = self.text(value)?;
        if names.contains(&text) {
            return Some(Value::Text(text.to_owned()));
        }
        let remedy = suggest::remedy(text, names.iter().copied(), &format!("choose one of {}", names.join(", ")));
        self.fail(UNKNOWN_PRESET, format!("there is no preset `{}`", cut(text)), remedy)
    }

    fn choice(&mut self, value: &Spanned<DeValue<'_>>, words: &'static [Word]) -> Option<usize> {
        let names = || words.iter().map(|w| w.word);
        let list = names().collect::<Vec<_>>().join(", ");
        let Some(text) = value.get_ref().as_str() else {
            return self.wrong_type(value.get_ref(), &format!("one of the words {list}"));
        };
        if let Some(index) = names().position(|word| word == text) {
            return Some(index);
        }
        let near = suggest::closest(text, names());
        let remedy = match near {
            Some(near) => format!("did you mean \"{near}\"? The words are {list}"),
            None => format!("choose one of {list}"),
        };
        self.fail(UNKNOWN_WORD, format!("`{}` is not one of the permitted words", cut(text)), remedy)
    }

    fn patterns(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        match value.get_ref() {
            DeValue::String(text) => Some(Value::Patterns(vec![(text.to_string(), self.origin.clone())])),
            DeValue::Array(items) => {
                let mut list = Vec::new();
                for item in items.iter() {
                    let origin = self.places.origin(item.span());
                    match item.get_ref() {
                        DeValue::String(text) => list.push((text.to_string(), origin)),
                        other => wrong_type(other, "a name in quotes", self.example, &origin, self.sink),
                    }
                }
                Some(Value::Patterns(list))
            }
            other => self.wrong_type(other, "a name or a list of names in quotes"),
        }
    }

    fn wrong_type<T>(&mut self, found: &DeValue<'_>, wanted: &str) -> Option<T> {
        wrong_type(found, wanted, self.example, self.origin, self.sink);
        None
    }

    fn fail<T>(&mut self, code: &'static str, reason: impl Into<String>, remedy: impl Into<String>) -> Option<T> {
        self.sink.error(code, self.origin, reason, remedy);
        None
    }
}

/// Reports a value whose type is not `wanted`.
pub(crate) fn wrong_type(found: &DeValue<'_>, wanted: &str, example: &str, origin: &Origin, sink: &mut Sink) {
    sink.error(
        WRONG_TYPE,
        origin,
        format!("{} is {}, {wanted} was expected", show(found), type_name(found)),
        format!("for example {example}"),
    );
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a flag",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Returns a short description of a value for use in a sentence.
fn show(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("`{}`", cut(text)),
        DeValue::Integer(number) => format!("`{}`", cut(&number.to_string())),
        DeValue::Float(number) => format!("`{}`", cut(&number.to_string())),
        DeValue::Boolean(flag) => format!("`{flag}`"),
        DeValue::Datetime(date) => format!("`{date}`"),
        DeValue::Array(_) => "this".to_owned(),
        DeValue::Table(_) => "this".to_owned(),
    }
}

/// Returns at most 60 characters of a text, on one line.
pub(crate) fn cut(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = text.chars().take(60).map(clean).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Formats a number of bytes in the largest unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (factor, name) in units {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("\"{}{name}\"", bytes / factor);
        }
    }
    format!("\"{bytes}B\"")
}
