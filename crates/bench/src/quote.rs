//! Quotations of the output of child processes.

/// Lines of an output that a message quotes at most.
const QUOTED_LINES: usize = 8;

/// Returns the last lines of the output of `program` as part of a sentence; `program` may be a
/// pronoun.
pub(crate) fn quote(program: &str, output: &[u8]) -> String {
    let output = String::from_utf8_lossy(output);
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    match lines.len() {
        0 => format!("; {program} printed nothing"),
        all => format!("; {program} printed: {}", lines[all.saturating_sub(QUOTED_LINES)..].join(" / ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_quoted() {
        let many: String = (0..20).map(|line| format!("line {line}\n")).collect();
        let quoted = quote("it", many.as_bytes());
        assert!(quoted.starts_with("; it printed: line 12 / ") && quoted.ends_with("line 19"), "{quoted}");
        assert_eq!(quote("tgtadm", b"\n"), "; tgtadm printed nothing");
    }
}
