//! Ranges in names: `server{1..8}`, `disk{1..64..4}`, `node{a,b}`, `edge{01..16}`; a name may
//! contain several.

#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

/// Limit on the names of one pattern.
pub(crate) const MAX_NAMES: u64 = 65_535;

/// Code of an invalid range.
pub(crate) const BAD_RANGE: &str = "bad-range";
/// Code of a quantity beyond the limits of sanloom.
pub(crate) const TOO_MANY: &str = "too-many";

/// Reason for which a pattern cannot be expanded: code, reason, remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BadPattern {
    pub code: &'static str,
    pub reason: String,
    pub remedy: String,
}

/// Returns the names of the pattern `text` in order; the last range varies fastest.
pub(crate) fn expand(text: &str) -> Result<Vec<String>, BadPattern> {
    let parts = parse(text)?;
    let mut count: u64 = 1;
    for part in &parts {
        count = count.saturating_mul(part.len());
    }
    if count > MAX_NAMES {
        return Err(BadPattern {
            code: TOO_MANY,
            reason: format!("`{text}` stands for {count} names"),
            remedy: format!("stay at or below {MAX_NAMES}"),
        });
    }
    let mut names = vec![String::new()];
    for part in &parts {
        match part {
            Part::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
            _ => {
                names = names.iter().flat_map(|name| (0..part.len()).map(move |i| part.with(name, i))).collect();
            }
        }
    }
    Ok(names)
}

/// Returns whether `text` contains a range.
pub(crate) fn is_range(text: &str) -> bool {
    text.contains('{')
}

enum Part<'t> {
    Text(&'t str),
    Numbers { first: u64, last: u64, step: u64, width: usize },
    Words(Vec<&'t str>),
}

impl Part<'_> {
    fn len(&self) -> u64 {
        match self {
            Part::Text(_) => 1,
            Part::Numbers { first, last, step, .. } => (first.abs_diff(*last) / step).saturating_add(1),
            Part::Words(words) => words.len() as u64,
        }
    }

    fn with(&self, name: &str, index: u64) -> String {
        match self {
            Part::Text(text) => format!("{name}{text}"),
            Part::Numbers { first, last, step, width } => {
                let number = if last >= first { first + index * step } else { first - index * step };
                format!("{name}{number:0width$}")
            }
            Part::Words(words) => {
                let word = usize::try_from(index).ok().and_then(|index| words.get(index)).unwrap_or(&"");
                format!("{name}{word}")
            }
        }
    }
}

fn parse(text: &str) -> Result<Vec<Part<'_>>, BadPattern> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        if rest[..open].contains('}') {
            return Err(bad(text, "a `}` without its `{`"));
        }
        if open > 0 {
            parts.push(Part::Text(&rest[..open]));
        }
        let inner = &rest[open + 1..];
        let Some(close) = inner.find('}') else {
            return Err(bad(text, "a `{` without its `}`"));
        };
        parts.push(range(text, &inner[..close])?);
        rest = &inner[close + 1..];
    }
    if rest.contains('}') {
        return Err(bad(text, "a `}` without its `{`"));
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

fn range<'t>(text: &str, inner: &'t str) -> Result<Part<'t>, BadPattern> {
    if inner.contains(',') {
        let words: Vec<&str> = inner.split(',').map(str::trim).collect();
        return if words.iter().any(|w| w.is_empty() || w.contains('{')) {
            Err(bad(text, "an empty word in a list"))
        } else {
            Ok(Part::Words(words))
        };
    }
    let fields: Vec<&str> = inner.split("..").map(str::trim).collect();
    let number = |field: &str| -> Result<u64, BadPattern> {
        field
            .parse::<u64>()
            .ok()
            .filter(|&n| n <= u64::from(u32::MAX) && field.bytes().all(|b| b.is_ascii_digit()))
            .ok_or_else(|| match field {
                "" => bad(text, "nothing where a number belongs"),
                _ => bad(text, &format!("`{field}` where a number belongs")),
            })
    };
    let (first, last, step) = match fields[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Err(bad(text, &format!("`{{{inner}}}`, which is not a range"))),
    };
    let padded = [first, last].iter().any(|f| f.len() > 1 && f.starts_with('0'));
    let width = if padded { first.len().max(last.len()).min(20) } else { 0 };
    let (first, last, step) = (number(first)?, number(last)?, number(step)?);
    if step == 0 {
        return Err(bad(text, "a step of 0"));
    }
    Ok(Part::Numbers { first, last, step, width })
}

fn bad(text: &str, what: &str) -> BadPattern {
    BadPattern {
        code: BAD_RANGE,
        reason: format!("the range in `{text}` has {what}"),
        remedy: "write ranges as {1..8}, with a step as {1..64..4}, or as a list {a,b}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> String {
        expand(text).map_or_else(|bad| bad.code.to_owned(), |names| names.join(" "))
    }

    #[test]
    fn expands_ranges_lists_steps_and_products() {
        assert_eq!(names("server{1..3}"), "server1 server2 server3");
        assert_eq!(names("s{08..10}"), "s08 s09 s10");
        assert_eq!(names("d{1..9..4}x"), "d1x d5x d9x");
        assert_eq!(names("d{3..1}"), "d3 d2 d1");
        assert_eq!(names("{a,b}{1..2}"), "a1 a2 b1 b2");
        assert_eq!(names("plain"), "plain");
        assert_eq!(names("s{5..5}"), "s5");
    }

    #[test]
    fn rejects_broken_and_huge_ranges() {
        for text in
            ["s{1..}", "s{1", "s1}", "s{}", "s{1..2..0}", "s{1..2..3..4}", "s{-1..2}", "s{a..b}", "}s{1..2}", "s{a,}"]
        {
            assert_eq!(names(text), BAD_RANGE, "{text}");
        }
        for text in ["s{1..65536}", "s{0..4294967295}", "{1..1000}{1..1000}"] {
            assert_eq!(names(text), TOO_MANY, "{text}");
        }
    }
}
