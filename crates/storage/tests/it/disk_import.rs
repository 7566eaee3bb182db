//! Parameter files of DiskSim: the same disks as the presets, and every error with its place.

use super::support::{compare, records};
use proptest::prelude::*;
use sanloom_storage::disk::import::{self, Imported};
use sanloom_storage::disk::{Disk, DiskConfig, file, preset};

fn folder(name: &str) -> Result<String, String> {
    let path = format!("{}/tests/data/disksim/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

fn imported(name: &str) -> Imported {
    import::disksim(name, &folder).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the demerit figures of the preset and of the imported file, in percent.
fn figures(preset: &DiskConfig, name: &str) -> [f64; 2] {
    let records = records(&preset.name);
    [preset, &imported(name).config].map(|config| compare(config, &records).0)
}

#[test]
fn an_imported_disk_is_nearly_as_close_to_the_measurement_as_the_preset() {
    let disks = [
        (preset::cheetah_9lp(), "cheetah9LP.parv"),
        (preset::atlas_10k(), "atlas10k.parv"),
        (preset::c2247a(), "hp_c2247a.parv"),
    ];
    for (preset, name) in disks {
        let [ours, theirs] = figures(&preset, name);
        println!("{name}: preset {ours:.2} %, imported {theirs:.2} %");
        assert!(theirs <= ours + 1.0, "{name}: preset {ours:.2} %, imported {theirs:.2} %");
    }
}

#[test]
fn an_imported_disk_has_the_parameters_of_the_preset() {
    let ours = preset::c2247a();
    let Imported { config, notes, others } = imported("hp_c2247a.parv");
    assert_eq!(config.name, "hp-c2247a");
    assert_eq!((config.blocks, config.surfaces, config.seek), (ours.blocks, ours.surfaces, ours.seek));
    assert_eq!((config.cache, config.bus), (ours.cache, ours.bus));
    for (zone, preset) in config.zones.iter().zip(ours.zones.iter()) {
        assert_eq!(zone.last_cylinder, preset.last_cylinder);
        assert_eq!(zone.spare_blocks + zone.empty_blocks, preset.spare_blocks + preset.empty_blocks);
    }
    assert!((config.overheads.write_transfer_delay_ms - 0.89244).abs() < 1e-9);
    let names: Vec<&str> = notes.iter().map(|note| note.parameter.as_str()).collect();
    assert!(names.contains(&"Minimum seek delay") && names.contains(&"slips"), "{names:?}");
    assert!(!names.contains(&"Head switch time") && others.is_empty());
    let cheetah = imported("cheetah9LP.diskspecs").config;
    assert_eq!((cheetah.seek, cheetah.overheads.write_after_read_ms), (preset::cheetah_9lp().seek, 0.748));
    // The printed file is the same disk.
    let text = toml::to_string(&imported("atlas10k.parv").config).expect("a disk can be written");
    assert_eq!(file::read(&text).expect("the printed file is valid"), imported("atlas10k.parv").config);
}

#[test]
fn spares_of_tracks_and_cylinders_keep_the_capacity() {
    // A disk with a spare block on each track, and one with six on each cylinder.
    let of = |scheme: &str, spares: &str, blocks: &str| {
        let files = |name: &str| match name {
            "x.model" => folder("hp_c2247a.model").map(|_| {
                format!(
                    "dm_disk X {{ Number of data surfaces = 14, Number of cylinders = 2599, Block count = {blocks},\n\
                     Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0, Sparing scheme used = {scheme},\n\
                     Zones = [ dm_layout_g1_zone {{ First cylinder number = 0, Last cylinder number = 2598, Blocks per \
                     track = 58, Offset of first block = 0, Empty space at zone front = 0, Skew for track switch = 7, \
                     Skew for cylinder switch = 25, Number of spares = {spares}, slips = [], defects = [] }} ] }},\n\
                     Mechanical Model = dm_mech_g1 {{ Seek type = curve, Single cylinder seek time = 1.0, Average seek \
                     time = 10.0, Full strobe seek time = 20.0, Add. write settling delay = -0.483, Head switch time = \
                     0.9, Rotation speed (in rpms) = 5360 }} }}"
                )
            }),
            "x.diskspecs" => folder("hp_c2247a.diskspecs").map(|text| text.replace("hp_c2247a.model", "x.model")),
            _ => Err("no such file".to_owned()),
        };
        import::disksim("x.diskspecs", &files).unwrap_or_else(|error| panic!("{error}"))
    };
    let tracks = of("3", "1", "2074002");
    assert_eq!(Disk::new(&tracks.config).expect("valid").mechanism().geometry.blocks(), 2599 * 14 * 57);
    assert!(tracks.notes.iter().any(|note| note.parameter == "Add. write settling delay"), "{:?}", tracks.notes);
    let cylinders = of("2", "6", "2094794");
    assert_eq!(Disk::new(&cylinders.config).expect("valid").mechanism().geometry.blocks(), 2599 * (14 * 58 - 6));
    let geometry = Disk::new(&cylinders.config).expect("valid").mechanism().geometry.clone();
    assert_eq!(geometry.place(14 * 58 - 6).cylinder, 1);
    assert_eq!(geometry.place(14 * 58 - 7).left_on_track, 1);
}

#[test]
fn an_error_names_the_file_the_line_and_the_remedy() {
    let error = |file: &str, change: &dyn Fn(String) -> String| {
        let files = |name: &str| folder(name).map(|text| if name.ends_with(file) { change(text) } else { text });
        import::disksim("cheetah9LP.parv", &files).expect_err("the file has an error").to_string()
    };
    let cases = [
        (error(".seek", &|text| text.replace("0.831", "fast")), "cheetah9LP.seek:2: `1, fast` is not a distance"),
        (error(".diskspecs", &|text| text.replace(".model", ".none")), "cheetah9LP.none cannot be read"),
        (
            error(".parv", &|text| text.replace("source", "# source")),
            "the file has no block disksim_disk; give a .parv",
        ),
        (
            error(".model", &|text| text.replace("= 10045", "= 0")),
            "`Rotation speed (in rpms)` is 0; it must be from 60",
        ),
        (error(".model", &|text| text.replace("extracted", "magic")), "`Seek type` is not linear, curve"),
        (error(".model", &|text| text.replace("= 17783240", "= 97783240")), "97783240 blocks, but its zones hold"),
        (
            error(".model", &|text| text.trim_end().trim_end_matches('}').to_owned()),
            "the block dm_disk does not end; add a brace }",
        ),
        (error(".diskspecs", &|text| text.replace("cheetah9LP.model", "cheetah9LP.diskspecs")), "without an end"),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message}, expected {part}");
    }
}

proptest! {
    #[test]
    fn no_change_of_the_files_panics_and_each_imported_disk_is_possible(
        disk in 0usize..3,
        which in 0usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[-0-9a-z.\\[\\]{}=,#\n ]{0,12}", 0usize..12), 1..4),
    ) {
        let name = ["cheetah9LP", "atlas10k", "hp_c2247a"][disk];
        let end = [".parv", ".diskspecs", ".model", ".seek"][which];
        let files = |name: &str| {
            let mut text = folder(name)?;
            for (at, new, removed) in changes.iter().filter(|_| name.ends_with(end)) {
                let from = at.index(text.len());
                text.replace_range(from..(from + removed).min(text.len()), new);
            }
            Ok(text)
        };
        match import::disksim(&format!("{name}.parv"), &files) {
            Ok(imported) => prop_assert!(Disk::new(&imported.config).is_ok()),
            Err(error) => prop_assert!(!error.reason.is_empty() && !error.remedy.is_empty()),
        }
    }
}
