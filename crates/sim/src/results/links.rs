//! Results of links.

use super::view::View;
use crate::net::{ChannelCount, LossSite};
use crate::world::fcoe;
use sanloom_api::results::measure::{per_s, ratio, s_of_ps};
use sanloom_api::results::{ChannelResult, LinkDirection, LinkKind, LinkResult};
use sanloom_fc::config::{EthernetRate, Link, Node};
use sanloom_fc::san::virtual_rates;

pub(super) fn links(view: &View<'_>) -> Vec<LinkResult> {
    let lab = &view.world.lab;
    let (ports, rates) = (fcoe::rates(lab), virtual_rates(lab));
    let on_ethernet = |number: &u16| {
        let ports = ports.get(number)?;
        // A link that nothing joins has its ports only.
        Some((*ports, rates.get(number).copied().unwrap_or(ports[0].min(ports[1]))))
    };
    lab.links.iter().zip(0u16..).map(|(link, number)| one(view, link, number, on_ethernet(&number))).collect()
}

fn one(
    view: &View<'_>,
    link: &Link,
    number: u16,
    virtual_link: Option<([EthernetRate; 2], EthernetRate)>,
) -> LinkResult {
    let on_ethernet = virtual_link.map(|(_, rate)| rate);
    // A port that is faster than the way of its link sends in bursts.
    let burst = |side: usize| match virtual_link {
        Some((ports, rate)) => rate.ps_per_byte() as f64 / ports[side].ps_per_byte() as f64,
        None => 1.0,
    };
    let lane = 2 * u32::from(number);
    let down_ps = view.world.downtimes.measured_ps(number, view.now_ps);
    LinkResult {
        name: link.name.clone(),
        kind: kind_of(link),
        rate: on_ethernet.map_or_else(|| link.rate.name(), |rate| rate.name()).to_owned(),
        rate_bytes_per_s: on_ethernet.map_or_else(|| link.rate.bytes_per_s(), |rate| rate.bytes_per_s()) as f64,
        bundle: link.bundle.map(|bundle| format!("bundle{bundle}")),
        down_s: s_of_ps(down_ps),
        link_resets: view.lanes[lane as usize].resets + view.lanes[lane as usize + 1].resets,
        forward: direction(view, link, lane, down_ps, burst(0)),
        backward: direction(view, link, lane + 1, down_ps, burst(1)),
    }
}

fn kind_of(link: &Link) -> LinkKind {
    match [link.ends[0].node, link.ends[1].node] {
        [Node::Switch(_), Node::Switch(_)] => LinkKind::Isl,
        [Node::Switch(_), Node::Host(_)] | [Node::Host(_), Node::Switch(_)] => LinkKind::Host,
        [Node::Switch(_), Node::Storage(_)] | [Node::Storage(_), Node::Switch(_)] => LinkKind::Storage,
        [Node::Loop(_), _] | [_, Node::Loop(_)] => LinkKind::Loop,
        _ => LinkKind::Direct,
    }
}

fn direction(view: &View<'_>, link: &Link, number: u32, down_ps: u64, burst: f64) -> LinkDirection {
    let count = &view.lanes[number as usize];
    let lane = &view.world.net.fc.lanes()[number as usize];
    // R_RDYs for frames of the other direction travel in this direction.
    let r_rdys = view.lanes[(number ^ 1) as usize].r_rdys;
    LinkDirection {
        from: view.names.port(view.names.from(number)),
        to: view.names.port(view.names.to(number)),
        frames: count.frames,
        bytes: count.bytes,
        data_bytes: count.data_bytes,
        throughput_bytes_per_s: per_s(count.data_bytes, view.measured_ps),
        utilisation: (ratio(view.busy_ps(number), view.measured_ps) * burst).min(1.0),
        // Ethernet below a virtual link has no fill words.
        idle_words: match link.fcoe {
            Some(_) => 0,
            None => words(link, view.measured_ps - down_ps.min(view.measured_ps))
                .saturating_sub(count.bytes / WORD_BYTES + r_rdys),
        },
        r_rdys,
        credit_wait_s: s_of_ps(count.credit_wait_ps),
        credit_wait_fraction: ratio(count.credit_wait_ps.min(view.measured_ps), view.measured_ps),
        bb_credit: u64::from(lane.bb_credit),
        credits_min: u64::from(lane.credits_min),
        credits_lost: count.credits_lost,
        credits_recovered: count.credits_recovered,
        frames_lost: view.lost_at(&[LossSite::Line(number)]),
        channels: view.world.measured().channel_counts(number).iter().map(channel).collect(),
    }
}

fn channel(count: &ChannelCount) -> ChannelResult {
    ChannelResult {
        channel: count.number.into(),
        bb_credit: count.granted.into(),
        frames: count.frames,
        bytes: count.bytes,
        credit_wait_s: s_of_ps(count.credit_wait_ps),
    }
}

const WORD_BYTES: u64 = 4;

/// Returns the number of transmission words on a line in a time. Words that belong to no frame and
/// no R_RDY are fill words.
fn words(link: &Link, time_ps: u64) -> u64 {
    let (ps, bytes) = link.rate.ps_per_byte();
    (u128::from(time_ps) * u128::from(bytes) / u128::from(ps * WORD_BYTES)) as u64
}
