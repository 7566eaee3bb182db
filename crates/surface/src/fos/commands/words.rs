//! Words of a command line.

/// Commands with a list of members, which may stand without quotes: `zonecreate z, a;b`.
const WITH_MEMBERS: [&str; 9] =
    ["aliadd", "alicreate", "aliremove", "cfgadd", "cfgcreate", "cfgremove", "zoneadd", "zonecreate", "zoneremove"];

/// Splits a line into commands at each `;` outside of quotes. A `;` between the members of a list
/// without quotes belongs to the list: no blank stands beside it, and no command behind it.
///
/// # Errors
/// A quote has no end, or the line has an operator of a shell that a switch does not have.
pub fn commands(line: &str, is_command: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let mut all = vec![String::new()];
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        let rest = &line[at + c.len_utf8()..];
        match (c, quote) {
            (';', None) if !is_in_list(all.last().map_or("", String::as_str), rest, &is_command) => {
                all.push(String::new());
            }
            ('&' | '<' | '>' | '`', None) => return Err(format!("rbash: syntax error near unexpected token `{c}'")),
            ('|', None) if rest.starts_with('|') => {
                return Err("rbash: syntax error near unexpected token `||'".to_owned());
            }
            _ => all.last_mut().into_iter().for_each(|command| command.push(c)),
        }
    }
    if let Some(open) = quote {
        return Err(format!("rbash: unexpected EOF while looking for matching `{open}'"));
    }
    all.retain(|command| !command.trim().is_empty());
    Ok(all.iter().map(|command| command.trim().to_owned()).collect())
}

/// Returns whether a `;` between a command so far and the rest of the line parts members.
fn is_in_list(command: &str, rest: &str, is_command: impl Fn(&str) -> bool) -> bool {
    let Some((name, words)) = arguments(command) else { return false };
    let starts = match &words[..] {
        [peer, .., option, _] if peer.starts_with('-') => option.starts_with('-'),
        [name, _, ..] => !name.starts_with('-'),
        _ => false,
    };
    let next = rest.split(|c: char| c.is_whitespace() || ";|".contains(c)).next().unwrap_or_default();
    let is_open = !command.ends_with(|c: char| c.is_whitespace() || "\"'".contains(c));
    has_members(&name) && starts && is_open && !next.is_empty() && !is_command(next)
}

fn has_members(name: &str) -> bool {
    WITH_MEMBERS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Splits a command into its name and its arguments, which are parted by commas or spaces, with or
/// without quotes. In a list of members, a domain and its index (`1,2`) stay together.
pub fn arguments(command: &str) -> Option<(String, Vec<String>)> {
    let command = command.trim();
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    if name.is_empty() {
        return None;
    }
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quote, mut quoted) = (None, false);
    let is_list = has_members(name);
    for (at, c) in rest.char_indices() {
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        match (c, quote) {
            ('"' | '\'', None) => (quote, quoted) = (Some(c), true),
            (c, Some(open)) if c == open => quote = None,
            (',', None)
                if is_list
                    && !words.is_empty()
                    && is_digit(word.chars().last())
                    && is_digit(rest[at + 1..].chars().next()) =>
            {
                word.push(c);
            }
            (',' | ' ' | '\t', None) => {
                if quoted || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                quoted = false;
            }
            (c, _) => word.push(c),
        }
    }
    if quoted || !word.is_empty() {
        words.push(word);
    }
    Some((name.to_owned(), words))
}

/// Members of an argument, parted by `;`.
pub fn members(argument: &str) -> Vec<String> {
    argument.split(';').map(str::trim).filter(|member| !member.is_empty()).map(str::to_owned).collect()
}

/// Numbers of a list of ports: `3`, `0/3`, `1-4`.
pub fn ports(words: &[String]) -> Option<Vec<u32>> {
    let number = |word: &str| word.strip_prefix("0/").unwrap_or(word).parse::<u32>().ok();
    let mut all = Vec::new();
    for word in words {
        match word.split_once('-') {
            None => all.push(number(word)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first || last - first > 4_096 {
                    return None;
                }
                all.extend(first..=last);
            }
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parted_by_semicolons_that_part_no_members() {
        let known = |word: &str| ["nsshow", "nscamshow", "zonecreate", "switchname"].contains(&word);
        let cases: [(&str, &[&str]); 19] = [
            ("nsshow;nscamshow", &["nsshow", "nscamshow"]),
            (" nsshow ; ; nscamshow;", &["nsshow", "nscamshow"]),
            ("switchname ; sfpshow", &["switchname", "sfpshow"]),
            ("switchname;sfpshow", &["switchname", "sfpshow"]),
            ("switchname; sfpshow", &["switchname", "sfpshow"]),
            ("sfpshow ;switchname x;nothing", &["sfpshow", "switchname x", "nothing"]),
            ("nothing;nsshow", &["nothing", "nsshow"]),
            ("zonecreate \"z\", \"a;nsshow\"; nsshow", &["zonecreate \"z\", \"a;nsshow\"", "nsshow"]),
            ("zonecreate \"z\", \"a\";nothing", &["zonecreate \"z\", \"a\"", "nothing"]),
            ("zonecreate 'z', 'a' ; nothing; nsshow", &["zonecreate 'z', 'a'", "nothing", "nsshow"]),
            ("zonecreate z, a;b", &["zonecreate z, a;b"]),
            ("zonecreate \"z\", a;b;c", &["zonecreate \"z\", a;b;c"]),
            ("ZoneCreate z a;b;nsshow", &["ZoneCreate z a;b", "nsshow"]),
            ("zonecreate z, a; nothing", &["zonecreate z, a", "nothing"]),
            ("zonecreate z;nothing", &["zonecreate z", "nothing"]),
            ("zonecreate --peerzone z;nothing", &["zonecreate --peerzone z", "nothing"]),
            (
                "zonecreate --peerzone z -principal a;b -members c;nsshow",
                &["zonecreate --peerzone z -principal a;b -members c", "nsshow"],
            ),
            ("zonedelete z;nothing", &["zonedelete z", "nothing"]),
            ("", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(commands(line, known).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn operators_of_a_shell_are_refused() {
        for line in [
            "switchname && islshow",
            "switchname&&islshow",
            "switchname || islshow",
            "islshow &",
            "islshow > file",
            "switchname `date`",
            "switchname \"core",
        ] {
            assert!(commands(line, |_| true).is_err(), "{line}");
        }
        assert!(commands("portname 1 -n \"a & b > c\"; switchshow | grep '||'", |_| true).is_ok());
    }

    #[test]
    fn arguments_have_quotes_or_none() {
        let split = |line| arguments(line).map(|(name, words)| (name, words.join("|")));
        for line in ["zonecreate \"z\", \"a;1,2\"", "zonecreate 'z' , 'a;1,2'", "zonecreate z \"a;1,2\""] {
            assert_eq!(split(line), Some(("zonecreate".into(), "z|a;1,2".into())), "{line}");
        }
        assert_eq!(split("zonecreate z, a;b"), Some(("zonecreate".into(), "z|a;b".into())));
        assert_eq!(split("portname 1 -n \"\""), Some(("portname".into(), "1|-n|".into())));
        assert_eq!(split("alicreate a1, 1,2;3,4"), Some(("alicreate".into(), "a1|1,2;3,4".into())));
        assert_eq!(split("portdisable 1,2"), Some(("portdisable".into(), "1|2".into())));
        assert_eq!(split("  "), None);
        assert_eq!(members(" a; b;;"), ["a", "b"]);
    }

    #[test]
    fn ports_are_numbers_and_ranges() {
        let ports = |text: &str| ports(&[text.to_owned()]);
        assert_eq!((ports("3"), ports("0/3"), ports("1-3")), (Some(vec![3]), Some(vec![3]), Some(vec![1, 2, 3])));
        assert_eq!((ports("3-1"), ports("x"), ports("0-99999999")), (None, None, None));
    }
}
