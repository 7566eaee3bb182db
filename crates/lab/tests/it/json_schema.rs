//! The JSON Schema of the lab file, judged by a validator of others (Python's `jsonschema`).

use sanloom_test_support::needs;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Codes of errors that a schema can express: sections, keys, types, units, words.
const EXPRESSIBLE: [&str; 9] = [
    "unknown-section",
    "unknown-key",
    "wrong-type",
    "missing-unit",
    "wrong-unit",
    "unknown-word",
    "unknown-preset",
    "bad-wwn",
    "not-a-number",
];

/// Prints the name of each file and whether it satisfies the schema on standard input.
const VALIDATE: &str = r"
import json, sys, tomllib, jsonschema
schema = json.load(sys.stdin)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
for path in sys.argv[1:]:
    try:
        lab = tomllib.load(open(path, 'rb'))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        continue
    errors = [error.json_path + ': ' + error.message[:200] for error in validator.iter_errors(lab)]
    print(json.dumps([path, errors]))
";

fn labs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    found.sort();
    found
}

/// Interpreter that has the validator: Debian's package belongs to Debian's interpreter.
fn python() -> &'static str {
    let has_validator = |python: &&str| {
        let mut probe = Command::new(python);
        probe.args(["-c", "import tomllib, jsonschema"]).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has_validator).unwrap_or("python3")
}

/// Returns the errors of each file that is TOML.
fn validate(files: &[PathBuf]) -> BTreeMap<PathBuf, Vec<String>> {
    let mut child = Command::new(python())
        .args(["-c", VALIDATE])
        .args(files)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(sanloom_lab::json_schema().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the validator rejects the schema");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| -> (PathBuf, Vec<String>) { serde_json::from_str(line).unwrap() };
    text.lines().map(line).collect()
}

#[needs("jsonschema")]
#[test]
fn every_example_satisfies_the_schema() {
    let files = labs("../../examples");
    assert!(files.len() > 20);
    for (path, errors) in validate(&files) {
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}

#[needs("jsonschema")]
#[test]
fn a_lab_that_breaks_a_rule_of_the_schema_does_not_satisfy_it() {
    let files = labs("tests/it/bad");
    let mut broken = 0;
    for (path, errors) in validate(&files) {
        let text = fs::read_to_string(&path).unwrap();
        let Err(mistakes) = sanloom_lab::load("lab.toml", &text, &[]) else { continue };
        let expressible: Vec<_> = mistakes.iter().filter(|mistake| EXPRESSIBLE.contains(&mistake.code)).collect();
        if !expressible.is_empty() {
            broken += 1;
            assert!(!errors.is_empty(), "{}: {}", path.display(), expressible[0].render(false));
        }
    }
    assert!(broken >= 8, "{broken}");
}

/// Tables without a key that they need, and the same tables with it. The parser agrees about both.
const INCOMPLETE: [(&str, &str); 10] = [
    ("[[zone]]\nname = \"z\"\n", "members = [\"h\", \"s\"]"),
    ("[[link]]\nfrom = \"h\"\n", "to = \"sw2\""),
    ("[[fault]]\nat = \"1ms\"\nkind = \"link-down\"\n", "link = \"a\""),
    ("[[fault]]\nat = \"1ms\"\nkind = \"port-down\"\nlink = \"a\"\n", "end = \"h\""),
    ("[[fault]]\nat = \"1ms\"\nkind = \"frame-loss\"\nlink = \"a\"\n", "probability = 0.1"),
    ("[[fault]]\nat = \"1ms\"\nkind = \"slow-receiver\"\nport = \"sw:0\"\n", "delay = \"1us\""),
    ("[[fault]]\nat = \"1ms\"\nkind = \"switch-reset\"\n", "switch = \"sw\""),
    ("[[expect]]\nmax = \"5ms\"\n", "metric = \"hosts.h.latency.p99_us\""),
    ("[workload.w]\nhosts = \"h\"\n", "targets = \"s\""),
    ("[workload.w]\nhosts = \"h\"\ntargets = \"s\"\nlocation = \"strided\"\n", "stride = \"1MiB\""),
];
const AROUND: &str = r#"
[switch.sw]
[switch.sw2]
[host.h]
[storage.s]
[[link]]
name = "a"
from = "h"
to = "sw"
[[link]]
from = "s"
to = "sw"
[[link]]
from = "sw"
to = "sw2"
"#;

#[needs("jsonschema")]
#[test]
fn a_table_without_a_key_that_it_needs_does_not_satisfy_the_schema() {
    let folder = std::env::temp_dir().join(format!("sanloom-json-schema-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut files = Vec::new();
    for (number, (table, key)) in INCOMPLETE.iter().enumerate() {
        for (ending, text) in [("lacks", format!("{AROUND}{table}")), ("has", format!("{AROUND}{table}{key}\n"))] {
            let path = folder.join(format!("{number:02}-{ending}.toml"));
            fs::write(&path, text).unwrap();
            files.push(path);
        }
    }
    let found = validate(&files);
    assert_eq!(found.len(), files.len());
    for (path, errors) in found {
        let text = fs::read_to_string(&path).unwrap();
        let mistakes = sanloom_lab::load("lab.toml", &text, &[]).err();
        let lacks = mistakes.is_some_and(|all| all.iter().any(|mistake| mistake.code == "missing-key"));
        assert_eq!(lacks, path.to_string_lossy().contains("lacks"), "{text}");
        assert_eq!(errors.is_empty(), !lacks, "{text}\n{errors:#?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// A table for a range of names gives what the table of one name lacks.
#[needs("jsonschema")]
#[test]
fn a_key_that_a_range_gives_need_not_be_repeated() {
    let path = std::env::temp_dir().join(format!("sanloom-json-schema-range-{}.toml", std::process::id()));
    fs::write(&path, "[workload.\"w{1..2}\"]\nhosts = \"h\"\ntargets = \"s\"\n[workload.w1]\ndepth = 4\n").unwrap();
    let found = validate(std::slice::from_ref(&path));
    fs::remove_file(&path).unwrap();
    assert!(found[&path].is_empty(), "{found:#?}");
}

/// An editor must not mark what the parser accepts.
#[needs("jsonschema")]
#[test]
fn a_lab_without_errors_satisfies_the_schema() {
    let folders = ["tests/it/bad", "../cli/tests/it/commands/labs", "../cli/templates"];
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| labs(folder)).collect();
    for (path, errors) in validate(&files) {
        let text = fs::read_to_string(&path).unwrap();
        if sanloom_lab::load("lab.toml", &text, &[]).is_ok() {
            assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        }
    }
}

#[test]
fn every_example_names_the_schema_beside_it_by_which_an_editor_checks_it() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sanloom.schema.json");
    if std::env::var_os("SANLOOM_BLESS").is_some() {
        fs::write(&schema, sanloom_lab::json_schema()).unwrap();
    }
    let text = fs::read_to_string(&schema).unwrap();
    assert_eq!(text, sanloom_lab::json_schema(), "SANLOOM_BLESS=1 cargo test -p sanloom-lab json_schema");
    let schema = schema.canonicalize().unwrap();
    let mut found = 0;
    for folder in ["../../examples", "../../examples/large"] {
        for path in labs(folder) {
            let text = fs::read_to_string(&path).unwrap();
            let line = text.lines().next().unwrap_or_default();
            let named = line.strip_prefix("#:schema ").unwrap_or_else(|| panic!("{}: {line}", path.display()));
            // Editors resolve the path from the folder of the lab.
            assert_eq!(path.parent().unwrap().join(named).canonicalize().unwrap(), schema, "{}", path.display());
            found += 1;
        }
    }
    assert!(found > 140, "{found} examples");
}
