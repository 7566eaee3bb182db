//! Parameter files of disks: the same disk as `serde` reads, and all mistakes at once.

use proptest::prelude::*;
use sanloom_storage::disk::{Disk, DiskConfig, file, preset};

fn text(config: &DiskConfig) -> String {
    toml::to_string(config).expect("a disk can be written")
}

fn mistakes(text: &str) -> Vec<String> {
    file::read(text).expect_err("the file has mistakes").iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_is_the_disk_that_was_written() {
    for config in preset::all() {
        let text = text(&config);
        let read = file::read(&text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
        assert_eq!(read, config);
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported_with_place_reason_and_remedy() {
    let text = text(&preset::cheetah_9lp())
        .replace("rpm = 10045.0", "rpm = -3")
        .replace("head_switch_ms", "head_swich_ms")
        .replace("read_ahead = \"one_track_ahead\"", "read_ahead = \"often\"")
        .replace("first_cylinder = 848", "first_cylinder = 800")
        .replace("[50, 1.804]", "[20, 1.804]")
        .replace("zero_latency_reads = false", "zero_latency_reads = 0");
    let found = mistakes(&text);
    let expected = [
        "`rpm` is -3; set a number from 60 to 1000000",
        "`head_swich_ms` is not a parameter; the keys here are name, blocks, surfaces",
        "`head_switch_ms` is missing; add head_switch_ms = 1",
        "`cache.read_ahead` is `often`; choose one of none, to_end_of_track, to_end_of_cylinder, until_full, \
         one_track_ahead",
        "the zone starts at cylinder 800, inside or before another zone; list the zones by first cylinder; the next \
         free cylinder is 847",
        "the seek point of 20 cylinders does not follow a shorter one; list the points by increasing distance",
        "`cache.zero_latency_reads` is not true or false; write true or false",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for part in expected {
        assert!(found.iter().any(|mistake| mistake.contains(part)), "{part}\n{found:#?}");
    }
    let line = text.lines().position(|line| line.starts_with("rpm")).expect("the key is there") + 1;
    assert!(found.iter().any(|mistake| mistake.starts_with(&format!("line {line}, column 7: `rpm`"))), "{found:#?}");
}

#[test]
fn an_impossible_layout_is_refused_with_the_reason() {
    let text = text(&preset::cheetah_9lp());
    let of = |from: &str, to: &str| mistakes(&text.replace(from, to)).join("\n");
    let cases = [
        ("blocks = 17783240", "blocks = 27783240", "the disk has 27783240 blocks, but its zones hold 17783240"),
        ("last_cylinder = 846", "last_cylinder = 20000000", "`zones[0].last_cylinder` is 20000000; set a whole number"),
        ("last_cylinder = 1643", "last_cylinder = 847", "the zone ends at cylinder 847 before it starts"),
        ("spare_blocks = 21212", "spare_blocks = 2581656", "the zone has 2581656 blocks, and all of them are empty"),
        ("surfaces = 12", "surfaces = 0", "`surfaces` is 0; set a whole number from 1 to 1024"),
        ("blocks_per_track = 254", "blocks_per_track = 0", "`zones[0].blocks_per_track` is 0"),
    ];
    for (from, to, reason) in cases {
        assert!(text.contains(from), "{from}");
        let found = of(from, to);
        assert!(found.contains(reason), "{to}: {found}");
    }
    let curve = "[seek.three_point]\nsingle_ms = 9.0\naverage_ms = 1.0\nfull_ms = 2.0\n";
    let config = DiskConfig { seek: preset::ultrastar_7k8().seek, ..preset::cheetah_9lp() };
    let three = toml::to_string(&config).expect("a disk can be written");
    let from = three.find("[seek.three_point]").expect("the curve has a table");
    let to = three[from..].find("\n\n").map_or(three.len(), |end| from + end + 1);
    let found = mistakes(&format!("{}{curve}{}", &three[..from], &three[to..])).join("\n");
    assert!(found.contains("change the numbers so that no seek takes a negative time"), "{found}");
}

#[test]
fn an_error_of_the_syntax_has_its_line() {
    let found = mistakes("name = \"x\"\nrpm = = 3\n");
    assert!(found.iter().all(|mistake| mistake.starts_with("line 2, ")), "{found:?}");
    assert!(mistakes("").iter().any(|mistake| mistake.contains("the table `cache` is missing; add [cache]")));
    assert!(mistakes(&"#".repeat(file::MAX_BYTES + 1))[0].contains("at most 1048576 bytes"));
}

proptest! {
    #[test]
    fn no_change_of_a_file_panics_and_each_accepted_file_is_a_disk(
        preset in 0..preset::all().len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), "[-0-9a-z_.\"=\\[\\]\n{} ]{0,12}", 0usize..12), 1..4),
    ) {
        let mut text = text(&preset::all()[preset]);
        for (at, new, removed) in changes {
            let from = at.index(text.len());
            let to = (from + removed).min(text.len());
            text.replace_range(from..to, &new);
        }
        match file::read(&text) {
            Ok(config) => {
                // An accepted file is a disk, and `serde` reads the same one.
                prop_assert!(Disk::new(&config).is_ok());
                prop_assert_eq!(toml::from_str::<DiskConfig>(&text).ok(), Some(config));
            }
            Err(mistakes) => prop_assert!(mistakes.iter().all(|m| !m.reason.is_empty() && !m.remedy.is_empty())),
        }
    }
}
