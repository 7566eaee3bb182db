//! The book under `docs/`: every page is in its contents, and every link leads to a page and a
//! heading.

use crate::tidy::{complain, files, is, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the anchors of the headings of a page, as mdBook and GitHub form them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    let mut in_code = false;
    for line in page.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if in_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let mut anchor: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|&c| c.is_alphanumeric() || "-_ ".contains(c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let count = counts.entry(anchor.clone()).or_default();
        if *count > 0 {
            anchor = format!("{anchor}-{count}");
        }
        *count += 1;
        found.insert(anchor);
    }
    found
}

/// Returns the targets of the links of a page, with the numbers of their lines.
fn links(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in page.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if !in_code {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.map(|target| (index + 1, target)));
        }
    }
    found
}

/// Returns the file and the anchor that a link of `page` leads to; none if it leaves the
/// repository.
fn target<'a>(page: &Path, link: &'a str) -> Option<(PathBuf, Option<&'a str>)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { page.to_path_buf() } else { page.parent()?.join(file) };
    Some((path, anchor))
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| is(path, "md")) {
        for (number, link) in links(text) {
            let Some((file, anchor)) = target(path, link) else { continue };
            let page = fs::read_to_string(&file).unwrap_or_default();
            let is_known = anchor.is_none_or(|anchor| anchors(&page).contains(anchor));
            if !file.exists() || !is_known {
                found.push(format!("{}:{number}: {link}", path.display()));
            }
        }
    }
    complain("dead links", found);
}

#[test]
fn every_page_of_the_book_is_in_its_contents_once() {
    let source = root().join("docs/src");
    let summary = source.join("SUMMARY.md");
    let contents = fs::read_to_string(&summary).unwrap_or_default();
    let mut listed: Vec<PathBuf> =
        links(&contents).into_iter().filter_map(|(_, link)| Some(target(&summary, link)?.0)).collect();
    listed.sort();
    let pages: Vec<PathBuf> = files()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.starts_with(&source) && is(path, "md") && *path != summary)
        .collect();
    assert_eq!(listed, pages);
}

#[test]
fn pages_of_the_book_link_to_nothing_outside_of_it() {
    let source = root().join("docs/src");
    let mut found = Vec::new();
    for (path, text) in files().iter().filter(|(path, _)| path.starts_with(&source) && is(path, "md")) {
        let outside = links(text).into_iter().filter(|(_, link)| {
            let file = target(path, link).and_then(|(file, _)| file.canonicalize().ok());
            file.is_some_and(|file| !file.starts_with(source.canonicalize().unwrap_or_default()))
        });
        found.extend(outside.map(|(number, link)| format!("{}:{number}: {link}", path.display())));
    }
    complain("the rendered book has no such file", found);
}

#[test]
fn anchors_are_those_of_mdbook() {
    let page = "# The `[[mask]]` table\n## A, b\n```\n# code\n```\n## A, b\n";
    let expected = ["a-b", "a-b-1", "the-mask-table"].map(str::to_owned);
    assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), expected);
}
