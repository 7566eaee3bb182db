//! Filters of an output, behind `|`: `grep`, `more` and `wc -l`.

use super::Reply;
use regex::bytes::{Regex, RegexBuilder};

/// Limit of the memory of a compiled pattern in bytes.
const MAX_PATTERN: usize = 64 << 10;
/// Most filters of a command.
pub const MAX_FILTERS: usize = 8;

/// Splits a command at `|` outside of quotes into the command itself and its filters.
pub fn split(command: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        match c {
            '|' if quote.is_none() => parts.push(String::new()),
            _ => parts.last_mut().into_iter().for_each(|part| part.push(c)),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// A filter.
#[derive(Debug)]
pub enum Filter {
    /// `more`: output is not paged here.
    More,
    /// `wc -l`.
    Count,
    /// `grep`.
    Lines {
        /// The pattern, as an extended regular expression.
        pattern: Regex,
        /// True for the lines without the pattern (`-v`).
        inverted: bool,
        /// True for their number (`-c`).
        counted: bool,
    },
    /// Everything from the first line with the pattern on.
    Begin(Regex),
    /// Lines with the pattern, each with the lines below it that are indented more.
    Section(Regex),
    /// The first lines.
    Head(usize),
    /// The last lines.
    Last(usize),
}

/// A pattern as an extended regular expression. Bytes, because the tables of Unicode are not
/// compiled.
pub fn compile(pattern: &str, any_case: bool) -> Option<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).case_insensitive(any_case).size_limit(MAX_PATTERN).build().ok()
}

fn failure(text: String, status: u8) -> Reply {
    Reply { output: format!("{text}\n"), status, ..Reply::default() }
}

impl Filter {
    /// Reads a filter: its name and its arguments.
    ///
    /// # Errors
    /// Returns the reply to an unknown name, or to arguments that are not valid.
    pub fn read(name: &str, arguments: &[String]) -> Result<Filter, Reply> {
        match name {
            "more" | "less" => return Ok(Filter::More),
            "wc" if arguments == ["-l"] => return Ok(Filter::Count),
            "wc" => return Err(failure("wc: use wc -l".to_owned(), 1)),
            "grep" | "egrep" => {}
            _ => return Err(failure(format!("rbash: {name}: command not found"), super::UNKNOWN)),
        }
        let (mut inverted, mut counted, mut any_case) = (false, false, false);
        let mut patterns = Vec::new();
        for word in arguments {
            match word.strip_prefix('-') {
                Some(options) if !options.is_empty() && patterns.is_empty() => {
                    for option in options.chars() {
                        match option {
                            'i' => any_case = true,
                            'v' => inverted = true,
                            'c' => counted = true,
                            'e' | 'E' => {}
                            _ => return Err(failure(format!("grep: invalid option -- '{option}'"), 2)),
                        }
                    }
                }
                _ => patterns.push(word),
            }
        }
        let [pattern] = patterns[..] else {
            return Err(failure("Usage: grep [-civ] PATTERN".to_owned(), 2));
        };
        match compile(pattern, any_case) {
            Some(pattern) => Ok(Filter::Lines { pattern, inverted, counted }),
            None => Err(failure(format!("grep: {pattern}: Invalid regular expression"), 2)),
        }
    }

    /// Filters the output of a reply.
    pub fn apply(&self, reply: Reply) -> Reply {
        match self {
            Filter::More => reply,
            Filter::Count => Reply { output: format!("{}\n", reply.output.lines().count()), status: 0, ..reply },
            Filter::Begin(pattern) => {
                let lines = reply.output.lines().skip_while(|line| !pattern.is_match(line.as_bytes()));
                Reply { output: lines.map(|line| format!("{line}\n")).collect(), ..reply }
            }
            Filter::Section(pattern) => {
                let mut above = None;
                let is_in = |line: &&str| {
                    let indent = line.len() - line.trim_start().len();
                    if pattern.is_match(line.as_bytes()) {
                        above = Some(indent);
                    } else if line.trim().is_empty() || above.is_some_and(|above| indent <= above) {
                        above = None;
                    }
                    above.is_some()
                };
                let lines = reply.output.lines().filter(is_in);
                Reply { output: lines.map(|line| format!("{line}\n")).collect(), ..reply }
            }
            Filter::Head(count) => {
                let lines = reply.output.lines().take(*count);
                Reply { output: lines.map(|line| format!("{line}\n")).collect(), ..reply }
            }
            Filter::Last(count) => {
                let skipped = reply.output.lines().count().saturating_sub(*count);
                let lines = reply.output.lines().skip(skipped);
                Reply { output: lines.map(|line| format!("{line}\n")).collect(), ..reply }
            }
            Filter::Lines { pattern, inverted, counted } => {
                let lines = reply.output.lines().filter(|line| pattern.is_match(line.as_bytes()) != *inverted);
                let lines: Vec<&str> = lines.collect();
                let status = u8::from(lines.is_empty());
                let output = match counted {
                    true => format!("{}\n", lines.len()),
                    false => lines.iter().map(|line| format!("{line}\n")).collect(),
                };
                Reply { output, status, ..reply }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(filter: &str, output: &str) -> (String, u8) {
        let (name, arguments) = super::super::words::arguments(filter).unwrap();
        let reply = Reply { output: output.to_owned(), ..Reply::default() };
        match Filter::read(&name, &arguments) {
            Ok(filter) => {
                let reply = filter.apply(reply);
                (reply.output, reply.status)
            }
            Err(reply) => (reply.output, reply.status),
        }
    }

    #[test]
    fn grep_selects_lines_and_reports_wrong_patterns() {
        let text = "Index Port\n 0 Online\n 1 No_Light\n 2 online\n";
        let cases = [
            ("grep Online", " 0 Online\n", 0),
            ("grep -i \"online\"", " 0 Online\n 2 online\n", 0),
            ("grep -ivc online", "2\n", 0),
            ("egrep '^ [01]'", " 0 Online\n 1 No_Light\n", 0),
            ("grep nothing", "", 1),
            ("grep (", "grep: (: Invalid regular expression\n", 2),
            ("grep -x a", "grep: invalid option -- 'x'\n", 2),
            ("grep", "Usage: grep [-civ] PATTERN\n", 2),
            ("grep a{1000}{1000}{1000}", "grep: a{1000}{1000}{1000}: Invalid regular expression\n", 2),
            ("more", text, 0),
            ("wc -l", "4\n", 0),
            ("sort", "rbash: sort: command not found\n", 127),
        ];
        for (filter, output, status) in cases {
            assert_eq!(filtered(filter, text), (output.to_owned(), status), "{filter}");
        }
    }

    #[test]
    fn a_bar_in_quotes_parts_nothing() {
        assert_eq!(split("portname 1 \"a|b\" | grep 'x|y'"), ["portname 1 \"a|b\"", "grep 'x|y'"]);
        assert_eq!(split("switchshow"), ["switchshow"]);
    }
}
