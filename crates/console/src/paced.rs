//! A simulation at the pace of the real clock, with requests of clients: [`Pacer`].
//!
//! The thread of the simulation answers requests between short steps of virtual time. Clients have
//! threads of their own and a queue, so no client makes the simulation wait. Answers take about
//! half of the time of the thread at most.

use crate::interrupt;
use sanloom_api::control::{Answer, PortChange, Request, ZoneAction};
use sanloom_fc::fabric_switch::Event;
use sanloom_live::capture::FrameSink;
use sanloom_live::control::{Control, ControlRequest};
use sanloom_sim::requests::{Effect, Requests};
use sanloom_sim::run::{self, MAX_STEP_PS, Observer, Progress};
use sanloom_sim::view::run_s;
use sanloom_sim::world::{World, operator};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Shortest wait for the real clock.
const QUANTUM: Duration = Duration::from_millis(2);
/// Longest wait for the real clock, so that Ctrl-C is noticed.
const MAX_WAIT: Duration = Duration::from_millis(100);
/// Real time that a step of virtual time should take at most.
const STEP: Duration = Duration::from_millis(10);
/// Real time for requests between two steps.
const ANSWERS: Duration = Duration::from_millis(10);
/// Delay of the simulation, in real time, that is not made up.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Virtual time per real time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// Virtual seconds per real second; positive.
    Ratio(f64),
    /// As fast as the machine permits.
    Max,
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Ratio(ratio) => write!(f, "{ratio}"),
            Pace::Max => f.write_str("max"),
        }
    }
}

impl FromStr for Pace {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Pace, &'static str> {
        match text.parse() {
            _ if text == "max" => Ok(Pace::Max),
            Ok(ratio) if (1e-9..=1e9).contains(&ratio) => Ok(Pace::Ratio(ratio)),
            _ => Err("write virtual seconds per second, such as 1, 0.1 or 10, or `max` for no limit"),
        }
    }
}

/// Clients of a paced simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clients {
    /// Clients may change the fabric.
    Operate,
    /// Clients only watch, because the results belong to the lab and its seed.
    Watch,
}

/// Paces a simulation and answers requests.
pub struct Pacer<'c> {
    control: &'c Control,
    pace: Pace,
    clients: Clients,
    /// Called when all ports have logged in and the workloads begin.
    ready: Option<Box<dyn FnOnce() + 'c>>,
    requests: Option<Requests>,
    /// Requests that have been taken from the queue.
    pending: VecDeque<ControlRequest>,
    /// Real time and virtual time, in ps, from which the pace counts.
    origin: (Instant, u64),
    /// Length of a step in ps, and the real time at which the last one began.
    step_ps: u64,
    begun: Option<Instant>,
    /// The pace is not reached, and a warning has said so.
    warned: bool,
    ended: bool,
}

impl<'c> Pacer<'c> {
    /// Returns a pacer. `ready` is called when all ports have logged in.
    pub fn new(control: &'c Control, pace: Pace, clients: Clients, ready: impl FnOnce() + 'c) -> Pacer<'c> {
        Pacer {
            control,
            pace,
            clients,
            ready: Some(Box::new(ready)),
            requests: None,
            pending: VecDeque::new(),
            origin: (Instant::now(), 0),
            step_ps: MAX_STEP_PS / 100,
            begun: None,
            warned: false,
            ended: false,
        }
    }

    /// True if a client or a signal has ended the simulation.
    pub fn has_ended(&self) -> bool {
        self.ended || interrupt::requested()
    }

    /// Answers requests and waits for the real clock. Returns the time up to which the run may go
    /// on, in ps since the start of the workloads, or `None` at the end.
    pub fn limit_ps(&mut self, world: &mut World) -> Option<u64> {
        if self.requests.is_none() {
            self.requests = Some(Requests::begin(world));
            set_clock(world);
            self.origin = (Instant::now(), world.run_ps());
            if let Some(ready) = self.ready.take() {
                ready();
            }
        }
        self.measure_step();
        loop {
            self.serve(world);
            if self.has_ended() {
                return None;
            }
            let (now, now_ps) = (Instant::now(), world.run_ps());
            let wait = match self.pace {
                Pace::Max => None,
                Pace::Ratio(ratio) => self.wait(ratio, now, now_ps),
            };
            match wait {
                Some(wait) => self.control.wait(wait),
                None => {
                    self.begun = Some(now);
                    return Some(self.target_ps(now, now_ps).min(now_ps.saturating_add(self.step_ps)));
                }
            }
        }
    }

    /// Returns the time until the next step; `None` if it is due.
    fn wait(&mut self, ratio: f64, now: Instant, now_ps: u64) -> Option<Duration> {
        let ahead_s = now_ps.saturating_sub(self.origin.1) as f64 / 1e12 / ratio;
        let due = self.origin.0 + Duration::try_from_secs_f64(ahead_s).unwrap_or(MAX_DELAY) + QUANTUM;
        let late = now.saturating_duration_since(due);
        if late > MAX_DELAY {
            self.origin = (now, now_ps);
            if !std::mem::replace(&mut self.warned, true) {
                tracing::warn!(
                    pace = ratio,
                    "this machine is too slow for the pace; the simulation runs as fast as it can"
                );
            }
        }
        let wait = due.saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait.min(MAX_WAIT))
    }

    /// Returns the virtual time that belongs to a real time.
    fn target_ps(&self, now: Instant, now_ps: u64) -> u64 {
        match self.pace {
            Pace::Max => u64::MAX,
            Pace::Ratio(ratio) => {
                let elapsed_s = now.saturating_duration_since(self.origin.0).as_secs_f64();
                // A step has at least one picosecond.
                self.origin.1.saturating_add((elapsed_s * ratio * 1e12) as u64).max(now_ps + 1)
            }
        }
    }

    /// Adapts the length of steps to the speed of the simulation.
    fn measure_step(&mut self) {
        let Some(begun) = self.begun.take() else { return };
        let took = begun.elapsed();
        if took > STEP {
            self.step_ps = (self.step_ps / 2).max(1_000);
        } else if took < STEP / 4 {
            self.step_ps = (self.step_ps * 2).min(MAX_STEP_PS);
        }
    }

    /// Answers pending requests within the time for requests.
    fn serve(&mut self, world: &mut World) {
        let begun = Instant::now();
        let Some(mut requests) = self.requests.take() else { return };
        requests.advance(world);
        for seen in requests.take_events(world) {
            let at_s = (seen.at_ps.saturating_sub(world.start_ps)) as f64 / 1e12;
            log_event(&world.lab.switches[usize::from(seen.switch)].name, at_s, &seen.event);
        }
        self.pending.extend(self.control.take());
        while let Some(ControlRequest { request, sink, answer }) = self.pending.pop_front() {
            let effect = Effect::of(&request);
            if effect != Effect::None && self.clients == Clients::Watch {
                // The client has disconnected.
                let _ = answer.send(Answer::failed(
                    "this is a run of `sanloom sim`, which is only watched, because its results belong to the lab and \
                     its seed; use `sanloom up LAB --simulated` to change a fabric",
                ));
            } else {
                self.ended |= execute(&mut requests, world, request, sink, answer) == Effect::Stop;
            }
            if self.ended || begun.elapsed() > ANSWERS {
                break;
            }
        }
        self.requests = Some(requests);
    }
}

impl Observer for Pacer<'_> {
    fn limit_ps(&mut self, world: &mut World) -> Option<u64> {
        Pacer::limit_ps(self, world)
    }

    fn progress(&mut self, _: &Progress) -> run::Control {
        if self.has_ended() { run::Control::Stop } else { run::Control::Continue }
    }
}

/// Executes a request, and logs a change of the fabric. A refused request for a port is not logged.
fn execute(
    requests: &mut Requests,
    world: &mut World,
    request: Request,
    sink: Option<FrameSink>,
    answer: Sender<Answer>,
) -> Effect {
    let at_s = run_s(world);
    if Effect::of(&request) != Effect::Changed || matches!(request, Request::Zone { .. }) {
        // The outcome of a zone request may follow later, so the request itself is logged.
        log_request(&request, at_s);
        return requests.request(world, request, answer);
    }
    let (reply, replies) = channel();
    let effect = requests.request_into(world, request.clone(), sink.map(|sink| sink.0), reply);
    if let Ok(reply) = replies.try_recv() {
        if !matches!(reply, Answer::Failed(_)) {
            log_request(&request, at_s);
        }
        // The client has disconnected.
        let _ = answer.send(reply);
    }
    effect
}

/// Logs a request that may change the fabric, with the virtual time at which it takes effect.
fn log_request(request: &Request, at_s: f64) {
    match request {
        Request::Port { port, enabled, by } => {
            let user = by.as_ref().map_or("", |by| &by.user);
            tracing::info!(at_s, port, enabled, user, "operator");
        }
        Request::Ports { changes, by } => {
            let user = by.as_ref().map_or("", |by| &by.user);
            for PortChange { port, enabled } in changes {
                tracing::info!(at_s, port, enabled, user, "operator");
            }
        }
        Request::Switch { switch, enabled, by } => {
            let user = by.as_ref().map_or("", |by| &by.user);
            tracing::info!(at_s, switch, enabled, user, "operator");
        }
        Request::Zone { switch, by, action } => {
            let (user, action) = match action {
                ZoneAction::As { client, action, .. } => (client.user.as_str(), &**action),
                action => (by.as_ref().map_or("", |by| &by.user), action),
            };
            let operation = match action {
                ZoneAction::Edit { .. } => "edit",
                ZoneAction::Commit => "commit",
                ZoneAction::EditAndCommit { .. } => "edit and commit",
                ZoneAction::Abort => "abort",
                ZoneAction::Rollback => "rollback",
                ZoneAction::Show | ZoneAction::Preview { .. } | ZoneAction::As { .. } => return,
            };
            tracing::info!(at_s, switch = switch.as_deref().unwrap_or_default(), operation, user, "zones");
        }
        Request::Inject { port, matches, act, count } => tracing::warn!(at_s, port, matches, act, count, "inject"),
        Request::ClearInjections { port } => {
            tracing::info!(at_s, port = port.as_deref().unwrap_or("all"), "injections cleared");
        }
        Request::Capture { link, file } => match file {
            Some(file) => tracing::info!(at_s, port = link, file, "capture"),
            None => tracing::info!(at_s, port = link, "capture ended"),
        },
        // The other requests are refused, or only read.
        _ => {}
    }
}

/// Sets the time of day of the event log. From now on, it runs at the pace of the simulation.
fn set_clock(world: &mut World) {
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let machine_s = world.net.now() as f64 / 1e12;
    if let Some(operator) = operator::state_mut(world) {
        operator.log.set_origin(unix_s - machine_s);
    }
}

fn log_event(switch: &str, at_s: f64, event: &Event) {
    match event {
        Event::IslUp { port, neighbour } => {
            tracing::info!(at_s, switch, port, %neighbour, "link to another switch up");
        }
        Event::IslDown { port } => tracing::warn!(at_s, switch, port, "link to another switch down"),
        Event::AdjacencyLost { port } => {
            tracing::warn!(at_s, switch, port, "link carries no HLO, so no path uses it");
        }
        Event::AdjacencyRestored { port } => tracing::info!(at_s, switch, port, "link carries HLOs again"),
        Event::Isolated { port, reason } => tracing::warn!(at_s, switch, port, %reason, "port isolated"),
        Event::Domain(Some(domain)) => tracing::info!(at_s, switch, domain, "domain"),
        Event::Domain(None) => tracing::warn!(at_s, switch, "no domain"),
        Event::Principal(principal) => tracing::info!(at_s, switch, %principal, "principal switch"),
        Event::ZonesChanged { tag, result } => {
            tracing::info!(at_s, switch, tag, done = result.is_ok(), "zone change");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_positive_number_or_max() {
        assert_eq!("1.0".parse(), Ok(Pace::Ratio(1.0)));
        assert_eq!("0.001".parse(), Ok(Pace::Ratio(0.001)));
        assert_eq!("max".parse(), Ok(Pace::Max));
        for wrong in ["0", "-1", "nan", "inf", "", "fast", "1e300"] {
            assert!(wrong.parse::<Pace>().unwrap_err().contains("max"), "{wrong}");
        }
    }
}
