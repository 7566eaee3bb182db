//! The frame windows of HBAs, which the hosts behind one HBA share.

use crate::host::FrameWindow;

/// Data frames in flight, by N_Port of the frame path. Virtual ports use the window of the HBA that
/// carries them. [`NO_PLANE`](super::NO_PLANE) has no window.
pub(super) struct Windows {
    by_plane: Vec<FrameWindow>,
    /// Planes whose window has free space again while hosts wait for it.
    freed: Vec<u16>,
}

impl Windows {
    pub fn new(by_plane: Vec<FrameWindow>) -> Windows {
        Windows { by_plane, freed: Vec::new() }
    }

    /// Exchanges the window of a plane with another world. Virtual ports have none.
    pub fn swap(&mut self, other: &mut Windows, plane: u16) {
        let at = usize::from(plane);
        if let (Some(own), Some(other)) = (self.by_plane.get_mut(at), other.by_plane.get_mut(at)) {
            std::mem::swap(own, other);
        }
    }

    /// Returns whether a command of `bytes` may start. While hosts wait for the window, only the
    /// host may start a command to which the window is offered.
    pub fn admits(&self, plane: u16, bytes: u32, is_offered: bool) -> bool {
        let Some(window) = self.by_plane.get(usize::from(plane)) else { return true };
        (is_offered || !window.has_waiting()) && window.fits(bytes)
    }

    /// Reserves the frames of a command of `bytes`.
    pub fn reserve(&mut self, plane: u16, bytes: u32) {
        if let Some(window) = self.by_plane.get_mut(usize::from(plane)) {
            window.reserve(bytes);
        }
    }

    /// Frees the frames of a command of `bytes`.
    pub fn release(&mut self, plane: u16, bytes: u32) {
        let Some(window) = self.by_plane.get_mut(usize::from(plane)) else { return };
        window.release(bytes);
        if window.has_waiting() {
            self.freed.push(plane);
        }
    }

    /// Queues a host whose command does not fit.
    pub fn wait(&mut self, plane: u16, host: u16) {
        if let Some(window) = self.by_plane.get_mut(usize::from(plane)) {
            window.wait(host);
        }
    }

    /// Returns whether a window has free space for which hosts wait.
    #[inline]
    pub fn has_freed(&self) -> bool {
        !self.freed.is_empty()
    }

    /// Removes and returns a plane whose window has free space again.
    pub fn pop_freed(&mut self) -> Option<u16> {
        self.freed.pop()
    }

    /// Removes and returns the first host that waits for a window.
    pub fn next_waiting(&mut self, plane: u16) -> Option<u16> {
        self.by_plane[usize::from(plane)].next_waiting()
    }

    /// Returns the number of frames in flight.
    pub fn in_flight(&self, plane: u16) -> u32 {
        self.by_plane[usize::from(plane)].in_flight()
    }

    /// Moves a host that waits again back to the front. Returns whether it waits again.
    pub fn requeue_first(&mut self, plane: u16, host: u16) -> bool {
        self.by_plane[usize::from(plane)].requeue_first(host)
    }
}
