//! Virtual channels of the links between switches, and the quarantine of slow devices.
//!
//! Numbers and classes follow the virtual channels of Fabric OS (Brocade Fabric OS Administration
//! Guide 8.0.1, 53-1004111-02, page 394): 2 to 5 carry medium priority, 8 and 9 low, 10 to 14 high.

use super::units::Picos;

/// Number of virtual channels that a link may have.
pub const MAX_CHANNELS: usize = 16;

/// Channel of the frames between switches (Class F).
pub const FABRIC_CHANNEL: u8 = 0;

/// Bytes of the longest frame from SOF to EOF.
pub const MAX_FRAME_BYTES: u32 = 2148;

/// Bytes of the longest frame with the gap after it.
const FULL_FRAME_BYTES: u64 = MAX_FRAME_BYTES as u64 + 24;

/// Priority of data frames on links with virtual channels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Priority {
    /// Also the channels of quarantined devices.
    Low,
    /// Frames outside of QoS zones.
    #[default]
    Medium,
    /// Frames that precede the others.
    High,
}

impl Priority {
    /// All priorities, lowest first.
    pub const ALL: [Priority; 3] = [Priority::Low, Priority::Medium, Priority::High];

    /// Numbers of the channels of this priority.
    pub const fn channels(self) -> std::ops::Range<u8> {
        match self {
            Priority::Low => 8..10,
            Priority::Medium => 2..6,
            Priority::High => 10..15,
        }
    }

    /// Priority of a data channel. [`FABRIC_CHANNEL`] and unused numbers count as medium.
    pub const fn of_channel(channel: u8) -> Priority {
        match channel {
            8..10 => Priority::Low,
            10..15 => Priority::High,
            _ => Priority::Medium,
        }
    }

    /// Share of a line in relation to the other priorities, while each has frames. The numbers are
    /// the model's choice.
    pub const fn weight(self) -> u64 {
        match self {
            Priority::Low => 10,
            Priority::Medium => 30,
            Priority::High => 60,
        }
    }

    /// Name used in lab files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Medium => "medium",
            Priority::High => "high",
        }
    }
}

/// Virtual channels that a switch offers on its links to other switches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VirtualChannels {
    /// Channels of medium priority, 1 to 4; `None`: as many as can each fill the line.
    pub medium: Option<u8>,
    /// Channels of high priority, 0 to 5.
    pub high: u8,
    /// Channels of low priority, 0 to 2.
    pub low: u8,
}

impl VirtualChannels {
    /// Channels that both ends of a link offer.
    pub fn common(self, other: VirtualChannels) -> VirtualChannels {
        let medium = match (self.medium, other.medium) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
        VirtualChannels { medium, high: self.high.min(other.high), low: self.low.min(other.low) }
    }
}

/// Credits of each virtual channel of one direction of a link; 0 for a channel that it does not
/// have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelCredits(pub [u16; MAX_CHANNELS]);

impl ChannelCredits {
    /// Divides the buffers of a receiver among the channels of a link.
    ///
    /// Frames between switches get one buffer for each 16, at least one and at most four. The rest
    /// is divided equally; lower numbers get the remainder. Each priority gets one channel before
    /// medium, high and low get further ones in this order. With `medium: None` there are as many
    /// channels as can have `fill` buffers each, which one channel needs to keep the line busy.
    /// With a number there are as many as can have one buffer each.
    ///
    /// Returns `None` if there are fewer than two buffers: such a link has no virtual channels.
    pub fn divide(buffers: u16, wanted: VirtualChannels, fill: u16) -> Option<ChannelCredits> {
        if buffers < 2 {
            return None;
        }
        let data = usize::from(buffers - fabric_buffers(buffers));
        let order = [
            (Priority::Medium, wanted.medium.unwrap_or(4)),
            (Priority::High, wanted.high),
            (Priority::Low, wanted.low),
        ];
        let numbers = |(priority, count): (Priority, u8)| priority.channels().take(count.into());
        let first = order.into_iter().flat_map(|class| numbers(class).take(1));
        let further = order.into_iter().flat_map(|class| numbers(class).skip(1));
        let least = order.iter().filter(|(_, count)| *count > 0).count();
        let most = match wanted.medium {
            Some(_) => data,
            None => (data / usize::from(fill.max(1))).max(least.min(data)),
        };
        let mut credits = ChannelCredits::default();
        credits.0[usize::from(FABRIC_CHANNEL)] = 1;
        first.chain(further).take(most).for_each(|channel| credits.0[usize::from(channel)] = 1);
        Some(credits.with_buffers(buffers))
    }

    /// Divides another number of buffers among the same channels. There is at least one for each.
    pub fn with_buffers(&self, buffers: u16) -> ChannelCredits {
        let fabric = fabric_buffers(buffers);
        let data = buffers.saturating_sub(fabric);
        let channels: Vec<u8> = self.channels().filter(|&channel| channel != FABRIC_CHANNEL).collect();
        let count = channels.len().max(1) as u16;
        let mut credits = ChannelCredits::default();
        credits.0[usize::from(FABRIC_CHANNEL)] = fabric;
        for (at, &channel) in (0..).zip(&channels) {
            credits.0[usize::from(channel)] = data / count + u16::from(at < data % count);
        }
        credits
    }

    /// Numbers of the channels, lowest first.
    pub fn channels(&self) -> impl Iterator<Item = u8> + '_ {
        (0..MAX_CHANNELS as u8).filter(|&channel| self.0[usize::from(channel)] > 0)
    }

    /// Returns whether both directions or lines have the same channels.
    pub fn has_same_channels(&self, other: &ChannelCredits) -> bool {
        self.channels().eq(other.channels())
    }

    /// Channel of a data frame with this priority for the address `d_id`. Addresses with successive
    /// port or area numbers use the channels in turn. A priority without a channel uses those of
    /// medium priority.
    pub fn channel_of(&self, priority: Priority, d_id: u32) -> u8 {
        let count = |priority: Priority| {
            let channels = priority.channels();
            channels.filter(|&channel| self.0[usize::from(channel)] > 0).count() as u8
        };
        let (priority, count) = match count(priority) {
            0 => (Priority::Medium, count(Priority::Medium)),
            count => (priority, count),
        };
        priority.channels().start + (Self::turn_of(d_id) % u32::from(count.max(1))) as u8
    }

    /// Number that, modulo the number of channels of a priority, chooses the channel of an address.
    pub const fn turn_of(d_id: u32) -> u32 {
        (d_id >> 8 & 0xff) + (d_id & 0xff)
    }
}

/// Buffers of a link with virtual channels for frames between switches.
const fn fabric_buffers(buffers: u16) -> u16 {
    match buffers / 16 {
        0 => 1,
        share @ 1..=4 => share,
        _ => 4,
    }
}

/// Buffers of a link with virtual channels of which `data` are for data frames.
pub fn buffers_with_data(data: u64) -> u64 {
    let is_enough = |&buffers: &u64| {
        let all = buffers.min(u16::MAX.into()) as u16;
        buffers - u64::from(fabric_buffers(all)) >= data
    };
    (data + 1..data + 4).find(is_enough).unwrap_or(data + 4)
}

/// Buffers that one sender needs to keep a line busy with full frames.
///
/// `byte` is the time of a byte, as ps and the bytes they belong to. A buffer is in use from the
/// first bit at the sender until the R_RDY has returned: the frame, twice the propagation delay,
/// the latency of the receiver, and `crossing_ps` until the frame has left the buffer.
pub fn buffers_to_fill(byte: (u64, u64), propagation_ps: u64, latency_ps: u64, crossing_ps: u64) -> u16 {
    let frame_ps = FULL_FRAME_BYTES * byte.0 / byte.1.max(1);
    let used_ps = frame_ps + 2 * propagation_ps + latency_ps + crossing_ps;
    used_ps.div_ceil(frame_ps.max(1)).min(u16::MAX.into()) as u16
}

/// Detection of slow devices, whose frames then use the low channels in the whole fabric.
///
/// The default is the shortest of the three rules of Fabric Performance Impact monitoring (IBM
/// support document 650691): no credit during 70 % of one second. The time until recovery is the
/// model's choice, because Fabric OS ends a quarantine by command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlowDrain {
    /// Share of the window during which frames wait for a credit of the device, in thousandths.
    pub share_permille: u32,
    /// Length of a window.
    pub window: Picos,
    /// Time below the share until the quarantine ends.
    pub recovery: Picos,
}

impl Default for SlowDrain {
    fn default() -> SlowDrain {
        SlowDrain { share_permille: 700, window: Picos::from_secs(1), recovery: Picos::from_secs(10) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(buffers: u16, medium: Option<u8>, high: u8, low: u8, fill: u16) -> Vec<(u8, u16)> {
        let credits = ChannelCredits::divide(buffers, VirtualChannels { medium, high, low }, fill);
        let credits = credits.expect("enough buffers");
        assert_eq!(credits.0.iter().sum::<u16>(), buffers);
        credits.channels().map(|channel| (channel, credits.0[usize::from(channel)])).collect()
    }

    #[test]
    fn buffers_are_divided_equally_and_every_channel_has_one() {
        assert_eq!(divided(16, None, 0, 0, 3), [(0, 1), (2, 4), (3, 4), (4, 4), (5, 3)]);
        assert_eq!(divided(16, None, 0, 0, 8), [(0, 1), (2, 15)]);
        assert_eq!(divided(16, None, 1, 1, 8), [(0, 1), (2, 5), (8, 5), (10, 5)]);
        assert_eq!(divided(34, Some(4), 0, 0, 1), [(0, 2), (2, 8), (3, 8), (4, 8), (5, 8)]);
        assert_eq!(divided(3, Some(4), 5, 2, 1), [(0, 1), (2, 1), (10, 1)]);
        assert_eq!(divided(2, Some(4), 5, 2, 1), [(0, 1), (2, 1)]);
        assert_eq!(ChannelCredits::divide(1, VirtualChannels { medium: None, high: 0, low: 0 }, 1), None);
    }

    #[test]
    fn a_link_has_few_buffers_more_than_its_data_channels() {
        for buffers in 2..500 {
            let data = u64::from(buffers - fabric_buffers(buffers));
            assert!(buffers_with_data(data) <= u64::from(buffers), "{buffers}");
            assert!(buffers_with_data(data + 1) > u64::from(buffers), "{buffers}");
        }
        assert_eq!(buffers_with_data(203), 207);
    }

    #[test]
    fn every_priority_has_a_channel_on_every_link() {
        for buffers in 2..40 {
            let wanted = VirtualChannels { medium: None, high: 3, low: 1 };
            let credits = ChannelCredits::divide(buffers, wanted, 4).expect("enough buffers");
            for priority in Priority::ALL {
                for d_id in 0x01_0000..0x01_0400 {
                    let channel = credits.channel_of(priority, d_id);
                    assert!(credits.0[usize::from(channel)] > 0, "{buffers} buffers, {priority:?}, {d_id:x}");
                }
            }
        }
    }

    #[test]
    fn sixteen_gigabit_ten_metres_need_three_buffers() {
        assert_eq!(buffers_to_fill((1_000, 1), 50_000, 700_000, 1_000_000), 2);
        assert_eq!(buffers_to_fill((625, 1), 50_000, 700_000, 700_000), 3);
    }
}
