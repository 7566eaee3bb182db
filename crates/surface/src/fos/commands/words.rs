//! Words of a command line.

/// Splits a line at `;` into commands. A `;` between quotes, and one before a word that is no
/// command, belongs to the arguments: members are parted by it.
pub fn commands(line: &str, is_command: impl Fn(&str) -> bool) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        let next = line[at..].strip_prefix(';').map(|rest| {
            let rest = rest.trim_start();
            rest.split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or_default()
        });
        match next {
            Some(word) if quote.is_none() && (word.is_empty() || is_command(word)) => all.push(String::new()),
            _ => all.last_mut().into_iter().for_each(|command| command.push(c)),
        }
    }
    all.retain(|command| !command.trim().is_empty());
    all.iter().map(|command| command.trim().to_owned()).collect()
}

/// Splits a command into its name and its arguments, which are parted by commas or spaces, with or
/// without quotes. A domain and its index (`1,2`) stay together only between quotes or `;`.
pub fn arguments(command: &str) -> Option<(String, Vec<String>)> {
    let command = command.trim();
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    if name.is_empty() {
        return None;
    }
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quote, mut quoted) = (None, false);
    for c in rest.chars() {
        match (c, quote) {
            ('"' | '\'', None) => (quote, quoted) = (Some(c), true),
            (c, Some(open)) if c == open => quote = None,
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
        let known = |word: &str| ["nsshow", "nscamshow", "zonecreate"].contains(&word);
        assert_eq!(commands("nsshow;nscamshow", known), ["nsshow", "nscamshow"]);
        assert_eq!(commands(" nsshow ; ; nscamshow;", known), ["nsshow", "nscamshow"]);
        assert_eq!(
            commands("zonecreate \"z\", \"a;nsshow\"; nsshow", known),
            ["zonecreate \"z\", \"a;nsshow\"", "nsshow"]
        );
        assert_eq!(commands("zonecreate z, a;b", known), ["zonecreate z, a;b"]);
        assert!(commands("", known).is_empty());
    }

    #[test]
    fn arguments_have_quotes_or_none() {
        let split = |line| arguments(line).map(|(name, words)| (name, words.join("|")));
        for line in ["zonecreate \"z\", \"a;1,2\"", "zonecreate 'z' , 'a;1,2'", "zonecreate z \"a;1,2\""] {
            assert_eq!(split(line), Some(("zonecreate".into(), "z|a;1,2".into())), "{line}");
        }
        assert_eq!(split("zonecreate z, a;b"), Some(("zonecreate".into(), "z|a;b".into())));
        assert_eq!(split("portname 1 -n \"\""), Some(("portname".into(), "1|-n|".into())));
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
