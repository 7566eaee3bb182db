//! Numbers of the event sources.

/// Numbers of the event sources in the queue. Events at the same time leave in the order of these
/// numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources {
    lanes: u32,
    timers: u32,
    loops: u32,
    ethernet: u32,
    infiniband: u32,
}

/// The source of an event.
pub(super) enum Source {
    /// The first frame on a lane arrives.
    Arrival(u32),
    /// The sender of a lane attempts to send.
    Wake(u32),
    /// The input at the end of a lane has sent a frame.
    InputReady(u32),
    /// The watchdog of a lane runs.
    Watchdog(u32),
    /// A timer of the layers above expires.
    Timer(u32),
    /// One of the sources of [`Other`].
    Other(OtherSource),
}

/// Number of a source after those of lanes and timers.
#[derive(Clone, Copy)]
pub(super) struct OtherSource(u32);

/// A source that is neither a lane nor a timer.
pub(super) enum Other {
    /// An arbitrated loop has something to do.
    Loop(u16),
    /// The first frame on an Ethernet line arrives.
    EthernetArrival(u32),
    /// The sender of an Ethernet line attempts to send.
    EthernetWake(u32),
    /// The receiver of an Ethernet line repeats its pauses.
    EthernetRefresh(u32),
    /// A flow-control packet that somebody waits for arrives on an InfiniBand line.
    InfinibandCredit(u32),
    /// The first packet on an InfiniBand line arrives.
    InfinibandArrival(u32),
    /// The sender of an InfiniBand line attempts to send.
    InfinibandWake(u32),
    /// The lifetime of a packet that waits for an InfiniBand line ends.
    InfinibandExpiry(u32),
    /// The sender of an InfiniBand line repeats its flow-control packets.
    InfinibandRefresh(u32),
    /// The subnet manager changes forwarding tables.
    InfinibandSweep,
    /// Frames of virtual links enter Ethernet.
    Fcoe,
}

impl OtherSource {
    /// Returns the meaning of the number.
    pub fn decode(self, sources: Sources) -> Other {
        let Sources { loops, ethernet, infiniband, .. } = sources;
        let OtherSource(source) = self;
        if source < loops {
            Other::Loop(source as u16)
        } else if source < loops + ethernet {
            Other::EthernetArrival(source - loops)
        } else if source < loops + 2 * ethernet {
            Other::EthernetWake(source - loops - ethernet)
        } else if source < loops + 3 * ethernet {
            Other::EthernetRefresh(source - loops - 2 * ethernet)
        } else {
            let source = source - loops - 3 * ethernet;
            let line = if infiniband == 0 { 0 } else { source % infiniband };
            match source.checked_div(infiniband) {
                Some(0) => Other::InfinibandCredit(line),
                Some(1) => Other::InfinibandArrival(line),
                Some(2) => Other::InfinibandWake(line),
                Some(3) => Other::InfinibandExpiry(line),
                Some(4) => Other::InfinibandRefresh(line),
                Some(_) if source == 5 * infiniband => Other::InfinibandSweep,
                // The source after all others.
                _ => Other::Fcoe,
            }
        }
    }
}

impl Sources {
    pub fn new(lanes: u32, timers: u32, loops: u32, ethernet: u32, infiniband: u32) -> Sources {
        Sources { lanes, timers, loops, ethernet, infiniband }
    }

    /// Returns the number of sources.
    pub fn count(self) -> usize {
        (self.fcoe() + 1) as usize
    }

    /// Returns the source of frames of virtual links that enter Ethernet.
    pub fn fcoe(self) -> u32 {
        self.first_infiniband() + 5 * self.infiniband + u32::from(self.infiniband > 0)
    }

    /// Returns the number of sources whose times are stored by their lanes: arrivals and attempts
    /// to send.
    pub fn free(self) -> usize {
        2 * self.lanes as usize
    }

    /// Returns the meaning of a source number.
    #[inline]
    pub fn decode(self, source: u32) -> Source {
        let lanes = self.lanes;
        if source < lanes {
            Source::Arrival(source)
        } else if source < 2 * lanes {
            Source::Wake(source - lanes)
        } else if source < 3 * lanes {
            Source::InputReady(source - 2 * lanes)
        } else if source < 4 * lanes {
            Source::Watchdog(source - 3 * lanes)
        } else if source < 4 * lanes + self.timers {
            Source::Timer(source - 4 * lanes)
        } else {
            Source::Other(OtherSource(source - 4 * lanes - self.timers))
        }
    }

    /// Returns the source of a lane's arrivals.
    #[inline]
    pub fn arrival(self, lane: u32) -> u32 {
        debug_assert!(lane < self.lanes, "lane {lane} of {}", self.lanes);
        lane
    }

    /// Returns the source of a lane's attempts to send.
    #[inline]
    pub fn wake(self, lane: u32) -> u32 {
        self.lanes + lane
    }

    /// Returns the source of the input at the end of a lane.
    #[inline]
    pub fn input_ready(self, lane: u32) -> u32 {
        2 * self.lanes + lane
    }

    /// Returns the source of a lane's watchdog.
    #[inline]
    pub fn watchdog(self, lane: u32) -> u32 {
        3 * self.lanes + lane
    }

    /// Returns the source of a timer of the layers above.
    #[inline]
    pub fn timer(self, timer: u32) -> u32 {
        debug_assert!(timer < self.timers, "timer {timer} of {}", self.timers);
        4 * self.lanes + timer
    }

    /// Returns the source of an arbitrated loop.
    pub fn arbitrated_loop(self, number: u16) -> u32 {
        debug_assert!(u32::from(number) < self.loops, "loop {number} of {}", self.loops);
        4 * self.lanes + self.timers + u32::from(number)
    }

    fn first_ethernet(self) -> u32 {
        4 * self.lanes + self.timers + self.loops
    }

    /// Returns the source of the arrivals on an Ethernet line.
    #[inline]
    pub fn ethernet_arrival(self, line: u32) -> u32 {
        self.first_ethernet() + line
    }

    /// Returns the source of the attempts to send on an Ethernet line.
    #[inline]
    pub fn ethernet_wake(self, line: u32) -> u32 {
        self.first_ethernet() + self.ethernet + line
    }

    /// Returns the source of the repeated pauses for an Ethernet line.
    #[inline]
    pub fn ethernet_refresh(self, line: u32) -> u32 {
        self.first_ethernet() + 2 * self.ethernet + line
    }

    fn first_infiniband(self) -> u32 {
        self.first_ethernet() + 3 * self.ethernet
    }

    /// Returns the source of the awaited flow-control packets on an InfiniBand line.
    #[inline]
    pub fn infiniband_credit(self, line: u32) -> u32 {
        self.first_infiniband() + line
    }

    /// Returns the source of the arrivals on an InfiniBand line.
    #[inline]
    pub fn infiniband_arrival(self, line: u32) -> u32 {
        self.first_infiniband() + self.infiniband + line
    }

    /// Returns the source of the attempts to send on an InfiniBand line.
    #[inline]
    pub fn infiniband_wake(self, line: u32) -> u32 {
        self.first_infiniband() + 2 * self.infiniband + line
    }

    /// Returns the source of the lifetimes of packets that wait for an InfiniBand line.
    #[inline]
    pub fn infiniband_expiry(self, line: u32) -> u32 {
        self.first_infiniband() + 3 * self.infiniband + line
    }

    /// Returns the source of the repeated flow-control packets on an InfiniBand line.
    #[inline]
    pub fn infiniband_refresh(self, line: u32) -> u32 {
        self.first_infiniband() + 4 * self.infiniband + line
    }

    /// Returns the source of the sweeps of the subnet manager.
    #[inline]
    pub fn infiniband_sweep(self) -> u32 {
        self.first_infiniband() + 5 * self.infiniband
    }
}
