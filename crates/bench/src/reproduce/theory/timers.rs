//! Timers of the protocols: a lab with a fault for each, and the time of the event that follows.

use super::bed::{simulate, times};
use super::row::{Basis, Row};
use sanloom_api::results::{EventKind, Results};
use sanloom_console::exit::Failure;

const SECTION: &str = "Timers";
const NEAR: &str = "a few frames, a request and its answer";

const CREDIT: Basis = Basis {
    section: SECTION,
    source: "Start of the starvation + E_D_TOV: link reset by a port without credit. Start + hold time: discard of the frames \
             that wait for it (FC-FS-3, E_D_TOV and credit recovery; hold time as in switches of today)",
    tolerance_reason: NEAR,
};
const ROUND: Basis = Basis {
    section: SECTION,
    source: "Fault + RSCN delay: the host learns the loss and asks the name server. From there fast_io_fail until commands \
             move, dev_loss until the path is removed; from the failed path no_path_retry polling intervals until the request fails (FC-LS \
             RSCN; FC transport class and dm-multipath of Linux)",
    tolerance_reason: NEAR,
};
const COMMAND: Basis = Basis {
    section: SECTION,
    source: "Start of the last command before the loss + command_timeout: abort (ABTS)",
    tolerance_reason: NEAR,
};
const LOGIN: Basis = Basis {
    section: SECTION,
    source: "A FLOGI without an answer is sent again after E_D_TOV, an ELS such as PLOGI after 2 × R_A_TOV (FC-LS-3; FLOGI as in \
             libfc); the path returns one RSCN delay after the login of the storage. The difference of two runs removes the \
             pause before the repetition of a PLOGI",
    tolerance_reason: NEAR,
};
const SELECTION: Basis = Basis {
    section: SECTION,
    source: "Build fabric: F_S_TOV until the selection starts, and 2 × F_S_TOV without a better claim (FC-SW-6). The \
             difference of two runs removes the messages",
    tolerance_reason: NEAR,
};
const HELLO: Basis = Basis {
    section: SECTION,
    source: "An adjacency sends one HLO per hello interval and ends a dead interval after the last one (RFC 4626, FC-SW-6). \
             The difference of two runs removes the phase",
    tolerance_reason: NEAR,
};

/// Largest accepted deviation of times, in ms.
const TOLERANCE_MS: f64 = 0.1;

/// A switch with a host and a storage system. Sections and keys are appended to it.
fn lab(host: &str, tail: &str) -> String {
    format!(
        r#"
        [switch.sw]
        [host.h]
        {host}
        [storage.s]
        [[link]]
        from = "{{h,s}}"
        to = "sw"
        length = "1m"
        name = "{{a,b}}"
        [workload.w]
        hosts = "h"
        targets = "s"
        size = "64KiB"
        depth = 1
        [run]
        warmup = "0s"
        {tail}
        "#
    )
}

/// Returns the time of the n-th event of a kind, in ms.
fn at_ms(results: &Results, kind: EventKind, subject: &str, number: usize) -> Option<f64> {
    times(results, kind, subject).nth(number).map(|at| at * 1e3)
}

fn row(basis: &Basis, id: &str, what: &str, theory: f64, ours: Option<f64>) -> Row {
    basis.row(format!("timer-{id}"), what, "ms", theory, ours, TOLERANCE_MS)
}

/// Credits that a port withholds: E_D_TOV and hold time.
pub fn credit() -> Result<Vec<Row>, Failure> {
    let tail = r#"
        duration = "400ms"
        [timers]
        e_d_tov = "150ms"
        hold_time = "100ms"
        r_a_tov = "1s"
        [[fault]]
        at = "50ms"
        kind = "withheld-credits"
        port = "h"
        "#;
    let results = simulate("credit", &lab("frame_buffers = 1", tail))?;
    let reset = at_ms(&results, EventKind::LinkReset, "a", 0);
    let discard = at_ms(&results, EventKind::FramesDiscarded, "sw", 0);
    Ok(vec![
        row(&CREDIT, "e-d-tov", "E_D_TOV 150 ms, no credit from 50 ms on: link reset", 200.0, reset),
        row(&CREDIT, "hold-time", "hold time 100 ms, no credit from 50 ms on: discard", 150.0, discard),
    ])
}

/// A storage port that goes away: RSCN delay, fast_io_fail, dev_loss, no_path_timeout.
pub fn lost_port() -> Result<Vec<Row>, Failure> {
    let host = r#"
        command_timeout = "4s"
        retries = 200
        multipath = { fast_io_fail = "3s", dev_loss = "9s", no_path_retry = 4 }
        "#;
    let tail = r#"
        duration = "30s"
        [timers]
        rscn_delay = "300ms"
        [[fault]]
        at = "1s"
        kind = "port-down"
        port = "s"
        "#;
    let results = simulate("lost-port", &lab(host, tail))?;
    let path = |number| at_ms(&results, EventKind::PathFailover, "h", number);
    let failed = at_ms(&results, EventKind::IoFailed, "h", 0);
    Ok(vec![
        row(&ROUND, "rscn-delay", "RSCN delay 300 ms, port down at 1 s: path blocked", 1_300.0, path(0)),
        row(&ROUND, "fast-io-fail", "fast_io_fail 3 s after that: path failed", 4_300.0, path(1)),
        row(&ROUND, "dev-loss", "dev_loss 9 s after that: path removed", 10_300.0, path(2)),
        row(&ROUND, "no-path-retry", "no_path_retry 4 x 5 s after the path failed: request failed", 24_300.0, failed),
    ])
}

/// A command whose frames are lost: command timeout.
pub fn command() -> Result<Vec<Row>, Failure> {
    let tail = r#"
        duration = "2s"
        [[fault]]
        at = "1s"
        for = "100ms"
        kind = "frame-loss"
        link = "b"
        probability = 1.0
        "#;
    let results = simulate("command", &lab("command_timeout = \"700ms\"", tail))?;
    let aborted = at_ms(&results, EventKind::CommandAborted, "h", 0);
    Ok(vec![row(&COMMAND, "command", "command_timeout 700 ms, frames lost from 1 s on: abort", 1_700.0, aborted)])
}

/// Requests of a login that are lost: FLOGI of the storage system, PLOGI of the host.
pub fn login() -> Result<Vec<Row>, Failure> {
    let host = r#"
        command_timeout = "100s"
        multipath = { fast_io_fail = "60s", dev_loss = "90s", no_path_retry = 12 }
        "#;
    let tail = |from_ms: u32, r_a_tov_s: u32| {
        format!(
            r#"
            duration = "{}s"
            [timers]
            r_a_tov = "{r_a_tov_s}s"
            e_d_tov = "510ms"
            rscn_delay = "20ms"
            [[fault]]
            at = "1s"
            for = "1s"
            kind = "port-down"
            port = "s"
            [[fault]]
            at = "{from_ms}ms"
            for = "50ms"
            kind = "frame-loss"
            link = "b"
            probability = 1.0
            "#,
            2 * r_a_tov_s + 4
        )
    };
    let restored = |from_ms, r_a_tov_s| {
        let results = simulate("login", &lab(host, &tail(from_ms, r_a_tov_s)))?;
        Ok::<_, Failure>(at_ms(&results, EventKind::PathRestored, "h", 0))
    };
    let (flogi, short, long) = (restored(1_990, 2)?, restored(2_010, 2)?, restored(2_010, 5)?);
    let growth = short.zip(long).map(|(short, long)| long - short);
    Ok(vec![
        row(&LOGIN, "flogi", "E_D_TOV 510 ms, FLOGI at 2 s lost: path back", 2_530.0, flogi),
        row(&LOGIN, "r-a-tov", "R_A_TOV 5 s instead of 2 s, PLOGI lost: path back later by", 6_000.0, growth),
    ])
}

/// The loss of a link of the principal's tree: F_S_TOV.
pub fn selection() -> Result<Vec<Row>, Failure> {
    let restored = |f_s_tov_s: u32| {
        let text = format!(
            r#"
            [run]
            duration = "{}s"
            warmup = "0s"
            [timers]
            f_s_tov = "{f_s_tov_s}s"
            [switch.core]
            domain = 1
            fabric = {{ priority = 1 }}
            [switch."edge{{1..3}}"]
            domain = 2
            [[isl]]
            from = "edge{{1..3}}"
            to = "core"
            [[isl]]
            from = "edge{{1..2}}"
            to = "edge{{2..3}}"
            [host.h]
            discovery = false
            [[link]]
            from = "h"
            to = "edge1"
            [[fault]]
            at = "1s"
            until = "1.5s"
            kind = "link-down"
            link = "ISL1"
            "#,
            3 * f_s_tov_s + 3,
        );
        let results = simulate("selection", &text)?;
        // The first change of the routes is the loss of the link.
        Ok::<_, Failure>(at_ms(&results, EventKind::Reroute, "", 1))
    };
    let (short, long) = (restored(1)?, restored(4)?);
    let growth = short.zip(long).map(|(short, long)| long - short);
    let what = "F_S_TOV 4 s instead of 1 s: rebuild of the fabric takes longer by";
    Ok(vec![row(&SELECTION, "f-s-tov", what, 9_000.0, growth)])
}

/// A link that loses all frames: HLO and dead interval of path selection.
pub fn hello() -> Result<Vec<Row>, Failure> {
    let run = |dead_s: u32| {
        let text = format!(
            r#"
            [run]
            duration = "40s"
            warmup = "0s"
            [timers]
            fspf_hello = "2s"
            fspf_dead = "{dead_s}s"
            [switch."sw{{1..2}}"]
            [host.h]
            discovery = false
            [[link]]
            from = "h"
            to = "sw1"
            [[isl]]
            from = "sw1"
            to = "sw2"
            name = "isl"
            [[fault]]
            at = "8.5s"
            kind = "frame-loss"
            link = "isl"
            probability = 1.0
            "#
        );
        simulate("hello", &text)
    };
    let (short, long) = (run(7)?, run(13)?);
    let lost = |results: &Results| at_ms(results, EventKind::Reroute, "", 0);
    let growth = lost(&short).zip(lost(&long)).map(|(short, long)| long - short);
    let isl = |results: &Results| results.links.iter().find(|link| link.name == "isl").map(|link| link.forward.frames);
    let frames = isl(&long).map(|frames| frames as f64);
    let mut hellos = HELLO.row("timer-fspf-hello", "hello interval 2 s: HLOs in 40 s", "frames", 20.0, frames, 0.5);
    hellos.tolerance_reason = "exact";
    Ok(vec![
        hellos,
        row(&HELLO, "fspf-dead", "dead interval 13 s instead of 7 s: the link is lost later by", 6_000.0, growth),
    ])
}
