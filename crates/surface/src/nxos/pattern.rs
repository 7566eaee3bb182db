//! Patterns of commands: [`Pattern`].
//!
//! A word of a command may be shortened. `[…]` is optional. A word in capitals is a value: `VSAN` a
//! number from 1 to 4094, `TEXT` the rest of the line, all others one word.

use std::cmp::Reverse;

#[derive(Debug)]
enum Token {
    Word(&'static str),
    Value(&'static str),
    Optional(Vec<Token>),
}

/// Number of shortened words that a text counts for, so that a shortened word comes before it.
const TEXT_COST: usize = 2;

/// A pattern.
#[derive(Debug)]
pub struct Pattern(Vec<Token>);

/// Values of a command by their names in the pattern. A word of an optional part has its own name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Values(Vec<(&'static str, String)>);

impl Values {
    /// A value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| &**value)
    }

    /// A value of the pattern that is not optional; empty otherwise.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// True if the command has this word.
    pub fn has(&self, word: &str) -> bool {
        self.get(word).is_some()
    }

    /// The VSAN of the command.
    pub fn vsan(&self) -> Option<u16> {
        self.get("VSAN").and_then(|number| number.parse().ok())
    }
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &'static str) -> Pattern {
        fn push(stack: &mut [Vec<Token>], token: Token) {
            if let Some(list) = stack.last_mut() {
                list.push(token);
            }
        }
        let mut stack = vec![Vec::new()];
        for part in text.split(' ') {
            let word = part.trim_start_matches('[');
            let closed = word.trim_end_matches(']');
            stack.extend((word.len()..part.len()).map(|_| Vec::new()));
            let is_value = closed.bytes().all(|byte| byte.is_ascii_uppercase());
            push(&mut stack, if is_value { Token::Value(closed) } else { Token::Word(closed) });
            for _ in closed.len()..word.len() {
                if let Some(inner) = stack.pop() {
                    push(&mut stack, Token::Optional(inner));
                }
            }
        }
        Pattern(stack.pop().unwrap_or_default())
    }

    /// Values of a command, and the number of its shortened words; `None` if it differs.
    pub fn matches(&self, words: &[&str]) -> Option<(Values, usize)> {
        let list: Vec<&Token> = self.0.iter().collect();
        let (values, short) = step(&list, words, Vec::new(), 0)?;
        Some((Values(values), short))
    }
}

type Found = (Vec<(&'static str, String)>, usize);

fn step(tokens: &[&Token], words: &[&str], mut values: Vec<(&'static str, String)>, short: usize) -> Option<Found> {
    let Some((first, rest)) = tokens.split_first() else {
        return words.is_empty().then_some((values, short));
    };
    if let Token::Optional(inner) = first {
        let mut with: Vec<&Token> = inner.iter().collect();
        with.extend(rest);
        return step(&with, words, values.clone(), short).or_else(|| step(rest, words, values, short));
    }
    let (word, others) = words.split_first()?;
    match first {
        Token::Word(own) => {
            if !own.starts_with(&word.to_ascii_lowercase()) {
                return None;
            }
            values.push((own, String::new()));
            step(rest, others, values, short + usize::from(own.len() != word.len()))
        }
        Token::Value("TEXT") => {
            values.push(("TEXT", words.join(" ")));
            step(rest, &[], values, short + TEXT_COST)
        }
        Token::Value("VSAN") => {
            let number = word.parse::<u16>().ok().filter(|number| (1..=4094).contains(number))?;
            values.push(("VSAN", number.to_string()));
            step(rest, others, values, short)
        }
        Token::Value(name) => {
            values.push((name, (*word).to_owned()));
            step(rest, others, values, short)
        }
        Token::Optional(_) => None,
    }
}

/// Index of the best of several matches: the one with the fewest shortened words. With two that
/// are equally good and not exact, the command is ambiguous.
pub fn best(matches: &[(usize, Values, usize)]) -> Result<usize, bool> {
    let Some(best) = matches.iter().enumerate().max_by_key(|(at, (_, _, short))| (Reverse(*short), Reverse(*at)))
    else {
        return Err(false);
    };
    let (at, (_, _, short)) = best;
    let equal = matches.iter().filter(|(_, _, other)| other == short).count();
    if *short > 0 && equal > 1 { Err(true) } else { Ok(at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pattern: &'static str, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (values, short) = Pattern::new(pattern).matches(&words)?;
        let given = values.0.iter().filter(|(_, value)| !value.is_empty());
        let given: Vec<String> = given.map(|(name, value)| format!("{name}={value}")).collect();
        Some(format!("{} {short}", given.join(",")))
    }

    #[test]
    fn optional_parts_and_shortened_words_match() {
        const ZONES: &str = "show zoneset [name NAME] [active] [vsan VSAN]";
        assert_eq!(values(ZONES, "show zoneset").unwrap(), " 0");
        assert_eq!(values(ZONES, "show zoneset  act vsan  20").unwrap(), "VSAN=20 1");
        assert_eq!(values(ZONES, "show zoneset name a vsan 2").unwrap(), "NAME=a,VSAN=2 0");
        assert_eq!(values(ZONES, "show zoneset vsan 4095"), None);
        assert_eq!(values(ZONES, "show zoneset name"), None);
        assert_eq!(values("interface TEXT", "int fc1/1, fc1/2").unwrap(), "TEXT=fc1/1, fc1/2 3");
        assert_eq!(values("a [b [c]] d", "a b c d").unwrap(), " 0");
        assert_eq!(values("a [b [c]] d", "a c d"), None);
    }
}
