//! Rules of prose that a program can check: line width, and words that must not begin a sentence.

use crate::tidy::{complain, files, is, root};
use std::ops::Range;

/// Longest line of prose, in characters.
const WIDTH: usize = 100;

/// Words that hide the subject of a sentence, in lower case.
const HIDDEN_SUBJECTS: [&str; 13] = [
    "what",
    "whether",
    "who",
    "whose",
    "whoever",
    "whatever",
    "those",
    "these",
    "they",
    "them",
    "so is",
    "of these",
    "that which",
];

/// Pages that a test writes from code. Their lines are as long as the texts in the code.
const GENERATED: [&str; 3] = ["commands.md", "lab-file.md", "results.md"];

/// Syntax around the prose of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syntax {
    /// The whole file is Markdown.
    Markdown,
    /// Prose is in line comments.
    Rust,
    /// Prose is in lines that begin with `#`.
    Toml,
}

impl Syntax {
    /// Returns the part of a line that may be prose.
    fn prose(self, line: &str) -> Option<&str> {
        match self {
            Syntax::Markdown => Some(line),
            Syntax::Rust => comment(line),
            Syntax::Toml => line.trim_start().strip_prefix('#'),
        }
    }
}

/// A line with prose, without markers of comments, lists and headings.
#[derive(PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// Number of the line in the file, from 1.
    pub number: usize,
    /// The line as it is in the file.
    pub whole: &'a str,
    /// The prose on the line.
    pub text: &'a str,
    /// The line begins a paragraph, a list item or a heading.
    pub begins: bool,
}

/// Returns the lines of prose of a file, without code blocks, tables, images and HTML comments.
pub fn lines(syntax: Syntax, file: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let (mut in_code, mut begins) = (false, true);
    for (index, whole) in file.lines().enumerate() {
        let Some(comment) = syntax.prose(whole) else {
            (in_code, begins) = (false, true);
            continue;
        };
        let trimmed = comment.trim();
        let is_fence = trimmed.starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence || trimmed.is_empty() || ["|", "![", "<!--"].iter().any(|mark| trimmed.starts_with(mark))
        {
            begins = true;
            continue;
        }
        let (text, is_marked) = without_marker(trimmed);
        found.push(Line { number: index + 1, whole, text, begins: begins || is_marked });
        begins = trimmed.starts_with('#');
    }
    found
}

/// Returns the text of a line that holds nothing but a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']))
}

/// Removes the marker of a list item or a heading. Returns whether there was one.
fn without_marker(text: &str) -> (&str, bool) {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let marker = match text.as_bytes() {
        [b'#', ..] => text.len() - text.trim_start_matches('#').len(),
        [b'-' | b'*', b' ', ..] => 1,
        _ if digits > 0 && text[digits..].starts_with(". ") => digits + 1,
        _ => return (text, false),
    };
    (text[marker..].trim_start(), true)
}

/// Returns the ranges of `text` in which sentences begin; the first one only if `begins`.
fn sentences(text: &str, begins: bool) -> Vec<Range<usize>> {
    let ends = text.match_indices(['.', '?', '!', ':']).filter(|(at, mark)| {
        // A colon introduces a list of words more often than a sentence.
        *mark != ":" && text[at + 1..].starts_with(' ')
    });
    let starts = begins.then_some(0).into_iter().chain(ends.map(|(at, _)| at + 2));
    starts.map(|start| start..text.len()).collect()
}

/// Returns the forbidden word that begins a sentence on this line.
fn hidden_subject(line: &Line<'_>, begins: bool) -> Option<&'static str> {
    sentences(line.text, begins).into_iter().find_map(|range| {
        let text = line.text[range].trim_start_matches(['*', '_', '"', '(']).to_lowercase();
        HIDDEN_SUBJECTS.into_iter().find(|word| {
            text.strip_prefix(word)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_'".contains(c)))
        })
    })
}

/// Returns whether a line begins a code block and continues with more than the name of a language,
/// because a program has wrapped the block as prose.
fn is_wrapped_fence(line: &str) -> bool {
    line.trim().strip_prefix("```").is_some_and(|info| info.contains([' ', '`']))
}

/// Returns one sentence for each line that breaks a rule. `is_wrapped` asks for the width, too.
pub fn offences(syntax: Syntax, file: &str, is_wrapped: bool) -> Vec<String> {
    let fences = (1..).zip(file.lines()).filter(|(_, line)| syntax.prose(line).is_some_and(is_wrapped_fence));
    let mut found: Vec<String> =
        fences.map(|(number, _)| format!("{number}: code behind ``` belongs on lines of its own")).collect();
    let mut ended = true;
    for line in lines(syntax, file) {
        let length = line.whole.chars().count();
        let can_wrap = line.text.split_whitespace().count() > 1;
        if is_wrapped && can_wrap && length > WIDTH {
            found.push(format!("{}: {length} characters", line.number));
        }
        if let Some(word) = hidden_subject(&line, line.begins || ended) {
            found.push(format!("{}: a sentence begins with \"{word}\": {}", line.number, line.text));
        }
        ended = line.text.ends_with(['.', '?', '!']);
    }
    found
}

#[test]
fn documents_are_wrapped_and_name_their_subjects() {
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| is(path, "md")) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_wrapped = !GENERATED.contains(&&*name);
        let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        found.extend(
            offences(Syntax::Markdown, text, is_wrapped).into_iter().map(|offence| format!("{shown}:{offence}")),
        );
    }
    complain("wrap prose at 100 columns, and begin a sentence with its noun (CONTRIBUTING.md)", found);
}

#[test]
fn comments_are_wrapped_and_name_their_subjects() {
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| is(path, "rs")) {
        let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        found.extend(offences(Syntax::Rust, text, true).into_iter().map(|offence| format!("{shown}:{offence}")));
    }
    complain("wrap comments at 100 columns, and begin a sentence with its noun (CONTRIBUTING.md)", found);
}

#[test]
fn comments_of_labs_are_wrapped_and_name_their_subjects() {
    let mut found = Vec::new();
    let folders = [root().join("examples"), root().join("crates/cli/templates")];
    let is_lab = |path: &std::path::Path| is(path, "toml") && folders.iter().any(|folder| path.starts_with(folder));
    for (path, text) in files().iter().filter(|(path, _)| is_lab(path)) {
        let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        found.extend(offences(Syntax::Toml, text, true).into_iter().map(|offence| format!("{shown}:{offence}")));
    }
    complain("wrap comments at 100 columns, and begin a sentence with its noun (CONTRIBUTING.md)", found);
}

#[test]
fn prose_is_found_around_code_tables_and_images() {
    let page = "# Title\n\nOne\ntwo.\n\n```sh\ncode\n```\n| a |\n![x](y)\n- item\n  more\n2. last\n";
    let texts: Vec<(&str, bool)> = lines(Syntax::Markdown, page).iter().map(|line| (line.text, line.begins)).collect();
    let expected = [("Title", true), ("One", true), ("two.", false), ("item", true), ("more", false), ("last", true)];
    assert_eq!(texts, expected);
}

#[test]
fn prose_of_rust_is_in_comments() {
    let code = "//! Head.\nfn x() {} // aside\n/// ```\n/// code\n/// ```\n/// One\n/// two\n\n// Three\n";
    let numbers: Vec<(usize, &str)> = lines(Syntax::Rust, code).iter().map(|line| (line.number, line.text)).collect();
    assert_eq!(numbers, [(1, "Head."), (6, "One"), (7, "two"), (9, "Three")]);
}

#[test]
fn prose_of_a_lab_is_in_comments() {
    let lab = "# Head.\n\n[switch.a] # aside\nname = \"# text\"\n  # One\n  # two\n#\n# Three\n";
    let texts: Vec<(usize, &str, bool)> =
        lines(Syntax::Toml, lab).iter().map(|line| (line.number, line.text, line.begins)).collect();
    assert_eq!(texts, [(1, "Head.", true), (5, "One", true), (6, "two", false), (8, "Three", true)]);
}

#[test]
fn hidden_subjects_are_found_wherever_a_sentence_begins() {
    let bad =
        ["Whoever asks.", "## What it is", "- **These** go.", "It works. They do.", "So is it.", "One.\nThose two."];
    for text in bad {
        assert_eq!(offences(Syntax::Markdown, text, true).len(), 1, "{text}");
    }
    let good =
        ["Ask those\nthese things.", "Theseus.", "`what if`", "What-if runs.", "It works, they do.", "Of three."];
    for text in good {
        assert_eq!(offences(Syntax::Markdown, text, true), [""; 0], "{text}");
    }
}

#[test]
fn long_lines_are_found_unless_they_cannot_wrap() {
    let word = "x".repeat(WIDTH + 1);
    assert_eq!(offences(Syntax::Markdown, &word, true), [""; 0]);
    assert_eq!(offences(Syntax::Markdown, &format!("two {word}"), true).len(), 1);
    assert_eq!(offences(Syntax::Rust, &format!("    /// two {word}"), true).len(), 1);
    assert_eq!(offences(Syntax::Toml, &format!("# two {word}"), true).len(), 1);
    assert_eq!(offences(Syntax::Toml, &format!("text = \"two {word}\""), true), [""; 0]);
    assert_eq!(offences(Syntax::Markdown, &format!("two {word}"), false), [""; 0]);
}

#[test]
fn code_blocks_that_were_wrapped_are_found() {
    for text in ["```sh sanloom up lab.toml ```", "- item\n\n  ```sh sanloom up\n  lab.toml\n  ```", "```sh```"] {
        assert_eq!(offences(Syntax::Markdown, text, true).len(), 1, "{text}");
    }
    assert_eq!(offences(Syntax::Rust, "/// ```ignore let x = 1; ```\n", true).len(), 1);
    assert_eq!(offences(Syntax::Markdown, "```sh\ncode\n```\n\n```\ntext\n```\n", true), [""; 0]);
}

#[test]
fn every_environment_variable_is_documented() {
    let prefix = ["SAN", "LOOM_"].concat();
    let contributing = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap_or_default();
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| is(path, "rs") || is(path, "sh") || path.ends_with(".ci/run"))
    {
        let names = text.match_indices(&prefix).map(|(at, _)| {
            let rest = &text[at + prefix.len()..];
            let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(rest.len());
            format!("{prefix}{}", &rest[..end])
        });
        let missing = names.filter(|name| *name != prefix && !contributing.contains(&format!("`{name}`")));
        found.extend(missing.map(|name| format!("{}: {name}", path.display())));
    }
    complain("CONTRIBUTING.md lists every environment variable", found);
}

#[test]
fn every_metric_is_documented() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let (page, code) = (read("docs/src/guides/monitor.md"), read("crates/live/src/runtime/view/metrics.rs"));
    let names = ["counter(", "gauge("].into_iter().flat_map(|call| {
        let ending = if call == "counter(" { "_total" } else { "" };
        let literals =
            code.split(call).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        literals.map(move |name| format!("{name}{ending}"))
    });
    let names: Vec<String> = names.collect();
    assert!(names.len() > 30, "{names:?}");
    let missing = names.into_iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    complain("docs/src/guides/monitor.md lists every metric", missing);
}

#[test]
fn documents_and_labs_write_the_lab_before_the_table() {
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| is(path, "md") || is(path, "toml")) {
        // A command may continue on the next line, also in a comment.
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "#").collect();
        for words in words.windows(3).filter(|words| words[0].ends_with("sanloom") && words[1] == "show") {
            let lab = words[2].trim_end_matches('`');
            if !lab.ends_with(".toml") && !["LAB", "FILE", "--help", "[OPTIONS]", "```text"].contains(&lab) {
                found.push(format!("{}: {}", path.display(), words.join(" ")));
            }
        }
    }
    complain("write `sanloom show LAB TABLE`", found);
}
