//! Runs of the fast engine.

use sanloom_fc::arbitrated_loop::{Loop, LoopConfig, LoopFrame, LoopTime, Output, Request, Tenancy};
use sanloom_wire::arbitrated_loop::AlPa;

/// A request with its time and port.
#[derive(Clone, Debug)]
pub struct Wish {
    pub time: LoopTime,
    pub port: usize,
    pub request: Request,
}

/// All results of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    pub frames: Vec<LoopFrame>,
    pub tenancies: Vec<Tenancy>,
    pub refused: Vec<(usize, u64)>,
}

impl Results {
    pub fn drain(&mut self, engine: &mut Loop) {
        while let Some(output) = engine.poll_output() {
            match output {
                Output::Frame(frame) => self.frames.push(frame),
                Output::NoSuchPort { from, tag, .. } => self.refused.push((from, tag)),
                Output::Tenancy(tenancy) => self.tenancies.push(tenancy),
            }
        }
    }
}

pub fn pa(value: u8) -> AlPa {
    AlPa::new(value).expect("an AL_PA")
}

/// Runs all wishes, which are in the order of their times, until the loop is idle.
pub fn run(config: &LoopConfig, wishes: &[Wish]) -> Results {
    let mut engine = Loop::new(config.clone()).expect("a valid loop");
    let mut results = Results::default();
    for wish in wishes {
        while let Some(time) = engine.poll_timeout().filter(|time| *time < wish.time) {
            engine.handle_timeout(time);
        }
        assert!(engine.request(wish.time, wish.port, wish.request.clone()));
    }
    while let Some(time) = engine.poll_timeout() {
        engine.handle_timeout(time);
        results.drain(&mut engine);
    }
    results.drain(&mut engine);
    results.frames.sort_by_key(|frame| (frame.start, frame.from));
    results
}
