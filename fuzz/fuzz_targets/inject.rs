#![no_main]

use sanloom_api::inject::{Act, Direction, Matcher, Seen};
use sanloom_wire::Header;

// Input: a line with an expression, a line with an action, and a frame.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let mut text = || parts.next().map(String::from_utf8_lossy).unwrap_or_default();
    let (matcher, act) = (text().parse::<Matcher>(), text().parse::<Act>());
    if let Ok(act) = act {
        assert_eq!(act.to_string().parse::<Act>().ok(), Some(act));
    }
    let frame = parts.next().unwrap_or_default();
    if let (Ok(matcher), Ok(header)) = (matcher, Header::parse(frame)) {
        matcher.holds(&Seen { direction: Direction::In, header: &header, payload: &frame[24..] });
    }
});
