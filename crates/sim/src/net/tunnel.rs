//! Lanes of FCIP links: the seam between the plane of virtual links and [`crate::fcip`].

use super::Net;
use super::fc::{FrameRef, Loss, LossSite};
use super::fcoe::SeenFrame;

/// A frame that a lane has handed over to its gateway.
#[derive(Clone, Debug)]
pub struct Tunnelled {
    pub lane: u32,
    /// Position of the frame in the plane of virtual links.
    pub position: u32,
    /// Bytes of the frame in its encapsulation.
    pub bytes: u16,
    /// Contents for a capture.
    pub seen: Option<Box<SeenFrame>>,
}

/// Fate of a frame that has arrived completely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is in the receive buffer of its gateway.
    Landed,
    /// The receive buffer is full. The lane is reported when it has room.
    NoRoom,
    /// It is lost with its link, or too old.
    Lost,
}

/// Takes a frame whose bytes have arrived.
pub fn arrive(net: &mut Net, position: u32, is_stale: bool) -> Arrival {
    let Net { fc, events, .. } = net;
    let (frame, lane, is_alive) = fc.fcoe.carried(position);
    if !is_alive || is_stale {
        fc.fcoe.remove_tunnelled(position);
        if is_alive {
            fc.count_loss(&frame, Loss::Stale, LossSite::Receiver(lane));
        }
        return Arrival::Lost;
    }
    if !fc.fcoe.hold(lane, position) {
        return Arrival::NoRoom;
    }
    fc.fcoe.remove_tunnelled(position);
    fc.land(events, lane, frame);
    Arrival::Landed
}

/// Returns the credit of a frame whose last byte TCP has accepted.
pub fn left(net: &mut Net, position: u32) {
    let Net { fc, events, .. } = net;
    let (_, lane, is_alive) = fc.fcoe.carried(position);
    if fc.fcoe.leave_queue(position) && is_alive {
        fc.place_is_free(events, lane);
    }
}

/// Loses a frame with its connection.
pub fn lose(net: &mut Net, position: u32) {
    let Net { fc, events, .. } = net;
    let (frame, lane, is_alive): (FrameRef, u32, bool) = fc.fcoe.carried(position);
    let was_queued = fc.fcoe.leave_queue(position);
    fc.fcoe.remove_tunnelled(position);
    if is_alive {
        fc.count_loss(&frame, Loss::LinkDown, LossSite::Line(lane));
        if was_queued {
            fc.place_is_free(events, lane);
        }
    }
}
