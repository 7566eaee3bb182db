//! Windows of FCIP links, as the warnings and the results of a run state them.

use sanloom_fc::san::{LimitedEnds, ProblemKind, window_limits};

#[test]
fn windows_of_fcip_links_have_the_same_numbers_in_warnings_and_in_results() {
    let loaded = sanloom_lab::load("lab.toml", include_str!("bad/fcip_advice.toml"), &[]);
    let lab = loaded.unwrap_or_else(|error| panic!("{error}")).lab;
    let limits = window_limits(&lab, 10);
    assert_eq!(limits.len(), 2, "{limits:?}");
    let advice = lab.advice();
    for limit in limits {
        let LimitedEnds::Link(link) = limit.ends else { panic!("{limit:?}") };
        let name = format!("`{}`", lab.links[usize::from(link)].name);
        let is_own = |kind: ProblemKind, reason: &str| kind == ProblemKind::SmallWindow && reason.starts_with(&name);
        let own: Vec<_> = advice.iter().filter(|problem| is_own(problem.kind, &problem.reason)).collect();
        let number = format!("{} of {} bytes fills it only to {:.1} MB/s", limit.what, limit.bytes, limit.mb_per_s);
        assert!(own.iter().any(|problem| problem.reason.ends_with(&number)), "{number}: {own:?}");
        for (word, needed) in ["window", "send_buffer"].into_iter().zip(limit.needed) {
            let remedy = format!("set `{word} = \"{}MiB\"` in `fcip`, or more", needed.div_ceil(1 << 20));
            assert!(own.iter().any(|problem| problem.remedy == remedy), "{remedy}: {own:?}");
        }
    }
}
