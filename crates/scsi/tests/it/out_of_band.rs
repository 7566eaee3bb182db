//! Maps of hosts and their metadata server: epochs, fences, lost messages, restarts.

use sanloom_scsi::map::{LunBlock, LunId};
use sanloom_scsi::out_of_band::{
    Extent, HostConfig, HostId, HostMap, HostOutput, Reply, Request, Server, ServerConfig, ServerInput, ServerLun,
    ServerOutput,
};
use sanloom_scsi::time::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};

const EXTENT_BLOCKS: u64 = 100;
const RETRY: Span = Span::from_ms(10);
const FENCE_AFTER: Span = Span::from_ms(50);
const GIVE_UP: Span = Span::from_ms(200);
const HOSTS: u16 = 3;

fn at(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

fn place(lun: u16, number: u64) -> LunBlock {
    LunBlock { lun: LunId(lun), lba: number * EXTENT_BLOCKS }
}

fn server(extents: u32) -> Server {
    let luns = vec![ServerLun { extents: 8, extent_blocks: EXTENT_BLOCKS }; 2];
    let map = (0..extents).map(|number| (Extent(number), place(0, number.into()))).collect();
    Server::new(ServerConfig { fence_after: FENCE_AFTER, resend: RETRY }, luns, map)
}

fn host(entries: usize) -> HostMap {
    HostMap::new(HostConfig { entries, retry: RETRY, give_up: GIVE_UP })
}

fn outputs(server: &mut Server) -> Vec<ServerOutput> {
    std::iter::from_fn(|| server.poll_output()).collect()
}

fn sent(host: &mut HostMap) -> Vec<HostOutput> {
    std::iter::from_fn(|| host.poll_output()).collect()
}

fn ask(server: &mut Server, now: Instant, from: u16, request: Request) -> Vec<ServerOutput> {
    server.handle(now, ServerInput::Request(HostId(from), request));
    outputs(server)
}

fn grant(number: u32, place: LunBlock, epoch: u64) -> Reply {
    Reply::Grant { extent: Extent(number), place, epoch }
}

#[test]
fn a_fenced_host_registers_after_its_flushes_and_holds_others_until_then() {
    let mut map = host(8);
    assert!(map.flush(at(0), 1));
    map.refused(at(1));
    // The first flush is still in flight, so the host does not register yet.
    assert!(!map.flush(at(1), 2));
    assert_eq!(sent(&mut map), []);
    map.flushed(at(2));
    assert!(!map.flush(at(2), 1));
    assert_eq!(sent(&mut map), [HostOutput::Send(Request::Register)]);
    map.handle(at(3), Reply::Registered);
    assert_eq!(sent(&mut map), [HostOutput::Flush { token: 2 }, HostOutput::Flush { token: 1 }]);
    // Both are in flight again: the next fence waits for them.
    map.refused(at(4));
    map.flushed(at(5));
    assert_eq!(sent(&mut map), []);
    map.flushed(at(5));
    assert_eq!(sent(&mut map), [HostOutput::Send(Request::Register)]);
}

#[test]
fn a_flush_that_waits_fails_after_give_up() {
    let mut map = host(8);
    map.refused(at(0));
    assert!(!map.flush(at(1), 7));
    sent(&mut map);
    map.timeout(at(200));
    assert!(!sent(&mut map).contains(&HostOutput::Fail { token: 7 }));
    map.timeout(at(201));
    assert!(sent(&mut map).contains(&HostOutput::Fail { token: 7 }));
}

#[test]
fn a_miss_asks_once_and_all_waiting_accesses_continue_with_the_answer() {
    let mut map = host(8);
    assert_eq!(map.access(at(0), 1, Extent(5)), None);
    assert_eq!(map.access(at(0), 2, Extent(5)), None);
    assert_eq!(sent(&mut map), [HostOutput::Send(Request::Lookup(Extent(5)))]);
    map.handle(at(1), grant(5, place(0, 5), 0));
    let go = |token| HostOutput::Go { token, place: place(0, 5) };
    assert_eq!(sent(&mut map), [go(1), go(2)]);
    assert_eq!(map.access(at(1), 3, Extent(5)), Some(place(0, 5)));
}

#[test]
fn the_extent_that_was_used_least_recently_makes_room() {
    let mut map = host(2);
    for number in [0, 1] {
        map.handle(at(0), grant(number, place(0, number.into()), 0));
    }
    assert!(map.access(at(0), 0, Extent(0)).is_some());
    map.handle(at(0), grant(2, place(0, 2), 0));
    assert_eq!(map.entries(), 2);
    assert!(map.access(at(0), 1, Extent(0)).is_some() && map.access(at(0), 2, Extent(2)).is_some());
    assert_eq!(map.access(at(0), 3, Extent(1)), None);
}

#[test]
fn a_request_without_an_answer_is_repeated_and_then_fails() {
    let mut map = host(8);
    map.access(at(0), 1, Extent(0));
    sent(&mut map);
    let mut repeated = 0;
    while let Some(due) = map.poll_timeout() {
        map.timeout(due);
        for output in sent(&mut map) {
            match output {
                HostOutput::Send(Request::Lookup(Extent(0))) => repeated += 1,
                HostOutput::Fail { token: 1 } => assert_eq!(due, at(200)),
                other => panic!("{other:?}"),
            }
        }
    }
    // At 10, 20, … 190 ms.
    assert_eq!(repeated, 19);
}

#[test]
fn a_recall_is_acknowledged_when_the_last_access_to_the_old_place_has_ended() {
    let mut map = host(8);
    map.handle(at(0), grant(0, place(0, 0), 0));
    map.access(at(0), 1, Extent(0));
    map.access(at(0), 2, Extent(0));
    map.handle(at(1), Reply::Recall { extent: Extent(0), epoch: 1 });
    assert_eq!(sent(&mut map), []);
    assert_eq!(map.access(at(1), 3, Extent(0)), None, "the old place is not used again");
    assert_eq!(sent(&mut map), [HostOutput::Send(Request::Lookup(Extent(0)))]);
    map.ended(at(2), Extent(0));
    assert_eq!(sent(&mut map), []);
    map.ended(at(2), Extent(0));
    assert_eq!(sent(&mut map), [HostOutput::Send(Request::Acknowledge { epoch: 1 })]);
    // A late answer of the old epoch is void.
    map.handle(at(2), grant(0, place(0, 0), 0));
    assert_eq!(sent(&mut map), []);
    map.handle(at(3), grant(0, place(1, 0), 1));
    assert_eq!(sent(&mut map), [HostOutput::Go { token: 3, place: place(1, 0) }]);
}

#[test]
fn a_change_waits_for_all_hosts_and_holds_lookups_until_it_is_in_force() {
    let mut server = server(2);
    for from in 0..2 {
        ask(&mut server, at(0), from, Request::Lookup(Extent(0)));
    }
    server.handle(at(1), ServerInput::Move(Extent(0), LunId(1)));
    let recall = |host| ServerOutput::Send(HostId(host), Reply::Recall { extent: Extent(0), epoch: 1 });
    assert_eq!(outputs(&mut server), [recall(0), recall(1)]);
    assert_eq!(ask(&mut server, at(2), 0, Request::Acknowledge { epoch: 1 }), []);
    assert_eq!(ask(&mut server, at(2), 0, Request::Lookup(Extent(0))), []);
    assert_eq!(ask(&mut server, at(2), 0, Request::Lookup(Extent(0))), [], "a repeated lookup is held once");
    // Other extents are not affected.
    let other = ask(&mut server, at(2), 0, Request::Lookup(Extent(1)));
    assert_eq!(other, [ServerOutput::Send(HostId(0), grant(1, place(0, 1), 1))]);
    let copy = ServerOutput::Copy { epoch: 1, from: place(0, 0), to: place(1, 0) };
    assert_eq!(ask(&mut server, at(3), 1, Request::Acknowledge { epoch: 1 }), [copy]);
    assert_eq!(server.place(Extent(0)), Some(place(0, 0)));
    server.handle(at(4), ServerInput::Copied(1));
    let committed = ServerOutput::Committed { epoch: 1, extent: Extent(0) };
    assert_eq!(outputs(&mut server), [committed, ServerOutput::Send(HostId(0), grant(0, place(1, 0), 1))]);
    assert_eq!((server.count().held, server.count().committed), (1, 1));
}

#[test]
fn a_host_that_does_not_acknowledge_is_fenced_and_registers_without_a_map() {
    let mut server = server(1);
    ask(&mut server, at(0), 0, Request::Lookup(Extent(0)));
    server.handle(at(0), ServerInput::Move(Extent(0), LunId(1)));
    assert_eq!(outputs(&mut server).len(), 1);
    let mut found = Vec::new();
    while let Some(due) = server.poll_timeout() {
        server.handle(due, ServerInput::Timeout);
        found.extend(outputs(&mut server).into_iter().map(|output| (due, output)));
    }
    let recall = ServerOutput::Send(HostId(0), Reply::Recall { extent: Extent(0), epoch: 1 });
    let repeated: Vec<_> = [10, 20, 30, 40].map(|ms| (at(ms), recall)).into();
    assert_eq!(found[..4], repeated[..]);
    let copy = ServerOutput::Copy { epoch: 1, from: place(0, 0), to: place(1, 0) };
    assert_eq!(found[4..], [(at(50), ServerOutput::Fence(HostId(0))), (at(50), copy)]);
    let refused = ask(&mut server, at(60), 0, Request::Lookup(Extent(0)));
    assert_eq!(refused, [ServerOutput::Send(HostId(0), Reply::Fenced)]);

    let mut map = host(8);
    map.handle(at(0), grant(0, place(0, 0), 0));
    map.access(at(0), 1, Extent(0));
    map.handle(at(61), Reply::Fenced);
    assert_eq!(sent(&mut map), [], "a command is in flight");
    map.ended(at(62), Extent(0));
    assert_eq!(sent(&mut map), [HostOutput::Send(Request::Register)]);
    assert_eq!(map.access(at(62), 2, Extent(0)), None);
    assert_eq!(sent(&mut map), [], "no lookup before the server has registered the host");
    let admitted = ask(&mut server, at(63), 0, Request::Register);
    assert_eq!(admitted, [ServerOutput::Admit(HostId(0)), ServerOutput::Send(HostId(0), Reply::Registered)]);
    map.handle(at(64), Reply::Registered);
    assert_eq!(sent(&mut map), [HostOutput::Send(Request::Lookup(Extent(0)))]);
}

#[test]
fn a_restarted_server_continues_its_change() {
    let mut server = server(1);
    ask(&mut server, at(0), 0, Request::Lookup(Extent(0)));
    server.handle(at(0), ServerInput::Move(Extent(0), LunId(1)));
    outputs(&mut server);
    server.handle(at(5), ServerInput::Restart);
    let recall = ServerOutput::Send(HostId(0), Reply::Recall { extent: Extent(0), epoch: 1 });
    assert_eq!(outputs(&mut server), [recall]);
    ask(&mut server, at(6), 0, Request::Acknowledge { epoch: 1 });
    server.handle(at(7), ServerInput::Restart);
    let copy = ServerOutput::Copy { epoch: 1, from: place(0, 0), to: place(1, 0) };
    assert_eq!(outputs(&mut server), [copy]);
}

#[test]
fn a_move_to_a_full_back_end_or_to_its_own_has_no_effect() {
    let mut server = server(8);
    server.handle(at(0), ServerInput::Move(Extent(0), LunId(0)));
    assert_eq!(outputs(&mut server), []);
    assert_eq!((server.count().useless, server.epoch(), server.is_changing()), (1, 0, false));
}

/// A network that loses and delays messages between hosts and a server, and back ends that know
/// who is fenced.
struct Bed {
    server: Server,
    hosts: Vec<HostMap>,
    /// Messages with the times of their arrival.
    to_server: VecDeque<(u64, u16, Request)>,
    to_host: VecDeque<(u64, u16, Reply)>,
    /// Commands in flight: end, host, extent, place and number.
    commands: Vec<(u64, u16, Extent, LunBlock, u32)>,
    fenced: [bool; HOSTS as usize],
    copies: Vec<(u64, u64)>,
    /// Extent of each access that has not ended.
    open: BTreeMap<u32, (u16, Extent)>,
    /// State of the generator of random numbers.
    state: u64,
    next: u32,
    completed: u32,
}

impl Bed {
    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % limit
    }

    fn begin(&mut self, now: u64, host: u16, extent: Extent) {
        let token = self.next;
        self.next += 1;
        self.open.insert(token, (host, extent));
        if let Some(place) = self.hosts[usize::from(host)].access(at(now), token, extent) {
            self.go(now, host, token, place);
        }
    }

    fn go(&mut self, now: u64, host: u16, token: u32, place: LunBlock) {
        let extent = self.open[&token].1;
        let end = now + 1 + self.below(8);
        self.commands.push((end, host, extent, place, token));
    }

    fn drain(&mut self, now: u64, lossy: bool) {
        for host in 0..HOSTS {
            while let Some(output) = self.hosts[usize::from(host)].poll_output() {
                match output {
                    HostOutput::Send(request) if !(lossy && self.below(4) == 0) => {
                        self.to_server.push_back((now + 1, host, request));
                    }
                    HostOutput::Send(_) => {}
                    HostOutput::Go { token, place } => self.go(now, host, token, place),
                    HostOutput::Flush { .. } => unreachable!("no flush was sent"),
                    HostOutput::Fail { token } => _ = self.open.remove(&token),
                }
            }
        }
        while let Some(output) = self.server.poll_output() {
            match output {
                ServerOutput::Send(host, reply) if !(lossy && self.below(4) == 0) => {
                    self.to_host.push_back((now + 1, host.0, reply));
                }
                ServerOutput::Send(..) => {}
                ServerOutput::Fence(host) => self.fenced[usize::from(host.0)] = true,
                ServerOutput::Admit(host) => self.fenced[usize::from(host.0)] = false,
                ServerOutput::Copy { epoch, .. } => self.copies.push((now + 3, epoch)),
                ServerOutput::Committed { extent, .. } => {
                    // No command that the back ends would accept uses the old place.
                    let new = self.server.place(extent);
                    let is_old = |(_, host, of, place, _): &&(u64, u16, Extent, LunBlock, u32)| {
                        *of == extent && Some(*place) != new && !self.fenced[usize::from(*host)]
                    };
                    assert_eq!(self.commands.iter().find(is_old), None, "at {now} ms");
                }
            }
        }
    }

    fn step(&mut self, now: u64, lossy: bool) {
        while self.to_server.front().is_some_and(|message| message.0 <= now)
            && let Some((_, host, request)) = self.to_server.pop_front()
        {
            self.server.handle(at(now), ServerInput::Request(HostId(host), request));
            self.drain(now, lossy);
        }
        while self.to_host.front().is_some_and(|message| message.0 <= now)
            && let Some((_, host, reply)) = self.to_host.pop_front()
        {
            self.hosts[usize::from(host)].handle(at(now), reply);
            self.drain(now, lossy);
        }
        let due: Vec<_> = self.commands.extract_if(.., |command| command.0 <= now).collect();
        for (_, host, extent, place, token) in due {
            let refused = self.fenced[usize::from(host)];
            let map = &mut self.hosts[usize::from(host)];
            if refused {
                map.refused(at(now));
                map.ended(at(now), extent);
                self.open.remove(&token);
                self.begin(now, host, extent);
            } else {
                map.ended(at(now), extent);
                self.open.remove(&token);
                self.completed += 1;
                assert_eq!(self.server.place(extent), Some(place), "a command used a place that is not in force");
            }
            self.drain(now, lossy);
        }
        let copied: Vec<_> = self.copies.extract_if(.., |copy| copy.0 <= now).collect();
        for (_, epoch) in copied {
            self.server.handle(at(now), ServerInput::Copied(epoch));
            self.drain(now, lossy);
        }
        if self.server.poll_timeout().is_some_and(|due| due <= at(now)) {
            self.server.handle(at(now), ServerInput::Timeout);
        }
        for map in &mut self.hosts {
            if map.poll_timeout().is_some_and(|due| due <= at(now)) {
                map.timeout(at(now));
            }
        }
        self.drain(now, lossy);
    }
}

#[test]
fn no_command_uses_an_old_place_and_every_access_ends_while_messages_are_lost() {
    let mut fenced = 0;
    for seed in 0..200 {
        let mut bed = Bed {
            server: server(6),
            hosts: (0..HOSTS).map(|_| host(4)).collect(),
            to_server: VecDeque::new(),
            to_host: VecDeque::new(),
            commands: Vec::new(),
            fenced: [false; HOSTS as usize],
            copies: Vec::new(),
            open: BTreeMap::new(),
            state: seed,
            next: 0,
            completed: 0,
        };
        for now in 0..1_000 {
            if now < 500 {
                let (host, extent) = (bed.below(HOSTS.into()) as u16, Extent(bed.below(6) as u32));
                bed.begin(now, host, extent);
                if bed.below(20) == 0 {
                    let (extent, lun) = (Extent(bed.below(6) as u32), LunId(bed.below(2) as u16));
                    bed.server.handle(at(now), ServerInput::Move(extent, lun));
                }
                if bed.below(100) == 0 {
                    bed.server.handle(at(now), ServerInput::Restart);
                }
            }
            bed.step(now, now < 500);
        }
        fenced += bed.server.count().fenced;
        assert_eq!((bed.open.len(), bed.server.is_changing()), (0, false), "seed {seed}");
        assert!(bed.completed > 100, "seed {seed}: {} accesses", bed.completed);
    }
    assert!(fenced > 20, "{fenced} fences");
}
