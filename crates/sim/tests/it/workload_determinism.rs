//! The same seed gives the same numbers on every machine, independently of other streams.

use sanloom_fc::config::{Arrival, HotSet, Load, Location, Lun, Picos, Rate, SizeDistribution, Target, Workload};
use sanloom_sim::rng::{Purpose, below, exponential, standard_normal, stream_rng, uniform};
use sanloom_sim::workload::{Arrivals, Sizes, Stream, Zipf};
use std::fmt::Write;

const SAMPLES: usize = 20;

fn base() -> Workload {
    Workload {
        name: "w".into(),
        hosts: vec![0, 1],
        targets: vec![Target { storage: 0, lun: 0 }, Target { storage: 1, lun: 0 }],
        virtual_targets: Vec::new(),
        load: Load::Open(vec![
            Arrival::Poisson { rate: Rate(900.0) },
            Arrival::Normal { mean: Picos::from_ms(1), deviation: Picos::from_us(700) },
        ]),
        size: SizeDistribution::Exponential { mean: 8192, max: 1 << 20 },
        read_share: 0.6,
        location: Location::Random,
        hot_set: Some(HotSet { share_of_requests: 0.5, share_of_space: 0.1, zipf_exponent: 0.99, items: 1000 }),
        span_bytes: None,
        start: Picos::ZERO,
        stop: None,
    }
}

fn story(workload: &Workload, host: &str, seed: u64) -> String {
    let lun = Lun { blocks: 1 << 24, block_bytes: 512 };
    let mut stream = Stream::new(workload, (host, 0), &[lun; 2], seed);
    let mut story = String::new();
    for _ in 0..SAMPLES {
        let at_ps = stream.next_arrival_ps();
        let r = stream.next_request().expect("requests are drawn");
        let what = if r.op.is_write() { "write" } else { "read" };
        let line = format!("{at_ps:?} {what} {} {}+{}", r.target, r.lba, r.blocks);
        writeln!(story, "{line}").expect("writing to a string succeeds");
    }
    story
}

#[test]
fn the_first_samples_of_every_arrival_process_stay_the_same() {
    let rate = Rate(10_000.0);
    let kinds = [
        Arrival::Poisson { rate },
        Arrival::Constant { rate: Rate(22_500.0) },
        Arrival::Uniform { min: Picos::from_us(1), max: Picos::from_us(9) },
        Arrival::Normal { mean: Picos::from_us(5), deviation: Picos::from_us(5) },
        Arrival::OnOff { rate, on: Picos::from_us(300), off: Picos::from_us(700) },
    ];
    let first = kinds.map(|kind| {
        let mut arrivals = Arrivals::new(&[kind], 0, |process| stream_rng(42, Purpose::Arrival { process }, &["a"]));
        let times: Vec<u64> = (0..SAMPLES).map(|_| arrivals.next_ps()).collect();
        format!("{kind:?}: {times:?}")
    });
    insta::assert_snapshot!(first.join("\n"));
}

#[test]
fn the_first_samples_of_every_size_distribution_stay_the_same() {
    let laws = [
        SizeDistribution::Fixed(4096),
        SizeDistribution::Weighted(vec![(2048, 3.0), (8192, 1.0), (65_536, 0.5)]),
        SizeDistribution::Uniform { min: 512, max: 65_536, step: 512 },
        SizeDistribution::Exponential { mean: 8192, max: 65_536 },
    ];
    let first = laws.map(|law| {
        let sizes = Sizes::new(&law);
        let mut rng = stream_rng(42, Purpose::Size, &["a"]);
        let bytes: Vec<u32> = (0..SAMPLES).map(|_| sizes.next_bytes(&mut rng)).collect();
        format!("{law:?}: {bytes:?}")
    });
    insta::assert_snapshot!(first.join("\n"));
}

#[test]
fn the_first_samples_of_zipfs_law_stay_the_same() {
    let first = [0.0, 0.8, 1.0, 1.5].map(|exponent| {
        let zipf = Zipf::new(1000, exponent);
        let mut rng = stream_rng(42, Purpose::Location, &["a"]);
        let places: Vec<u32> = (0..SAMPLES).map(|_| zipf.next(&mut rng)).collect();
        format!("{exponent}: {places:?}")
    });
    insta::assert_snapshot!(first.join("\n"));
}

#[test]
fn the_first_requests_of_a_stream_stay_the_same() {
    insta::assert_snapshot!(story(&base(), "a", 42));
}

#[test]
fn streams_hosts_and_seeds_have_independent_random_numbers() {
    let other = Workload { name: "v".into(), ..base() };
    let stories = [story(&base(), "a", 1), story(&base(), "b", 1), story(&other, "a", 1), story(&base(), "a", 2)];
    for (index, story) in stories.iter().enumerate() {
        assert!(!stories[..index].contains(story));
    }
    assert_eq!(stories[0], self::story(&base(), "a", 1));
}

#[test]
fn another_read_share_or_size_does_not_change_times_and_targets() {
    let other = Workload { read_share: 0.1, size: SizeDistribution::Fixed(512), ..base() };
    let times_and_targets = |story: &str| -> Vec<String> {
        let fields = |line: &str| {
            let mut words = line.split(' ');
            (words.next().map(str::to_owned), words.nth(1).map(str::to_owned))
        };
        story.lines().map(|l| format!("{:?}", fields(l))).collect()
    };
    let (ours, others) = (story(&base(), "a", 1), story(&other, "a", 1));
    assert_ne!(ours, others);
    assert_eq!(times_and_targets(&ours), times_and_targets(&others));
}

#[test]
fn one_more_arrival_process_does_not_change_the_others() {
    let kinds = [Arrival::Poisson { rate: Rate(100.0) }, Arrival::Constant { rate: Rate(1e-3) }];
    let times = |kinds: &[Arrival]| -> Vec<u64> {
        let mut arrivals = Arrivals::new(kinds, 0, |process| stream_rng(1, Purpose::Arrival { process }, &["a", "b"]));
        (0..SAMPLES).map(|_| arrivals.next_ps()).collect()
    };
    // The constant process first fires after 1,000 s, so only its presence could change a result.
    assert_eq!(times(&kinds[..1]), times(&kinds));
}

#[test]
fn every_purpose_and_name_has_a_generator_of_its_own() {
    let purposes = [
        Purpose::Arrival { process: 0 },
        Purpose::Arrival { process: 1 },
        Purpose::Target,
        Purpose::Size,
        Purpose::Direction,
        Purpose::Location,
        Purpose::Route,
        Purpose::FrameLoss,
        Purpose::CrcError,
        Purpose::LostRRdy,
        Purpose::Jitter,
    ];
    let mut first = Vec::new();
    for seed in [0, 1] {
        for purpose in purposes {
            let names: [&[&str]; 7] =
                [&[], &["a"], &["a", "b"], &["b", "a"], &["ab"], &["a", ""], &["long enough for two words"]];
            for names in names {
                first.push(below(&mut stream_rng(seed, purpose, names), u64::MAX));
            }
        }
    }
    let all = first.len();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), all);
}

#[test]
fn numbers_below_a_bound_are_even_and_reach_their_ends() {
    let mut rng = stream_rng(1, Purpose::Target, &["a"]);
    let mut hits = [0u32; 5];
    for _ in 0..50_000 {
        hits[below(&mut rng, 5) as usize] += 1;
    }
    // The bound is 4 standard deviations of a binomial count.
    assert!(hits.iter().all(|&n| n.abs_diff(10_000) < 358), "{hits:?}");
    assert_eq!(below(&mut rng, 1), 0);
    assert_eq!(below(&mut rng, 0), 0);
    // Without rejection, four generator values would map to three numbers here, and multiples of 3
    // would be twice as frequent.
    let bound = 3 << 62;
    let multiples = (0..20_000).filter(|_| below(&mut rng, bound).is_multiple_of(3)).count();
    assert!(multiples.abs_diff(6_667) < 270, "{multiples}");
}

#[test]
fn samples_have_the_moments_of_their_laws() {
    const COUNT: usize = 100_000;
    let mut rng = stream_rng(5, Purpose::Jitter, &["a"]);
    let moments = |samples: &[f64]| {
        let moment = |k: i32| samples.iter().map(|x| x.powi(k)).sum::<f64>() / COUNT as f64;
        [moment(1), moment(2), moment(3), moment(4)]
    };
    let mut draw =
        |f: &dyn Fn(&mut sanloom_sim::rng::StreamRng) -> f64| -> Vec<f64> { (0..COUNT).map(|_| f(&mut rng)).collect() };
    let near = |got: [f64; 4], want: [f64; 4], within: [f64; 4]| (0..4).all(|k| (got[k] - want[k]).abs() <= within[k]);
    // The bound is four standard errors of each moment: 4 * sqrt((E x^2k - (E x^k)^2) / n).
    let exponentials = moments(&draw(&|rng| exponential(rng)));
    let within = [0.0127, 0.0566, 0.331, 2.53];
    assert!(near(exponentials, [1.0, 2.0, 6.0, 24.0], within), "{exponentials:?}");
    let normals = moments(&draw(&|rng| standard_normal(rng)));
    let within = [0.0127, 0.0179, 0.049, 0.124];
    assert!(near(normals, [0.0, 1.0, 0.0, 3.0], within), "{normals:?}");
    let uniforms = moments(&draw(&|rng| uniform(rng)));
    let within = [0.00366, 0.00378, 0.0036, 0.0034];
    assert!(near(uniforms, [0.5, 1.0 / 3.0, 0.25, 0.2], within), "{uniforms:?}");
}
