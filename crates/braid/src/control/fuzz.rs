//! An entry point for fuzzers: any bytes as a body on the control socket, an order or an answer.
//!
//! Asserted beyond "does not panic": what was accepted is written so that the same is read again, and an
//! answer can be shown.
//!
//! This crate is a program and nothing can be linked to it: `fuzz/` has this file, and those of the
//! bodies, among its own. What shows an answer is reached by the test below only.

use super::{CacheCurve, Order, OrderAnswer, Status};

/// Any bytes as each of the bodies; the status, if it is one.
pub(crate) fn fuzz_bodies(data: &[u8]) -> Option<Status> {
    if let Ok(order) = serde_json::from_slice::<Order>(data) {
        let written = serde_json::to_vec(&order).expect("an order can be written");
        let again = serde_json::from_slice::<Order>(&written);
        assert_eq!(again.expect("an order that was written"), order);
    }
    if let Ok(answer) = serde_json::from_slice::<OrderAnswer>(data) {
        let written = serde_json::to_vec(&answer).expect("an answer can be written");
        let again = serde_json::from_slice::<OrderAnswer>(&written);
        let again = again.expect("an answer that was written");
        assert_eq!((again.text, again.outcome), (answer.text, answer.outcome));
    }
    if let Ok(curves) = serde_json::from_slice::<Vec<CacheCurve>>(data) {
        let written = serde_json::to_string(&curves).expect("curves can be written");
        let again = serde_json::from_str::<Vec<CacheCurve>>(&written).expect("curves that were");
        assert_eq!(serde_json::to_string(&again).expect("the same"), written);
    }
    let mut status = serde_json::from_slice::<Status>(data).ok()?;
    if let Some(nbd) = &mut status.nbd {
        // Averages may differ in their last digit.
        (nbd.requests_per_receive, nbd.replies_per_send) = (1.0, 2.5);
    }
    let written = serde_json::to_string(&status).expect("a status can be written");
    let again = serde_json::from_str::<Status>(&written).expect("a status that was written");
    assert_eq!(serde_json::to_string(&again).expect("the same"), written);
    for array in &status.arrays {
        assert!(array.is_redundant() || !array.has_parity(), "{}", array.level);
    }
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(data: &[u8]) {
        if let Some(status) = fuzz_bodies(data) {
            assert!(crate::command::render_status(&status).contains("volume"));
            if let Ok(text) = crate::command::render_mdstat(&status) {
                assert!(text.starts_with("Personalities"));
            }
        }
    }

    #[test]
    fn control_body() {
        braid_mutate::run("control_body", "cargo test -p braid --bin braid control_body", entry);
    }
}
