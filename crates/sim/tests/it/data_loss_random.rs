//! Random storage systems whose disks, blocks, batteries, power and links fail.

use crate::labs::{check, lab};
use sanloom_api::results::Metrics;
use sanloom_sim::rng::{Purpose, StreamRng, below, stream_rng};
use sanloom_sim::run::{Blind, Finished, Options, simulate};

/// Choices of one seed.
struct Dice(StreamRng);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        below(&mut self.0, bound)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

/// Faults of a lab, as far as they explain losses.
#[derive(Default)]
struct Dangers {
    disks: u64,
    blocks: bool,
    power: bool,
    battery: bool,
    tolerated: u64,
    has_cache: bool,
    /// A controller fails whose cache has the only copy of written data.
    controller: bool,
    has_copies: bool,
    has_controllers: bool,
}

/// Levels with the number of their disks, the failures that each survives, and protections.
const LEVELS: [(&str, u64, u64, &[&str]); 7] = [
    ("", 1, 0, &["resync"]),
    ("raid0", 3, 0, &["resync"]),
    ("raid1", 2, 1, &["resync", "bitmap"]),
    ("raid5", 4, 1, &["resync", "bitmap", "journal", "ppl"]),
    ("raid6", 5, 2, &["resync", "bitmap", "journal"]),
    ("raid10", 4, 1, &["resync", "bitmap"]),
    ("raid50", 6, 1, &["resync", "ppl"]),
];

fn storage(dice: &mut Dice, dangers: &mut Dangers) -> (String, u64) {
    let mut text = String::from("[storage.array]\nports = 2\nlun_size = \"4MiB\"\nluns = 2\n");
    let is_ssd = dice.below(3) == 0;
    text += match is_ssd {
        true => "ssd = \"870-evo\"\nssd_size = \"128MiB\"\nssd_state = \"fresh\"\n",
        false => "disk = \"atlas-10k\"\n",
    };
    if !is_ssd && dice.below(2) == 0 {
        text += "disk_write_cache = false\n";
    }
    let (level, members, tolerated, protections) = LEVELS[dice.below(LEVELS.len() as u64) as usize];
    dangers.tolerated = tolerated;
    if !level.is_empty() {
        let scrub = if dice.below(3) == 0 { ", scrub = \"300ms\", scrub_action = \"repair\"" } else { "" };
        text += &format!(
            "raid = {{ level = \"{level}\", disks = {members}, spares = {}, consistency = \"{}\", rebuild_min = \"{}\", rebuild_max = \"40Mb/s\"{scrub} }}\n",
            dice.below(2),
            dice.pick(protections),
            dice.pick(&["8Mb/s", "40Mb/s"])
        );
    }
    if dice.below(2) == 0 {
        dangers.has_cache = true;
        let write = dice.pick(&["back", "mirrored", "through", "around"]);
        dangers.has_copies = write != "back";
        text += &format!(
            "controller_cache = {{ size = \"{}\", write = \"{write}\", policy = \"{}\", destage = \"{}\", destages = {} }}\n",
            dice.pick(&["1MiB", "8MiB", "64MiB"]),
            dice.pick(&["lru", "fifo", "clock", "slru", "2q", "arc", "s3-fifo", "lfu"]),
            dice.pick(&["address", "age"]),
            1 + dice.below(40)
        );
    }
    if dice.below(2) == 0 {
        dangers.has_controllers = true;
        text += &format!(
            "controllers = {{ count = 2, takeover = \"{}ms\", {} }}\n",
            dice.below(200),
            dice.pick(&["access = \"symmetric\"", "failback = \"0s\"", "failback = \"100ms\"", "forward = \"1ms\""])
        );
    }
    if dice.below(3) == 0 {
        dangers.blocks = true;
        text += &format!("latent_errors_per_hour = {}\n", 1_000 + dice.below(19_000));
    }
    (text, members)
}

fn faults(dice: &mut Dice, members: u64, dangers: &mut Dangers) -> String {
    let mut text = String::new();
    let mut failed = Vec::new();
    for _ in 0..dice.below(5) {
        let at_ms = 50 + dice.below(900);
        let until_ms = at_ms + 1 + dice.below(300);
        let (lun, member) = (dice.below(2), dice.below(members));
        let ends = format!("until = \"{until_ms}ms\"\n");
        let one = match dice.below(6) {
            // A disk that has failed cannot fail once more.
            0 if !failed.contains(&(lun, member)) => {
                failed.push((lun, member));
                let count = |lun| failed.iter().filter(|(other, _)| *other == lun).count() as u64;
                dangers.disks = count(0).max(count(1));
                let ends = if dice.below(2) == 0 { &ends } else { "" };
                format!("kind = \"disk-failure\"\nlun = \"array:lun{lun}\"\nmember = {member}\n{ends}")
            }
            0 | 1 => {
                dangers.blocks = true;
                let block = dice.below(20_000);
                format!("kind = \"latent-error\"\nlun = \"array:lun{lun}\"\nmember = {member}\nblock = {block}\n")
            }
            2 => {
                dangers.power = true;
                format!("kind = \"power-failure\"\nstorage = \"array\"\n{ends}")
            }
            3 if dangers.has_cache => {
                dangers.battery = true;
                format!("kind = \"cache-battery\"\nstorage = \"array\"\n{ends}")
            }
            4 if dangers.has_controllers => {
                dangers.controller |= dangers.has_cache && !dangers.has_copies;
                format!("kind = \"controller-failure\"\nstorage = \"array\"\ncontroller = {}\n{ends}", dice.below(2))
            }
            _ => format!("kind = \"link-down\"\nlink = \"{}\"\n{ends}", dice.pick(&["one", "two"])),
        };
        text += &format!("[[fault]]\nat = \"{at_ms}ms\"\n{one}");
    }
    text
}

fn trial(seed: u64) -> (String, Dangers) {
    let mut dice = Dice(stream_rng(seed, Purpose::Replication, &["storage"]));
    let mut dangers = Dangers::default();
    let (array, members) = storage(&mut dice, &mut dangers);
    // A switch, or a loop with both hosts.
    let (room, rate) = match dice.below(3) {
        0 => ("[loop.room]\n", "4GFC"),
        _ => ("[switch.room]\n", "8GFC"),
    };
    let faults = faults(&mut dice, members, &mut dangers);
    let load = |dice: &mut Dice| {
        format!(
            "size = \"{}\"\nread_share = {}\ndepth = {}\nlocation = \"{}\"\n",
            dice.pick(&["4KiB", "16KiB", "128KiB"]),
            dice.pick(&["0.0", "0.5", "1.0"]),
            1 + dice.below(16),
            dice.pick(&["random", "sequential"])
        )
    };
    let (first, second) = (load(&mut dice), load(&mut dice));
    let text = format!(
        "[run]\nduration = \"150s\"\nwarmup = \"0s\"\nstop_issuing = \"1500ms\"\nseed = {seed}\n{room}\
         [host.\"server{{1..2}}\"]\n{array}\
         [[link]]\nname = \"one\"\nfrom = \"array\"\nto = \"room\"\nrate = \"{rate}\"\n\
         [[link]]\nname = \"two\"\nfrom = \"array:1\"\nto = \"room\"\nrate = \"{rate}\"\n\
         [[link]]\nfrom = \"server{{1..2}}\"\nto = \"room\"\nrate = \"{rate}\"\n\
         [workload.first]\nhosts = \"server1\"\ntargets = \"array\"\n{first}\
         [workload.second]\nhosts = \"server2\"\ntargets = \"array\"\n{second}{faults}"
    );
    (text, dangers)
}

fn run(text: &str) -> Finished {
    simulate(&lab(text), &Options::default(), &mut Blind)
}

#[test]
fn storage_systems_that_fail_lose_only_what_their_faults_explain() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("SANLOOM_FIRST_SEED").unwrap_or(0);
    let (mut lost, mut blocks) = (0, 0);
    for seed in first..first + number("SANLOOM_SEEDS").unwrap_or(50) {
        let (text, dangers) = trial(seed);
        let finished = run(&text);
        check(&finished);
        let metrics = Metrics::new(&finished.results);
        assert_eq!(metrics.get("totals.ios_unfinished"), Some(0.0), "seed {seed}\n{text}");
        assert!(metrics.get("totals.ios_completed") > Some(10.0), "seed {seed}\n{text}");
        let loss = finished.results.storage[0].data_loss.clone().unwrap_or_default();
        let place = || format!("seed {seed} {loss:?}\n{text}");
        assert!(loss.wrong_reads == 0 || dangers.power, "{}", place());
        let may_lose = dangers.disks > dangers.tolerated || dangers.blocks;
        assert!(loss.lost_requests == 0 || may_lose, "{}", place());
        assert!(loss.lost_blocks == 0 || dangers.power || dangers.controller || may_lose, "{}", place());
        (lost, blocks) = (lost + loss.lost_requests, blocks + loss.lost_blocks);
        if seed % 20 == 0 {
            assert_eq!(run(&text).results.totals, finished.results.totals, "{}", place());
        }
    }
    // The seeds contain losses.
    assert!(lost > 0 && blocks > 0, "{lost} {blocks}");
}
