//! The topology report on disks and controllers of storage systems.

use sanloom_lab::topology::{Part, Report};

/// Report of a server with 4 LUNs of disks whose storage system has these lines.
fn report_of_disks(lines: &str) -> Report {
    let text = format!(
        "[switch.sw]\n[host.h]\n[storage.array]\ndisk = \"cheetah-9lp\"\nluns = 4\n{lines}\n\
         [[link]]\nfrom = \"{{h,array}}\"\nto = \"sw\"\n[workload.io]\nhosts = \"h\"\ntargets = \"array:lun{{0..2}}\"\n"
    );
    let loaded = sanloom_lab::load("lab.toml", &text, &[] as &[sanloom_lab::Override]);
    let lab = loaded.unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false))).lab;
    Report::of(&lab, &[])
}

#[test]
fn luns_in_use_without_redundancy_are_single_points_of_failure() {
    let names = |report: &Report| -> Vec<String> {
        let points = report.single_points.iter().filter(|point| matches!(point.part, Part::Unprotected(..)));
        points.map(|point| point.name.clone()).collect()
    };
    let three = ["array:lun0", "array:lun1", "array:lun2"];
    assert_eq!(names(&report_of_disks("")), three);
    assert_eq!(names(&report_of_disks("raid = { level = \"raid0\", disks = 2 }")), three);
    assert!(names(&report_of_disks("raid = { level = \"raid1\", disks = 2 }")).is_empty());
}

#[test]
fn a_controller_is_a_single_point_of_failure_if_no_other_has_a_path_or_a_copy() {
    let points = |links: &str, lines: &str| -> Vec<(String, usize)> {
        let text = format!(
            "[switch.sw]\n[host.\"h{{1..2}}\"]\n[storage.array]\nports = 2\nluns = 2\ndisk = \"cheetah-9lp\"\n\
             controllers = {{ count = 2 }}\nraid = {{ level = \"raid1\", disks = 2 }}\n{lines}\n\
             [[link]]\nfrom = \"{{h1,h2}}\"\nto = \"sw\"\n[[link]]\nfrom = \"{links}\"\nto = \"sw\"\n\
             [workload.io]\nhosts = \"h1\"\ntargets = \"array\"\n[workload.other]\nhosts = \"h2\"\n\
             targets = \"array:lun0\"\n"
        );
        let loaded = sanloom_lab::load("lab.toml", &text, &[] as &[sanloom_lab::Override]);
        let lab = loaded.unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false))).lab;
        let points = Report::of(&lab, &[]).single_points;
        let controllers = points.into_iter().filter(|point| matches!(point.part, Part::Controller(..)));
        controllers.map(|point| (point.name, point.hosts)).collect()
    };
    assert_eq!(points("array:{0..1}", ""), []);
    assert_eq!(points("array:1", ""), [("array:controller1".to_owned(), 2)]);
    let cache = |write: &str| format!("controller_cache = {{ size = \"1MiB\", write = \"{write}\" }}");
    assert_eq!(points("array:{0..1}", &cache("mirrored")), []);
    let both = [("array:controller0".to_owned(), 2), ("array:controller1".to_owned(), 1)];
    assert_eq!(points("array:{0..1}", &cache("back")), both);
}

#[test]
fn the_mean_time_to_data_loss_is_that_of_patterson_gibson_and_katz() {
    const HOURS: f64 = 8_766.0;
    let of = |lines: &str| report_of_disks(lines).durability.remove(0);
    let failures = "failures = { mttf_hours = 1e6, replacement = \"0s\", errors_per_bit = 0.0 }";
    let single = of(failures);
    assert_eq!((single.devices, single.tolerated, single.rebuild_h), (4, Some(0), None));
    let years = |row: &sanloom_lab::topology::Durability| row.mttdl_years.expect("the layout is modelled");
    assert!((years(&single) / (1e6 / 4.0 / HOURS) - 1.0).abs() < 1e-9, "{single:?}");
    let raid = of(&format!("raid = {{ level = \"raid5\", disks = 5 }}\n{failures}"));
    let rebuild_h = raid.rebuild_h.expect("a rebuild");
    // 9 GB at 13 to 25 MB/s.
    assert!((0.1..0.2).contains(&rebuild_h), "{rebuild_h}");
    // Four groups of five.
    let expected = 1e6 * 1e6 / (4.0 * 5.0 * 4.0 * rebuild_h) / HOURS;
    assert!((years(&raid) / expected - 1.0).abs() < 0.01, "{raid:?}, expected {expected}");
    // A read error in the rebuild of one disk from four loses data.
    let errors = of(&format!("raid = {{ level = \"raid5\", disks = 5 }}\n{}", failures.replace("0.0", "1e-14")));
    let chance = 1.0 - (-4.0 * 9.1e9 * 8.0 * 1e-14_f64).exp();
    let expected = 1e6 / (4.0 * 5.0 * chance) / HOURS;
    assert!((years(&errors) / expected - 1.0).abs() < 0.03, "{errors:?}, expected {expected}");
    assert!(errors.loss.expect("a probability") > 1e-4, "{errors:?}");
}
