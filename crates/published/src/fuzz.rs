//! An entry point for fuzzers: any bytes as a predicate, and as a file of published measurements.
//!
//! Asserted beyond "does not panic": an error has a place in the text; what was read once is read again; a
//! file that was read can be judged, and whatever has no value says why.
//!
//! Absent on purpose: a fuzzer. `crates/mutate` changes a committed corpus, `fuzz/` has the target for
//! libFuzzer.

use crate::judge::judge;
use crate::null::NullModel;
use crate::predicate::{NoAnswer, Place, Predicate};
use crate::read::parse;

/// Any bytes as a text; what is no UTF-8 in it is replaced.
pub fn fuzz_published(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    match Predicate::parse(text) {
        Ok(predicate) => {
            assert_eq!(predicate.text(), text);
            let lengths = |id: &str| match id.len() {
                0 => Err("nothing".to_owned()),
                length => Ok(length as f64),
            };
            match predicate.evaluate(&lengths) {
                Err(NoAnswer::NoValue { id, .. }) => assert!(id.is_empty(), "{id:?} has a value"),
                Err(NoAnswer::Failed(error)) => assert_in_text(error.place, text),
                Ok(_) => {}
            }
        }
        Err(error) => assert_in_text(error.place, text),
    }
    let Ok(study) = parse("fuzz.toml", text) else { return };
    assert!(study.rows.iter().all(|row| study.asked(&row.asked.id).is_some()));
    for model in NullModel::ALL {
        let judgement = judge(&study, &model);
        assert_eq!(judgement.rows.len(), study.rows.len());
        assert!(judgement.rows.iter().all(|row| row.model.is_ok() == row.score.is_some()));
        let (held, published) = judgement.held();
        assert!(held <= published && published <= study.claims.len());
    }
}

fn assert_in_text(place: Place, text: &str) {
    let line = text.split('\n').nth(place.line - 1).expect("a line of the text");
    assert!((1..=line.chars().count() + 1).contains(&place.column), "{place} in {text:?}");
}
