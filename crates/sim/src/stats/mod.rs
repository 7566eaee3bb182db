//! Statistics of a run. Sums are integers, so they do not depend on the order of additions.

mod confidence;
mod counts;
mod fairness;
mod histogram;
mod series;
mod summary;
mod time_weighted;
mod warm_up;

pub use confidence::{BatchMeans, ConfidenceInterval, student_t_975};
pub use counts::Counts;
pub use fairness::jain_index;
pub use histogram::{HistogramBucket, LatencyHistogram};
pub use series::{Series, Step};
pub use summary::Summary;
pub use time_weighted::TimeWeighted;
pub use warm_up::warm_up;
