//! The effective zones and who of their members is there.

use super::Shown;
use sanloom_api::view::{OnlineMember, ZoneDefault, ZoneMemberRow, ZoneRow, ZoneView};
use sanloom_core::config;
