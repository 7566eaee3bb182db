//! Integration tests of `sanloom-api`, one module per topic.

mod hostile;
mod inject;
mod metrics;
mod schema;
