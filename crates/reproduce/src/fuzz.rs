//! An entry point for fuzzers: any bytes as a file of published measurements.
//!
//! Asserted beyond "does not panic": a file that was read can be judged and shown; a row without a value says why; each
//! claim is judged or listed as not judged.
//!
//! Absent on purpose: a fuzzer. `crates/mutate` changes a committed corpus, `fuzz/` has the target for
//! libFuzzer.

use crate::judge::{Judged, judge};
use crate::null::NullModel;
use crate::read::parse;
use crate::show::tables;

/// Any bytes as a text; what is no UTF-8 in it is replaced.
pub fn fuzz_published(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let Ok(study) = parse("fuzz.toml", text) else { return };
    assert!(study.rows.iter().all(|row| study.asked(&row.asked.id).is_some()));
    for model in NullModel::ALL {
        let judgement = judge(&study, &model);
        assert_eq!(judgement.rows.len(), study.rows.len());
        assert!(judgement.rows.iter().all(|row| row.model.is_ok() == row.score.is_some()));
        let (held, published) = judgement.held();
        assert!(held <= published && published <= judgement.claims.len());
        assert_eq!(judgement.claims.len() + judgement.not_judged.len(), study.claims.len());
    }
    let text = tables(&[Judged::of(&study, &NullModel::Average)], &[]);
    assert!(!text.contains('\u{1b}'), "{text:?}");
}
