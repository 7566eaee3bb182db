//! Resets and reservations of hosts that share back ends: other hosts are notified as required, and
//! back ends are not affected.

use crate::iscsi_switch::bed::{self, Bed, Switch};
use crate::iscsi_switch::forwarding::through_gates;
use crate::iscsi_switch::gate::Gate;
use crate::iscsi_switch::host::{BLOCK, Host};
use sanloom_test_support::ports::{free_port, unread_bytes, unread_bytes_from};
use sanloom_test_support::wait;

const ABORT_TASK: u8 = 1;
const ABORT_TASK_SET: u8 = 2;
const CLEAR_TASK_SET: u8 = 4;
const LUN_RESET: u8 = 5;
const WARM_RESET: u8 = 6;
const COLD_RESET: u8 = 7;
const TASK_ABORTED: u8 = 0x40;

/// Two hosts, and a write of the second one that the gates hold on its way to a back end.
fn with_a_write_under_way(switch: &Switch<'_>, gates: &[Gate; 2]) -> [Host; 2] {
    let mut hosts = [1, 2].map(|session| Host::ready(switch, &switch.portals[usize::from(session) - 1], session));
    hosts[1].until_good(|host| host.write(8, &[0x11; 64 << 10]));
    gates.iter().for_each(Gate::hold);
    hosts[1].write(8, &[0x22; 64 << 10]);
    // The blocks are in the first stripe.
    gates[0].wait_until_held();
    hosts
}

#[test]
fn a_reset_of_the_target_by_one_host_ends_the_tasks_of_others_and_a_cold_one_their_sessions() {
    for (function, forward) in [(WARM_RESET, true), (WARM_RESET, false), (COLD_RESET, true), (COLD_RESET, false)] {
        let bed = Bed::new(&format!("target-reset-{function}-{forward}"));
        let portals = [free_port(), free_port()];
        let _first = bed::storage(&bed, "first", &portals[0]);
        let _second = bed::storage(&bed, "second", &portals[1]);
        let (mut switch, gates) = through_gates(&bed, &portals, forward);
        let [mut one, mut other] = with_a_write_under_way(&switch, &gates);
        one.ask(function);
        // The switch has received the function before the write continues.
        wait::until(|| "the function is read".to_owned(), || unread_bytes(&switch.portals[0]) == 0);
        gates.iter().for_each(Gate::release);
        assert_eq!(one.function_response(), Some(0), "{function}, forward {forward}");
        assert_eq!(other.answer().0, TASK_ABORTED, "{function}, forward {forward}");
        if function == COLD_RESET {
            assert!(one.is_closed() && other.is_closed(), "forward {forward}");
            one = Host::log_in(&switch.portals[0], 1);
            other = Host::log_in(&switch.portals[1], 2);
        }
        // The host that sent the reset writes next, and no data of the other host arrive
        // afterwards.
        one.until_good(|host| host.write(8, &[0x33; 64 << 10]));
        gates.iter().for_each(Gate::wait_until_passed);
        other.assert_stays(8, 128, 0x33);
        switch.stop();
        bed.folder.assert_no_errors();
    }
}

#[test]
fn no_reservation_and_no_reset_of_a_host_reaches_a_back_end() {
    for forward in [true, false] {
        let bed = Bed::new(&format!("not-forwarded-{forward}"));
        let portals = [free_port(), free_port()];
        let _first = bed::storage(&bed, "first", &portals[0]);
        let _second = bed::storage(&bed, "second", &portals[1]);
        let (mut switch, gates) = through_gates(&bed, &portals, forward);
        let [mut one, mut other] = with_a_write_under_way(&switch, &gates);
        // All functions that end tasks, each with a task in flight.
        one.ask(CLEAR_TASK_SET);
        gates.iter().for_each(Gate::release);
        assert_eq!((one.function_response(), other.answer().0), (Some(0), TASK_ABORTED));
        for function in [ABORT_TASK_SET, LUN_RESET, WARM_RESET] {
            one.ask(function);
            assert_eq!(one.function_response(), Some(0), "{function}");
            one.until_good(|host| host.write(8, &[function; 64 << 10]));
        }
        // RESERVE(6), RELEASE(6), then a persistent reservation that excludes the other host.
        one.until_good(|host| host.send(0x80, 0, &[0x16, 0, 0, 0, 0, 0], &[]));
        one.until_good(|host| host.send(0x80, 0, &[0x17, 0, 0, 0, 0, 0], &[]));
        let (mut register, mut reserve) = ([0; 24], [0; 24]);
        (register[15], reserve[7]) = (9, 9);
        one.until_good(|host| host.send(0xa0, 24, &[0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0], &register));
        one.until_good(|host| host.send(0xa0, 24, &[0x5f, 1, 3, 0, 0, 0, 0, 0, 24, 0], &reserve));
        let keys = one.until_good(|host| host.send(0xc0, 64, &[0x5e, 0, 0, 0, 0, 0, 0, 0, 64, 0], &[]));
        assert_eq!(keys[7..16], [8, 0, 0, 0, 0, 0, 0, 0, 9]);
        one.until_good(|host| host.write(8, &[0x44; 64 << 10]));
        assert_eq!(one.until_good(|host| host.read(8, 128)), [0x44; 64 << 10]);
        let conflicts = (0..8).any(|_| {
            other.write(8, &[0x55; 512]);
            other.answer().0 == 0x18
        });
        assert!(conflicts, "the other host is not kept out");
        switch.stop();
        let mut received = gates[0].requests();
        gates[1].requests().into_iter().for_each(|(what, count)| *received.entry(what).or_default() += count);
        let has = |opcode: u8, details: &[u8]| details.iter().any(|detail| received.contains_key(&(opcode, *detail)));
        assert!(has(0x01, &[0x2a, 0x8a]) && has(0x01, &[0x28, 0x88]), "no reads and writes: {received:02x?}");
        assert!(!has(0x01, &[0x16, 0x17, 0x56, 0x57, 0x5e, 0x5f]), "reservations: {received:02x?}");
        // The switch itself ends tasks only with ABORT TASK.
        let functions: Vec<u8> =
            received.keys().filter(|(opcode, _)| *opcode == 0x02).map(|(_, detail)| *detail).collect();
        assert!(functions.iter().all(|function| *function == ABORT_TASK), "{received:02x?}");
        bed.folder.assert_no_errors();
    }
}

/// First block and length of a write that covers both back ends equally.
const SPLIT: (u32, usize) = (512 - 32, 64 * BLOCK);

/// Number of writes that have passed a gate.
fn writes(gate: &Gate) -> u32 {
    let is_write = |(opcode, command): &(u8, u8)| *opcode == 0x01 && [0x2a, 0x8a].contains(command);
    gate.requests().iter().filter(|(what, _)| is_write(what)).map(|(_, count)| count).sum()
}

#[test]
fn every_function_meets_a_split_write_of_which_one_part_is_done() {
    for forward in [true, false] {
        let bed = Bed::new(&format!("half-done-{forward}"));
        let portals = [free_port(), free_port()];
        let _first = bed::storage(&bed, "first", &portals[0]);
        let _second = bed::storage(&bed, "second", &portals[1]);
        let (mut switch, gates) = through_gates(&bed, &portals, forward);
        let [mut one, mut other] =
            [0, 1].map(|host: u16| Host::ready(&switch, &switch.portals[usize::from(host)], 1 + host));
        let (lba, bytes) = SPLIT;
        for (function, is_own) in [
            (ABORT_TASK, true),
            (ABORT_TASK_SET, true),
            (CLEAR_TASK_SET, true),
            (LUN_RESET, true),
            (WARM_RESET, true),
            (CLEAR_TASK_SET, false),
            (LUN_RESET, false),
            (WARM_RESET, false),
            (COLD_RESET, false),
        ] {
            let what = format!("{function}, of its own: {is_own}, forwarded: {forward}");
            other.until_good(|host| host.write(lba, &vec![0x11; bytes]));
            let (before, passed) = (switch.carried("v")[0].commands, [0, 1].map(|gate: usize| writes(&gates[gate])));
            let responses = gates[0].responses();
            gates[1].hold();
            other.write(lba, &vec![0x22; bytes]);
            wait::until(|| format!("{what}: nothing has passed"), || writes(&gates[0]) != passed[0]);
            // The switch receives the completion of this half.
            let is_read = || gates[0].responses() != responses && unread_bytes_from(&gates[0].address) == 0;
            wait::until(|| format!("{what}: no completion"), is_read);
            assert_eq!(writes(&gates[1]), passed[1], "{what}");
            assert_eq!(switch.carried("v")[0].commands - before, u64::from(forward), "{what}");
            match (is_own, function) {
                (true, ABORT_TASK) => other.abort(),
                (true, _) => other.ask(function),
                (false, _) => one.ask(function),
            }
            let portal = &switch.portals[usize::from(is_own)];
            wait::until(|| format!("{what}: the function is not read"), || unread_bytes(portal) == 0);
            gates[1].release();
            let asking = if is_own { &mut other } else { &mut one };
            assert_eq!(asking.function_response(), Some(0), "{what}");
            if !is_own {
                assert_eq!(other.answer().0, TASK_ABORTED, "{what}");
            }
            if function == COLD_RESET {
                assert!(one.is_closed() && other.is_closed(), "{what}");
                [one, other] = [0, 1].map(|host: u16| Host::log_in(&switch.portals[usize::from(host)], 1 + host));
            }
            // No data of it arrive after the next write, and these blocks are not locked.
            one.until_good(|host| host.write(lba, &vec![0x33; bytes]));
            gates.iter().for_each(Gate::wait_until_passed);
            other.assert_stays(lba, (bytes / BLOCK) as u16, 0x33);
        }
        assert_eq!(switch.volumes(&[]).volumes[0].tasks, 0, "something still holds the map");
        switch.stop();
        bed.folder.assert_no_errors();
    }
}
