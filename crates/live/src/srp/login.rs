//! Requests for connections: the checks of a REQ, and the parameters of the queue pair.

use super::TargetPlan;
use sanloom_transport::infiniband::packet::Mtu;
use sanloom_transport::infiniband::rc;
use sanloom_wire::infiniband::cm::{RdmaCm, ReqPath, TCP_SERVICE, reason};
use sanloom_wire::infiniband::mad::ReqFields;
use sanloom_wire::srp::{DIRECT, INDIRECT, Iu, LoginReq, reject};
use std::net::Ipv4Addr;

/// Longest information units to and from the target in bytes. Linux asks for 8,260 if it has
/// immediate data.
pub(super) const UNIT_BYTES: [u32; 2] = [8_276, 256];
/// RDMA READs in flight of a channel, if the initiator accepts as many.
const MAX_READS: u8 = 16;
/// Exponent of the acknowledgement time-out: 4.096 us times 2^17, 537 ms. A host that computes its
/// packets in software answers late.
const ACK_TIMEOUT: u8 = 17;

/// Answer to a request for a connection that is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    /// Reason for the connection manager.
    pub reason: u16,
    /// Login reject, if the consumer has rejected.
    pub unit: Option<Box<Iu>>,
    /// Reason in words, for the log.
    pub why: &'static str,
}

impl Refusal {
    fn new(reason: u16, why: &'static str) -> Refusal {
        Refusal { reason, unit: None, why }
    }

    /// Rejects a login (SRP, 6.4).
    pub fn of_login(tag: u64, reason: u32, why: &'static str) -> Refusal {
        let unit = Some(Box::new(Iu::LoginRej { tag, reason, formats: DIRECT | INDIRECT }));
        Refusal { reason: reason::CONSUMER, unit, why }
    }
}

/// An acceptable request for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// Index of the target.
    pub target: usize,
    /// The login.
    pub login: LoginReq,
    /// Payload of a full packet.
    pub mtu: Mtu,
    /// RDMA READs in flight.
    pub reads: u8,
}

/// Checks a REQ that has arrived at an address.
pub(super) fn check(
    targets: &[TargetPlan],
    at: Ipv4Addr,
    (req, path): (&ReqFields, &ReqPath),
    private: &[u8],
) -> Result<Request, Refusal> {
    let port = u16::try_from(req.service ^ TCP_SERVICE).ok();
    let is_here =
        |target: &TargetPlan| target.portals.iter().any(|portal| (*portal.ip(), Some(portal.port())) == (at, port));
    let target = targets.iter().position(is_here);
    let target = target.ok_or(Refusal::new(reason::INVALID_SERVICE, "no target has this address and port"))?;
    let mtu = Mtu::ALL.get(usize::from(path.mtu).wrapping_sub(1)).copied();
    let mtu = mtu.ok_or(Refusal::new(reason::INVALID_MTU, "the MTU has an unknown code"))?;
    let unreadable = Refusal::of_login(0, reject::CHANNEL, "the private data hold no SRP login");
    let (_, login) = RdmaCm::parse(private).map_err(|_| unreadable.clone())?;
    let login = LoginReq::parse_cm(login).map_err(|_| unreadable)?;
    let plan = &targets[target];
    if login.target != plan.id {
        return Err(Refusal::of_login(login.tag, reject::ASSOCIATION, "the target port has another identifier"));
    }
    if !plan.initiators.is_empty() && !plan.initiators.contains(&login.initiator) {
        return Err(Refusal::of_login(login.tag, reject::ASSOCIATION, "the initiator port is not listed"));
    }
    if login.flags & 3 != 0 {
        // Each channel is a nexus of its own here. Linux goes on with the channels that it has.
        return Err(Refusal::of_login(login.tag, reject::MULTICHANNEL, "one channel per initiator port"));
    }
    let [reads, _] = req.depths;
    if reads == 0 {
        return Err(Refusal::of_login(login.tag, reject::RESOURCES, "the initiator accepts no RDMA READ"));
    }
    Ok(Request { target, login, mtu, reads: reads.min(MAX_READS) })
}

/// Returns the parameters of a queue pair: as requester, and as responder.
pub(super) fn parameters(request: &Request, psns: [u32; 2]) -> [rc::Config; 2] {
    psns.map(|first_psn| rc::Config {
        mtu: request.mtu,
        first_psn,
        timeout: ACK_TIMEOUT,
        reads: request.reads.into(),
        ..rc::Config::SOFT_ROCE
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddrV4;

    const AT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const REQ: ReqFields =
        ReqFields { local_id: 1, service: TCP_SERVICE | 5_555, guid: 2, pair: 3, depths: [4, 0], psn: 5, key: 0xffff };
    const PATH: ReqPath =
        ReqPath { transport: 0, response_timeout: 20, retries: 7, mtu: 3, rnr_retries: 7, ack_timeout: 19 };

    fn targets(initiators: Vec<[u8; 16]>) -> [TargetPlan; 1] {
        [TargetPlan {
            name: "disks".to_owned(),
            system: 0,
            port: 0,
            portals: vec![SocketAddrV4::new(AT, 5_555)],
            id: [9; 16],
            initiators,
            request_limit: 64,
        }]
    }

    fn private(target: [u8; 16]) -> Vec<u8> {
        let mut bytes = RdmaCm { port: 1, addresses: [AT, AT] }.to_bytes().to_vec();
        LoginReq { tag: 8, target, initiator: [1; 16], ..LoginReq::default() }.emit_cm(&mut bytes);
        bytes
    }

    /// Reasons of the connection manager and of the login.
    fn reasons(outcome: Result<Request, Refusal>) -> (u16, Option<u32>) {
        let refusal = outcome.expect_err("a refusal");
        let reason = refusal.unit.map(|unit| match *unit {
            Iu::LoginRej { reason, .. } => reason,
            other => panic!("{other:?}"),
        });
        (refusal.reason, reason)
    }

    #[test]
    fn only_a_listed_initiator_with_the_right_names_logs_in() {
        let login = |targets: &[TargetPlan], at, req: ReqFields, path: ReqPath, bytes: &[u8]| {
            check(targets, at, (&req, &path), bytes)
        };
        let (all, good) = (targets(Vec::new()), private([9; 16]));
        let request = login(&all, AT, REQ, PATH, &good).unwrap();
        assert_eq!((request.target, request.mtu, request.reads, request.login.tag), (0, Mtu::B1024, 4, 8));
        assert!(login(&targets(vec![[2; 16], [1; 16]]), AT, REQ, PATH, &good).is_ok());
        let association = (reason::CONSUMER, Some(reject::ASSOCIATION));
        assert_eq!(reasons(login(&targets(vec![[2; 16]]), AT, REQ, PATH, &good)), association);
        assert_eq!(reasons(login(&all, AT, REQ, PATH, &private([8; 16]))), association);
        for (at, service) in [
            (AT, TCP_SERVICE | 5_556),
            (AT, 5_555),
            (AT, 1 << 40 | TCP_SERVICE | 5_555),
            (Ipv4Addr::LOCALHOST, REQ.service),
        ] {
            let outcome = login(&all, at, ReqFields { service, ..REQ }, PATH, &good);
            assert_eq!(reasons(outcome), (reason::INVALID_SERVICE, None), "{at} {service:x}");
        }
        for mtu in [0, 6, 15] {
            let outcome = login(&all, AT, REQ, ReqPath { mtu, ..PATH }, &good);
            assert_eq!(reasons(outcome), (reason::INVALID_MTU, None), "{mtu}");
        }
        let idle = login(&all, AT, ReqFields { depths: [0, 4], ..REQ }, PATH, &good);
        assert_eq!(reasons(idle), (reason::CONSUMER, Some(reject::RESOURCES)));
        for end in 0..good.len() {
            let outcome = login(&all, AT, REQ, PATH, &good[..end]);
            assert_eq!(reasons(outcome), (reason::CONSUMER, Some(reject::CHANNEL)), "{end} bytes");
        }
    }
}
