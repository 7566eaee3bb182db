//! Validation of the timers of the fabric.

use super::Problems;
use crate::config::{Picos, Timers};
use crate::san::{Place, ProblemKind, Section};

/// Section of all timers.
const PLACE: Place = Place::of(Section::Timers, 0);

/// Timer of the lab: its key, its value and its default.
struct Timer {
    key: &'static str,
    value: Picos,
    default: Picos,
}

pub(super) fn validate(timers: &Timers, problems: &mut Problems) {
    for (key, value) in [("e_d_tov", timers.e_d_tov), ("r_a_tov", timers.r_a_tov), ("hold_time", timers.hold_time)] {
        problems.time(PLACE.key(key), value, Picos::from_us(1), Picos::from_secs(3600));
    }
    problems.time(PLACE.key("f_s_tov"), timers.f_s_tov, Picos::from_ms(1), Picos::from_secs(3600));
    problems.time(PLACE.key("fspf_hello"), timers.hello, Picos::SECOND, Picos::from_secs(3600));
    problems.time(PLACE.key("fspf_dead"), timers.dead, Picos::SECOND, Picos::from_secs(36_000));
    problems.time(PLACE.key("rscn_delay"), timers.rscn_delay, Picos::ZERO, Picos::from_secs(3600));
    order(timers, problems);
    for (key, value) in [("fspf_hello", timers.hello), ("fspf_dead", timers.dead)] {
        if value > Picos::SECOND && !value.0.is_multiple_of(Picos::SECOND.0) {
            problems.add(
                ProblemKind::BadTime,
                PLACE.key(key),
                format!("`{key}` cannot be {value}, because the HLO of FSPF counts whole seconds"),
                format!("choose whole seconds, such as \"{}s\"", value.0.div_ceil(Picos::SECOND.0)),
            );
        }
    }
}

/// Checks the order of timers that the standards require.
fn order(timers: &Timers, problems: &mut Problems) {
    let default = Timers::default();
    let timer = |key, value, default| Timer { key, value, default };
    let e_d_tov = timer("e_d_tov", timers.e_d_tov, default.e_d_tov);
    let r_a_tov = timer("r_a_tov", timers.r_a_tov, default.r_a_tov);
    let hold_time = timer("hold_time", timers.hold_time, default.hold_time);
    let hello = timer("fspf_hello", timers.hello, default.hello);
    let dead = timer("fspf_dead", timers.dead, default.dead);
    require(&r_a_tov, &e_d_tov, problems, |longer, shorter| {
        (
            format!("R_A_TOV ({longer}) is not longer than E_D_TOV ({shorter}), as FC-FS requires"),
            "make `r_a_tov` longer than `e_d_tov`; usual are \"10s\" and \"2s\"",
        )
    });
    require(&r_a_tov, &hold_time, problems, |longer, shorter| {
        (
            format!(
                "a switch may hold a frame for {shorter}, but FC-FS requires that no frame of an exchange is left \
                 after R_A_TOV ({longer})"
            ),
            "make `hold_time` shorter than `r_a_tov`; usual are \"500ms\" and \"10s\"",
        )
    });
    require(&dead, &hello, problems, |longer, shorter| {
        (
            format!(
                "the dead interval ({longer}) is not longer than the hello interval ({shorter}), as FC-SW requires: \
                 every neighbour would be lost between two HLOs"
            ),
            "make `fspf_dead` several times as long as `fspf_hello`; usual are \"80s\" and \"20s\"",
        )
    });
}

/// Requires that one timer is longer than the other. The place is a timer that the lab has changed.
fn require(
    longer: &Timer,
    shorter: &Timer,
    problems: &mut Problems,
    text: impl Fn(Picos, Picos) -> (String, &'static str),
) {
    if longer.value > shorter.value {
        return;
    }
    let key = if longer.value == longer.default { shorter.key } else { longer.key };
    let (reason, remedy) = text(longer.value, shorter.value);
    problems.add(ProblemKind::TimeOrder, PLACE.key(key), reason, remedy);
}
