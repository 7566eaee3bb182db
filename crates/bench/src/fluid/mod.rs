//! A fluid model of a lab, as an oracle for the simulator: max-min fair rates of closed loops.
//!
//! The model shares no rule with the simulator. Bytes of requests and rates of lines come from the
//! standards ([`wire`]), routes from the costs of RFC 4626, and rates from water filling ([`fill`])
//! over stations: lines, trunks, inputs and crossbars of switches, processors and buses of hosts,
//! controllers. It knows neither frames in flight nor time.
//!
//! # Quantities that are compared
//!
//! Rates of closed loops are unique only under conditions, so [`judge`] compares what theory fixes:
//!
//! 1. No station carries more than its capacity.
//! 2. One of the stations that the model fills to 90 % for a flow is used to 97 %.
//! 3. A flow whose rate is *determined* has this rate within 3 %. See below.
//! 4. FIFO queues: flows that leave an input through different outputs block each other. Saturated
//!    inputs with one queue reach 2 - √2 = 58.6 % of the capacity (Karol, Hluchyj and Morgan,
//!    *Input versus output queueing on a space-division packet switch*, 1987). Such a flow gets at
//!    least this part, less 3 %, of the lowest rate of the flows that block each other, or has a
//!    station that is used to this part. In such a lab rules 2 and 3 do not apply. The part assumes
//!    that the outputs of successive frames are independent. A source that is faster than the line
//!    of its receiver sends runs of frames for one output instead. The runs may then leave one
//!    after the other, so a flow gets at least its part of all requests in flight of the group.
//! 5. Exchanges that are distributed at random over n ways with w requests in flight use each way
//!    only if one of them is there. Tolerances grow by (n - 1) / w, the share of time in which a
//!    closed network of n equal queues leaves one of them empty.
//!
//! 6. The requests of a flow advance together, and a measurement may cut them. Where a queue is
//!    shared, or data are counted at their sender, tolerances grow by the requests in flight of the
//!    flow, as a part of those in the whole measurement.
//! 7. Writes advance in windows, see below. Rule 2 then holds for one of the stations of the flow
//!    and of the flows that delay it. Tolerances grow by the part of a window in which the flow
//!    sends no data: the passage of a command behind the data, and of FCP_XFER_RDY.
//!
//! # Rates that are determined
//!
//! An arbiter in turn is max-min fair for its inputs, not for flows. Within an input the queue for
//! an output is served in order, so flows share it as their frames arrive. There are two cases:
//!
//! - *Ample credits*: the buffers of each link hold all frames of all closed loops over it. Nothing
//!   but a queue for an output delays a frame. Requests in flight wait where the flow is limited,
//!   and flows in one queue share it in proportion to their requests there. A rate is determined if
//!   each flow of the queue waits only there, or needs clearly less than its share.
//! - *Senders wait for credits*: the frames of an input come in the proportions in which the switch
//!   before it sends. This nests, as in the parking-lot problem. Frames for a slow output also fill
//!   the buffers that other flows need, so rates are determined only if all data leave through one
//!   output (incast), and if each flow has more data in flight than the buffers of its way hold.
//!
//! No rate is determined where an arbiter serves a trunk in turn with other inputs. Each line of
//! the trunk has its turn while frames wait there, and the model does not know on how many lines
//! they arrive. Nor is a rate determined if two stations of a flow are nearly full: with fixed
//! numbers of requests in flight, FIFO queues in series approach proportional fairness, not max-min
//! fairness. The expected idle time of a full station grows with the number of such stations, as in
//! a closed network of equal queues.
//!
//! The bus of a receiver is one queue. If senders wait for its buffers, its data have the
//! proportions in which the last switch sends them in turn.
//!
//! # Writes
//!
//! The command of a write waits at the host behind the data of earlier writes, so all requests in
//! flight of a flow advance as one window. A window waits at each station through which it passes
//! more slowly than it arrives, even if the station is not full on average, and delays everything
//! behind it in the same queue. Reads do not, because each request follows the end of another one
//! at the bottleneck. The rate of a flow of writes is therefore not determined
//!
//! - if its queue at the bottleneck is shared, and windows of a flow in this queue are elsewhere
//!   for a considerable time, because nothing fixes the order in which the windows come back, or
//! - if data of another flow delay its requests at another station.
//!
//! Such rates are counted ([`Compared::windows`]). Rules 1 and 2 still apply to them.
//!
//! # Virtual channels
//!
//! The line of an ISL serves its virtual channels in turn, and each channel its inputs. The port
//! number of the destination chooses the channel.

mod compare;
pub mod fill;
pub mod labs;
pub mod network;
mod run;
pub mod wire;

pub use compare::{Compared, HEAD_OF_LINE, TOLERANCE, judge};
pub use run::{Model, measure, report, shrink};
