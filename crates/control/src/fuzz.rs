//! An entry point for fuzzers: any bytes as a body on the control socket, an order or an answer.
//!
//! Asserted beyond "does not panic": what was accepted is written so that the same is read again.

use crate::cache_status::CacheCurve;
use crate::order::{Order, OrderAnswer};
use crate::slow_status::SlowStatus;
use crate::status::Status;

/// Any bytes as each of the bodies; the status, if it is one.
///
/// # Panics
/// What was accepted is not read again as it was written.
pub fn fuzz_bodies(data: &[u8]) -> Option<Status> {
    if let Ok(order) = serde_json::from_slice::<Order>(data) {
        let written = serde_json::to_vec(&order).expect("an order can be written");
        let again = serde_json::from_slice::<Order>(&written);
        assert_eq!(again.expect("an order that was written is read"), order);
    }
    if let Ok(answer) = serde_json::from_slice::<OrderAnswer>(data) {
        let written = serde_json::to_vec(&answer).expect("an answer can be written");
        let again = serde_json::from_slice::<OrderAnswer>(&written);
        assert_eq!(again.expect("an answer that was written"), answer);
    }
    if let Ok(curves) = serde_json::from_slice::<Vec<CacheCurve>>(data) {
        let written = serde_json::to_string(&curves).expect("curves can be written");
        let again = serde_json::from_str::<Vec<CacheCurve>>(&written).expect("curves that were");
        assert_eq!(serde_json::to_string(&again).expect("what was read can be written"), written);
    }
    if let Ok(slow) = serde_json::from_slice::<SlowStatus>(data) {
        let written = serde_json::to_vec(&slow).expect("slow requests can be written");
        let again = serde_json::from_slice::<SlowStatus>(&written);
        assert_eq!(again.expect("slow requests that were written"), slow);
    }
    let status = serde_json::from_slice::<Status>(data).ok()?.completed();
    let written = serde_json::to_string(&status).expect("a status can be written");
    let again = serde_json::from_str::<Status>(&written).expect("a status that was written");
    assert_eq!(serde_json::to_string(&again).expect("what was read can be written"), written);
    for array in &status.arrays {
        assert!(array.is_redundant() || !array.has_parity(), "{}", array.level);
    }
    Some(status)
}
