//! Virtual N_Ports (N_Port_ID virtualisation) against a real switch: the steps of the NPIV paper,
//! figure 6, the effect of a slow or full switch, and their logout.

use crate::switch_util::{config, node_of, open};
use sanloom_fc::nport::{FabricState, Input, LoginScript, NPort, NPortConfig, Output, VirtualPort};
use sanloom_fc::switch::{self, PortKind, Switch};
use sanloom_scsi::time::{Instant, Span};
use sanloom_wire::els::{Els, LsRjt, LsRjtExplanation, LsRjtReason};
use sanloom_wire::{FcId, Frame, Message, Payload, Wwpn};

/// Switch port of the physical port.
const PORT: u16 = 3;

/// Physical port with virtual ports, at one port of a switch.
struct Bench {
    now: Instant,
    switch: Switch,
    /// All ports, the physical one first.
    ports: Vec<NPort>,
    /// Requests and their results, as `port: message to address`.
    emitted: Vec<String>,
    /// True if the switch does not answer.
    silent: bool,
}

fn nport(name: u64, virtual_port: Option<VirtualPort>, initiator: bool) -> NPort {
    NPort::new(NPortConfig {
        wwpn: Wwpn(name),
        wwnn: node_of(name),
        receive_size_bytes: 2048,
        bb_credit: 8,
        bb_sc_n: 0,
        initiator,
        target: false,
        symbolic_name: "node".to_owned(),
        e_d_tov: Span::from_secs(2),
        r_a_tov: Span::from_secs(10),
        seed: name,
        virtual_port,
    })
}

impl Bench {
    /// Physical port that is logged in, with virtual ports that are not.
    fn new(virtual_ports: u16, script: LoginScript, initiator: bool) -> Bench {
        let number = |number| Some(VirtualPort { number, script });
        let physical = nport(0x10, None, false);
        let others = (1..=virtual_ports).map(|n| nport(0x100 + u64::from(n), number(n), initiator));
        let mut bench = Bench {
            now: Instant::ZERO,
            switch: Switch::new(config(1, open())),
            ports: std::iter::once(physical).chain(others).collect(),
            emitted: Vec::new(),
            silent: false,
        };
        bench.switch.handle(bench.now, switch::Input::PortUp { port: PORT, kind: PortKind::F });
        bench.input(0, Input::LinkUp);
        bench.emitted.clear();
        bench
    }

    fn input(&mut self, port: usize, input: Input) {
        self.ports[port].handle(self.now, input);
        self.drain(port);
    }

    fn drain(&mut self, port: usize) {
        while let Some(output) = self.ports[port].poll_output() {
            match output {
                Output::Send(frame) => {
                    let Payload::Typed(message) = &frame.payload else { unreachable!("control messages are typed") };
                    self.emitted
                        .push(format!("{port}: {message} to {} as {:04x}", frame.header.d_id, frame.header.ox_id));
                    if !self.silent {
                        self.switch.handle(self.now, switch::Input::Frame { port: PORT, frame });
                        self.drain_switch();
                    }
                }
                Output::FabricUp { port_id } => self.emitted.push(format!("{port}: up as {port_id}")),
                Output::FabricDown => self.emitted.push(format!("{port}: down")),
                Output::RemoteUp(_) | Output::RemoteDown { .. } => {}
            }
        }
    }

    fn drain_switch(&mut self) {
        while let Some(output) = self.switch.poll_output() {
            if let switch::Output::Send { frame, .. } = output {
                self.deliver(frame);
            }
        }
    }

    fn deliver(&mut self, frame: Frame) {
        let to = frame.header.d_id;
        let known = self.ports.iter().position(|port| to != FcId::ZERO && port.port_id() == to);
        let waiting = || self.ports.iter().position(|port| port.expects(&frame.header));
        if let Some(port) = known.or_else(waiting) {
            self.ports[port].handle(self.now, Input::Frame(frame));
            self.drain(port);
        }
    }

    /// Lets the timer of a port expire.
    fn wait(&mut self, port: usize) {
        self.now = self.ports[port].poll_timeout().expect("the port waits for something");
        self.input(port, Input::Timeout);
    }

    fn received(&mut self) -> Vec<String> {
        std::mem::take(&mut self.emitted)
    }
}

fn steps(emitted: &[String]) -> Vec<&str> {
    let strip =
        |emitted: &'_ String| emitted.find(" as ").filter(|_| !emitted.contains("up as")).unwrap_or(emitted.len());
    emitted.iter().map(|emitted| &emitted[3..strip(emitted)]).collect()
}

#[test]
fn the_script_of_the_paper_takes_its_eight_steps() {
    let mut bench = Bench::new(1, LoginScript::Npiv, false);
    bench.input(1, Input::LinkUp);
    insta::assert_snapshot!(steps(&bench.received()).join("\n"));
    assert_eq!(bench.ports[1].state(), FabricState::Ready);
}

#[test]
fn an_initiator_keeps_its_session_with_the_name_server() {
    let mut bench = Bench::new(1, LoginScript::Npiv, true);
    bench.input(1, Input::LinkUp);
    let emitted = bench.received();
    let steps = steps(&emitted);
    let (script, after) = steps.split_at(9);
    assert_eq!(script.last(), Some(&"LOGO to fffffc"));
    assert_eq!(after, ["PLOGI to fffffc", "GID_FF to fffffc"]);
    // The name server ends that session, and only that one is established again.
    let logo = Message::from(Els::Logo(sanloom_wire::els::Logo { port_id: FcId::NAME_SERVER, port_name: Wwpn(0x99) }));
    let header = logo.header(FcId::NAME_SERVER, bench.ports[1].port_id(), 1, 0xffff);
    bench.input(1, Input::Frame(Frame { header, payload: Payload::Typed(logo) }));
    bench.received();
    bench.wait(1);
    let emitted = bench.received();
    assert_eq!(self::steps(&emitted), ["PLOGI to fffffc", "GID_FF to fffffc"]);
}

#[test]
fn the_standard_script_differs_from_a_physical_port_in_fdisc_alone() {
    let mut bench = Bench::new(1, LoginScript::Standard, true);
    bench.input(1, Input::LinkUp);
    let emitted = bench.received();
    let virtual_steps: Vec<&str> = steps(&emitted);
    let mut physical = Bench::new(0, LoginScript::Standard, true);
    physical.ports[0] = nport(0x20, None, true);
    physical.input(0, Input::LinkUp);
    let emitted = physical.received();
    let physical_steps: Vec<String> = steps(&emitted).iter().map(|step| step.replace("FLOGI", "FDISC")).collect();
    assert_eq!(
        virtual_steps.iter().filter(|s| !s.starts_with("up")).collect::<Vec<_>>(),
        physical_steps.iter().filter(|s| !s.starts_with("up")).collect::<Vec<_>>()
    );
}

#[test]
fn virtual_ports_get_separate_addresses_although_all_send_from_address_zero() {
    let mut bench = Bench::new(5, LoginScript::Npiv, false);
    bench.silent = true;
    (1..=5).for_each(|port| bench.input(port, Input::LinkUp));
    let emitted = bench.received();
    let exchanges: std::collections::BTreeSet<&str> =
        emitted.iter().map(|emitted| &emitted[emitted.len() - 4..]).collect();
    assert_eq!(exchanges.len(), 5, "{emitted:?}");
    bench.silent = false;
    (1..=5).for_each(|port| bench.wait(port));
    let ids: Vec<u32> = bench.ports.iter().map(|port| port.port_id().to_u32()).collect();
    assert_eq!(ids, [0x010300, 0x010301, 0x010302, 0x010303, 0x010304, 0x010305]);
}

#[test]
fn a_switch_slower_than_the_time_out_gets_the_request_again_under_another_number() {
    for (script, seconds) in [(LoginScript::Npiv, 2), (LoginScript::Standard, 20)] {
        let mut bench = Bench::new(1, script, false);
        bench.silent = true;
        bench.input(1, Input::LinkUp);
        let mut sent = vec![bench.now];
        for _ in 0..5 {
            bench.wait(1);
            if !bench.received().is_empty() {
                sent.push(bench.now);
            }
        }
        let gaps: Vec<u64> = sent.windows(2).map(|two| two[1].since(two[0]).as_ms() / 1000).collect();
        assert_eq!(gaps[..3], [seconds; 3], "three times at once");
        assert!(gaps[3] > seconds, "then after a back-off: {gaps:?}");
        bench.silent = false;
        while bench.ports[1].state() != FabricState::Ready {
            bench.wait(1);
        }
        assert_eq!(bench.ports[1].counters().timeouts, 5);
    }
}

#[test]
fn a_login_to_a_full_switch_is_retried_after_a_doubling_back_off() {
    let mut bench = Bench::new(1, LoginScript::Standard, false);
    bench.silent = true;
    bench.input(1, Input::LinkUp);
    let mut waits = Vec::new();
    for attempt in 0..4u16 {
        let reject = Els::LsRjt(LsRjt::new(LsRjtReason::UNABLE, LsRjtExplanation::INSUFFICIENT_RESOURCES));
        let message = Message::from(reject);
        let header = message.header(FcId::F_PORT, FcId::ZERO, 0x8008 + attempt, 0xffff);
        let frame = Frame { header, payload: Payload::Typed(message) };
        assert!(bench.ports[1].expects(&frame.header));
        bench.deliver(frame);
        let before = bench.now;
        bench.wait(1);
        waits.push(bench.now.since(before).as_ms());
    }
    for (wait, base) in waits.into_iter().zip([2_000, 4_000, 8_000, 16_000]) {
        assert!((base..=base + base / 8).contains(&wait), "{wait} ms, not {base}");
    }
}

#[test]
fn a_logout_releases_the_address() {
    let mut bench = Bench::new(2, LoginScript::Standard, false);
    bench.input(1, Input::LinkUp);
    let first = bench.ports[1].port_id();
    bench.received();
    bench.input(1, Input::LogOut);
    assert_eq!(steps(&bench.received()), ["LOGO to fffffe", "down"]);
    assert_eq!((bench.ports[1].state(), bench.ports[1].port_id()), (FabricState::Offline, FcId::ZERO));
    assert_eq!(bench.switch.logins().count(), 1, "the physical port stays");
    bench.input(2, Input::LinkUp);
    assert_eq!(bench.ports[2].port_id(), first);
}

#[test]
fn a_logout_without_a_reply_ends_after_its_attempts() {
    let mut bench = Bench::new(1, LoginScript::Standard, false);
    bench.input(1, Input::LinkUp);
    bench.silent = true;
    bench.received();
    bench.input(1, Input::LogOut);
    bench.input(1, Input::LogOut);
    (0..3).for_each(|_| bench.wait(1));
    assert_eq!(steps(&bench.received()), ["LOGO to fffffe", "LOGO to fffffe", "LOGO to fffffe", "down"]);
    assert_eq!(bench.ports[1].poll_timeout(), None);
}

#[test]
fn the_end_of_the_physical_login_ends_the_virtual_ones() {
    let mut bench = Bench::new(1, LoginScript::Npiv, false);
    bench.input(1, Input::LinkUp);
    bench.received();
    bench.input(1, Input::LinkDown);
    assert_eq!(bench.received(), ["1: down"]);
    bench.input(1, Input::LinkUp);
    assert_eq!(bench.ports[1].state(), FabricState::Ready);
}
