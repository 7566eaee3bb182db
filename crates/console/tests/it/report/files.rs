//! Atomic writing of files.

use crate::report::fixture;
use sanloom_api::results::{PlaneLinkSeries, Results};
use sanloom_console::report::{csv, file, folder, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_other() {
    let scratch = Scratch::new("failed_write");
    let path = scratch.0.join("results.json");
    file::write_text(&path, "old").unwrap();
    let error = file::write(&path, |out| {
        out.write_all(&[b'x'; 100_000])?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    })
    .unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("results.json"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(scratch.names(), ["results.json"]);
}

#[test]
fn a_written_file_replaces_the_old_one() {
    let scratch = Scratch::new("replace");
    let path = scratch.0.join("a.txt");
    file::write_text(&path, "old and long").unwrap();
    file::write_text(&path, "new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(scratch.names(), ["a.txt"]);
}

#[test]
fn a_missing_folder_is_an_error_with_its_path() {
    let error = file::write_text(Path::new("/no/such/folder/a.json"), "x").unwrap_err();
    assert!(error.to_string().contains("/no/such/folder/a.json"), "{error}");
    assert!(file::write_text(Path::new("/"), "x").is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_and_stays_a_device() {
    let full = Path::new("/dev/full");
    let error = json::write(full, &fixture::core_edge()).unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
    assert!(!fs::metadata(full).unwrap().is_file());
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_keeps_pointing() {
    let scratch = Scratch::new("symlink");
    let (target, link) = (scratch.0.join("target"), scratch.0.join("link"));
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    file::write_text(&link, "new").unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn the_folder_of_a_run_holds_everything() {
    let scratch = Scratch::new("folder");
    let out = scratch.0.join("runs/one");
    let results = fixture::core_edge();
    let report = folder::write(&out, &results, fixture::SVG, Some(&fixture::graph()), &[]).unwrap();
    assert_eq!(report, out.join("report.html"));
    let mut names: Vec<_> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["lab.toml", "report.html", "results.json", "series.csv", "series.jsonl", "topology.svg"]);
    let read: Results = serde_json::from_str(&fs::read_to_string(out.join("results.json")).unwrap()).unwrap();
    assert_eq!(read, results);
}

#[test]
fn csv_has_a_column_for_each_quantity_and_a_row_for_each_step() {
    let mut results = fixture::fabric(2, 1);
    results.series.hosts[1].name = "a,\"b\"".into();
    let mut out = Vec::new();
    csv::write_csv(&mut out, &results).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), fixture::STEPS + 1);
    assert!(lines[0].starts_with("at_s,total.throughput_bytes_per_s,total.iops,"));
    assert!(lines[0].contains(",\"hosts.a,\"\"b\"\".iops\","));
    // Two commas belong to the quoted names of each of the host's three columns.
    let columns = lines[0].matches(',').count() - 3;
    assert_eq!(lines[1].matches(',').count(), columns);
    assert!(lines[4].starts_with("0.03,"), "{}", lines[4]);
}

#[test]
fn json_lines_have_an_object_for_each_step() {
    let mut results = fixture::core_edge();
    let utilisation = vec![0.25; fixture::STEPS];
    let of_plane = PlaneLinkSeries { name: "lan1.forward".into(), utilisation, ..PlaneLinkSeries::default() };
    results.series.plane_links.push(of_plane);
    let mut out = Vec::new();
    csv::write_json_lines(&mut out, &results).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), fixture::STEPS);
    assert_eq!(
        lines[100]["hosts"]["server1"]["throughput_bytes_per_s"],
        results.series.hosts[0].throughput_bytes_per_s[100]
    );
    assert_eq!(lines[100]["at_s"], 1.0);
    assert!(lines[100]["links"]["isl1.forward"]["utilisation"].is_number());
    assert!(lines[100]["total"]["frames_dropped"].is_u64());
    assert_eq!(lines[100]["plane_links"]["lan1.forward"]["utilisation"], 0.25);
    let mut out = Vec::new();
    csv::write_csv(&mut out, &results).unwrap();
    assert!(String::from_utf8(out).unwrap().lines().next().unwrap().contains(",plane_links.lan1.forward.utilisation"));
}

#[test]
fn a_short_series_leaves_cells_empty() {
    let mut results = fixture::fabric(1, 1);
    results.series.total.iops.truncate(1);
    let mut out = Vec::new();
    csv::write_csv(&mut out, &results).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().nth(2).unwrap().contains(",,"));
    let mut out = Vec::new();
    csv::write_json_lines(&mut out, &results).unwrap();
    let second: serde_json::Value =
        serde_json::from_str(String::from_utf8(out).unwrap().lines().nth(1).unwrap()).unwrap();
    assert!(second["total"].get("iops").is_none());
}

#[test]
fn the_reproducible_bytes_do_not_depend_on_the_engine() {
    let mut results = fixture::core_edge();
    let bytes = |results: &Results| {
        let mut out = Vec::new();
        json::write_value(&mut out, &results.reproducible_json()).unwrap();
        out
    };
    let before = bytes(&results);
    results.engine.wall_s += 1.0;
    assert_eq!(before, bytes(&results));
    results.totals.io.ios_failed += 1;
    assert_ne!(before, bytes(&results));
}
