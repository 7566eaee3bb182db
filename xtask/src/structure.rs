//! Rules about the structure of the code that a test can check.

use crate::tidy::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of methods of a type: one owner per job.
const MAX_METHODS: usize = 60;

/// Rust files below a folder, sorted, with their text.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs")
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// Text of a source file without comments, literals and items behind `#[cfg(test)]`. Every line
/// stays a line, so line numbers remain valid.
pub fn product_code(text: &str) -> String {
    let plain = without_comments_and_literals(text);
    let mut kept = String::with_capacity(plain.len());
    let mut rest = plain.as_str();
    while let Some(start) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..start]);
        let item = &rest[start..];
        let length = item_length(item);
        kept.extend(item[..length].chars().filter(|c| *c == '\n'));
        rest = &item[length..];
    }
    kept.push_str(rest);
    kept
}

/// Bytes of the item at the start of `text`: up to its semicolon, or to the brace that closes it.
fn item_length(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b';' if depth == 0 => return at + 1,
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn without_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let raw = ["r\"", "r#\"", "br\"", "br#\""].into_iter().find(|start| rest.starts_with(*start));
        let ident = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(start) = raw.filter(|_| at == 0 || !ident(bytes[at - 1])) {
            let end = if start.contains('#') { "\"#" } else { "\"" };
            rest[start.len()..].find(end).map_or(rest.len(), |found| start.len() + found + end.len())
        } else if rest.starts_with('"') {
            quoted(rest, b'"')
        } else if rest.starts_with('\'') && is_char_literal(rest) {
            quoted(rest, b'\'')
        } else {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            plain.push_str(&rest[..next]);
            at += next;
            continue;
        };
        plain.extend(rest[..length].chars().filter(|c| *c == '\n'));
        at += length;
    }
    plain
}

/// True for `'x'` and `'\n'`, false for a lifetime.
fn is_char_literal(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

/// Bytes of a quoted literal at the start of `rest`, quotes included.
fn quoted(rest: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Name of the type of an inherent `impl` block, or `None` for other lines.
fn inherent_impl(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generics) => {
            let mut depth = 1;
            let end = generics.char_indices().find(|(_, c)| {
                depth += i32::from(*c == '<') - i32::from(*c == '>');
                depth == 0
            })?;
            &generics[end.0 + 1..]
        }
        None => rest,
    };
    let name = rest.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!line.contains(" for ") && !name.is_empty()).then_some(name)
}

fn is_method(line: &str) -> bool {
    let mut words = line.split_whitespace().filter(|word| !word.starts_with("pub"));
    let qualifier = |word: &&str| ["const", "unsafe", "in", "async"].contains(word) || word.ends_with(')');
    words.find(|word| !qualifier(word)) == Some("fn")
}

/// Path of a source file as a module: `iscsi::target::login`.
fn module_of(source: &Path, path: &Path) -> Vec<String> {
    let inner = path.strip_prefix(source).unwrap_or(path).with_extension("");
    let parts = inner.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| part != "mod" && part != "lib").collect()
}

/// Name of the type that a line defines.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "in");
    matches!(words.next()?, "struct" | "enum")
        .then(|| words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next())
        .flatten()
}

/// Number of methods of each type, by crate, module of its definition and name. An `impl` in
/// another file belongs to the definition that shares the longest path with it.
fn methods() -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).into_iter().flatten().flatten() {
        let source = entry.path().join("src");
        let files: Vec<(Vec<String>, String)> =
            sources(&source).iter().map(|(path, text)| (module_of(&source, path), product_code(text))).collect();
        let mut definitions: BTreeMap<&str, Vec<&[String]>> = BTreeMap::new();
        for (module, code) in &files {
            for name in code.lines().filter_map(defined_type) {
                definitions.entry(name).or_default().push(module);
            }
        }
        let shared = |one: &[String], other: &[String]| one.iter().zip(other).take_while(|(a, b)| a == b).count();
        for (module, code) in &files {
            let mut depth = 0i32;
            let mut current = None;
            for line in code.lines() {
                if depth == 0 && line.starts_with("impl") {
                    current = inherent_impl(line);
                } else if depth == 1
                    && is_method(line)
                    && let Some(name) = current
                {
                    let homes = definitions.get(name).into_iter().flatten();
                    let home = homes.max_by_key(|home| (shared(home, module), std::cmp::Reverse(home.len())));
                    let home = home.map(|home| home.join("::")).unwrap_or_default();
                    *count.entry(format!("{}::{home}::{name}", entry.file_name().to_string_lossy())).or_default() += 1;
                }
                depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
            }
        }
    }
    count
}

#[test]
fn no_type_has_more_than_sixty_methods() {
    let methods = methods();
    assert!(methods.len() > 100, "the search finds the types");
    let above = methods.iter().filter(|(_, number)| **number > MAX_METHODS);
    let found: Vec<String> = above.map(|(name, number)| format!("{name} has {number} methods")).collect();
    assert!(found.is_empty(), "divide a type with more than {MAX_METHODS} methods by job:\n{}", found.join("\n"));
}

#[test]
fn sans_io_crates_read_no_clock_and_do_no_io() {
    let forbidden = ["std::time", "std::fs", "std::net", "std::thread", "SystemTime", "HashMap", "HashSet"];
    let mut found = Vec::new();
    for name in ["wire", "scsi", "fc", "transport"] {
        for (path, text) in sources(&root().join("crates").join(name).join("src")) {
            for (number, line) in product_code(&text).lines().enumerate() {
                let hit = forbidden.iter().find(|word| line.contains(**word));
                found.extend(hit.map(|word| format!("{}:{}: {word}", path.display(), number + 1)));
            }
        }
    }
    assert!(found.is_empty(), "a machine gets time as an argument and leaves I/O to its driver:\n{}", found.join("\n"));
}

#[test]
fn the_vocabulary_of_labs_imports_no_machine() {
    let mut found = Vec::new();
    for (path, text) in sources(&root().join("crates/fc/src/config")) {
        for (number, line) in product_code(&text).lines().enumerate() {
            if line.contains("crate::") && !line.contains("crate::config") {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "config stands below the machines:\n{}", found.join("\n"));
}

#[test]
fn unsafe_code_is_in_two_modules() {
    let allowed: BTreeSet<PathBuf> =
        ["crates/live/src/sys", "crates/bench/src/ring.rs"].map(|path| root().join(path)).into();
    let mut found = Vec::new();
    for (path, text) in sources(&root().join("crates")) {
        let inside = allowed.iter().any(|room| path.starts_with(room));
        let uses = |line: &str| line.contains("unsafe {") || line.contains("unsafe fn") || line.contains("unsafe impl");
        let is_product = path.components().any(|part| part.as_os_str() == "src");
        if is_product && !inside && product_code(&text).lines().any(uses) {
            found.push(path.display().to_string());
        }
    }
    assert!(found.is_empty(), "unsafe code belongs to live::sys and bench::ring:\n{}", found.join("\n"));
}

/// The page of walks names files and functions; each row is `| step | file | function | job |`.
#[test]
fn every_function_named_in_walks_is_in_its_file() {
    let page = root().join("docs/src/concepts/walks.md");
    let text = fs::read_to_string(&page).unwrap_or_default();
    let (mut rows, mut missing) = (0, Vec::new());
    for line in text.lines().filter(|line| line.starts_with("| ") && line.contains(".rs`")) {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, _, file, function, ..] = cells[..] else { continue };
        rows += 1;
        let code = fs::read_to_string(root().join(file)).map(|code| product_code(&code)).unwrap_or_default();
        if !code.contains(&format!("fn {function}(")) && !code.contains(&format!("fn {function}<")) {
            missing.push(format!("{file}: {function}"));
        }
    }
    assert!(rows > 20, "the page has its tables");
    assert!(missing.is_empty(), "walks.md names functions that are gone:\n{}", missing.join("\n"));
}

#[test]
fn code_behind_a_test_module_is_still_checked() {
    let text = "use a;\n#[cfg(test)]\nmod tests {\n    fn x() { std::fs }\n}\nfn y() { std::net }\n";
    assert_eq!(product_code(text), "use a;\n\n\n\n\nfn y() { std::net }\n");
    let text = "#[cfg(test)]\nmod tests;\nlet c = '{'; let s = \"std::fs }\"; // std::time\nfn f<'a>(x: &'a str) {}";
    assert_eq!(product_code(text), "\n\nlet c = ; let s = ; \nfn f<'a>(x: &'a str) {}");
}
