#![no_main]
//! Packets of SNMP: a request that is read is answered from a tree, within one Ethernet frame.

use sanloom_surface::snmp::{MAX_RESPONSE, Message, Tree, Value, respond};
use std::sync::LazyLock;

static TREE: LazyLock<Tree> = LazyLock::new(|| {
    let mut values = vec![
        (vec![1, 3, 6, 1, 2, 1, 1, 2, 0], Value::Oid(vec![1, 3, 6, 1, 4, 1, 1588])),
        (vec![1, 3, 6, 1, 2, 1, 1, 3, 0], Value::TimeTicks(7)),
        (vec![1, 3, 6, 1, 2, 1, 1, 5, 0], Value::text("sw1")),
        (vec![1, 3, 6, 1, 9, u32::MAX], Value::Octets(vec![0; 1_600])),
    ];
    values.extend((1..200).map(|port| (vec![1, 3, 6, 1, 2, 1, 2, 2, 1, 10, port], Value::Counter64(port.into()))));
    Tree::new(values)
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(request) = Message::read(data) else { return };
    if request.community.len() <= 64 {
        let response = respond(&request, &TREE);
        assert!(!response.is_empty() && response.len() <= MAX_RESPONSE, "{}", response.len());
        // A response is no request.
        assert_eq!(Message::read(&response), None);
    }
});
