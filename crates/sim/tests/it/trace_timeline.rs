//! The text timeline of a link.

use crate::labs::{self, FABRIC, TINY, lab_with, link, watched};
use sanloom_fc::san::Lab;
use sanloom_sim::trace::Trace;
use std::sync::Arc;

fn trace(lab: &Arc<Lab>, name: &str) -> String {
    let mut out = String::new();
    let mut trace = Trace::new(lab, link(lab, name), &mut out);
    watched(lab, &mut |world, observed| trace.add(world, observed, &mut out));
    trace.finish(&mut out);
    out
}

#[test]
fn a_login_and_the_first_read() {
    let lab = lab_with(TINY, "", &["run.duration=200us"]);
    let text = trace(&lab, "server-edge");
    insta::assert_snapshot!(text);
}

#[test]
fn a_write_transfers_one_burst_for_each_xfer_rdy() {
    let sets = ["run.duration=300us", "workload.reads.read_share=0", "storage.*.max_burst=2KiB"];
    let text = trace(&lab_with(TINY, "", &sets), "server-edge");
    let from = text.find("FCP_CMND").expect("a command");
    let whats = [
        "FCP_CMND WRITE(10)",
        "FCP_XFER_RDY offset 0",
        "FCP_DATA 1/2 offset 0",
        "FCP_XFER_RDY offset 2048",
        "FCP_DATA 2/2 offset 2048",
        "FCP_RSP GOOD",
    ];
    let mut at = from;
    for what in whats {
        at += text[at..].find(what).unwrap_or_else(|| panic!("no {what} behind\n{}", &text[at..]));
    }
}

#[test]
fn lines_are_in_order_and_fill_words_end_at_the_next_frame_or_r_rdy() {
    let lab = lab_with(FABRIC, "", &["run.duration=3ms", "run.warmup=0s"]);
    let text = trace(&lab, "ISL");
    let word_ns = 4e9 / 425e6;
    // For each direction, the end of the last run of fill words.
    let mut filled = [None, None];
    let (mut last, mut runs) = (0.0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let time: f64 = words.next().unwrap().parse().unwrap();
        let direction = usize::from(words.next() == Some("<"));
        assert!(time >= last, "{line}");
        last = time;
        if let Some((count, since)) = line.split("IDLE x ").nth(1).and_then(|run| run.split_once(" since ")) {
            let since: f64 = since.trim().parse().unwrap();
            filled[direction] = Some(since + count.parse::<f64>().unwrap() * word_ns);
            continue;
        }
        if let Some(end) = filled[direction].take() {
            assert!((-0.01..word_ns).contains(&(time - end)), "{line}: fill ends at {end}");
            runs += 1;
        }
    }
    assert!(runs > 100, "{runs} runs of fill words");
}

#[test]
fn credits_fall_with_each_frame_and_never_below_zero() {
    let lab = lab_with(FABRIC, "", &["run.duration=3ms", "run.warmup=0s"]);
    let text = trace(&lab, "ISL");
    let credits: Vec<u32> = text
        .lines()
        .filter_map(|line| line.split(" credits ").nth(1))
        .filter_map(|c| c.split_whitespace().next()?.parse().ok())
        .collect();
    assert!(credits.len() > 100 && credits.iter().all(|&c| c < 16), "{:?}", credits.iter().max());
}

#[test]
fn a_dark_link_carries_no_idle() {
    let fault = "[[fault]]\nat = \"2ms\"\nfor = \"3ms\"\nkind = \"link-down\"\nlink = \"server-edge\"";
    let text = trace(&lab_with(TINY, fault, &["run.duration=8ms"]), "server-edge");
    let time = |line: &str| line.split_whitespace().next().and_then(|t| t.parse::<f64>().ok()).expect("a time");
    for direction in [" > ", " < "] {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && line.contains(direction)).collect();
        let place = |what: &str| lines.iter().position(|line| line.ends_with(what)).unwrap_or_else(|| panic!("{text}"));
        let (down, up) = (place("link down"), place("link up"));
        assert_eq!(up, down + 1, "nothing passes in between");
        assert!((time(lines[up]) - time(lines[down]) - 3e6).abs() < 1.0);
        let next = lines[up + 1];
        let since = next.split(" since ").nth(1).and_then(|since| since.parse::<f64>().ok());
        assert!(since.is_none_or(|since| since >= time(lines[up])), "{next}");
    }
}

#[test]
fn a_link_reset_takes_two_words_and_restores_the_lost_credits() {
    let fault = "[[fault]]\nat = \"1ms\"\nfor = \"9ms\"\nkind = \"lost-r-rdy\"\nlink = \"server-edge\"\nend = \"server\"\nprobability = 1.0";
    let sets = [
        "run.duration=300ms",
        "host.server.command_timeout=30ms",
        "timers.e_d_tov=20ms",
        "timers.r_a_tov=50ms",
        "timers.hold_time=10ms",
    ];
    let text = trace(&lab_with(TINY, fault, &sets), "server-edge");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let lr: Vec<_> = lines.iter().filter(|line| line.get(3) == Some(&"LR")).collect();
    let lrr: Vec<_> = lines.iter().filter(|line| line.get(3) == Some(&"LRR")).collect();
    assert!(!lr.is_empty() && lr.len() == lrr.len(), "{} LR, {} LRR", lr.len(), lrr.len());
    for (reset, reply) in lr.iter().zip(&lrr) {
        assert_ne!(reset[1], reply[1], "LRR travels against LR");
        let [at, then, since] = [reset[0], reply[0], reply[7]].map(|time| time.parse::<f64>().expect("a time"));
        assert!(at < then && (since - at - 2.0 * (then - at)).abs() < 0.01, "{reset:?} {reply:?}");
        // After the reset, the sender counts from the new credits.
        let credits: u32 = reply[5].parse().expect("a number");
        let next = lines.iter().find(|line| {
            line.get(1) == Some(&reset[1])
                && line.contains(&"credits")
                && line[0].parse().is_ok_and(|at: f64| at >= since)
        });
        let next = next.expect("a frame after the reset");
        assert_eq!(next[next.len() - 1].parse::<u32>().ok(), credits.checked_sub(1), "{next:?} after {reply:?}");
    }
}

#[test]
fn a_virtual_link_has_frames_without_fill_words_and_credits() {
    let text = trace(&labs::lab(labs::planes::FCOE), "virtual");
    for what in ["  FLOGI  ", "  FLOGI: LS_ACC  ", "  FCP_CMND READ(10) ", "  FCP_RSP GOOD  "] {
        assert!(text.contains(what), "no {what} in\n{text}");
    }
    assert!(!text.contains("IDLE") && !text.contains("credits") && !text.contains("R_RDY"), "{text}");
}
