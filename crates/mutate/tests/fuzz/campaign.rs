//! An entry point for fuzzers: any bytes as a campaign file.
//!
//! Asserted beyond "does not panic": what was accepted has its numbers in range and its names once, is
//! written so that the same is read again, and can be planned; every fault is told in words.
//!
//! Absent on purpose: a fuzzer. `main.rs` changes a committed corpus, `fuzz/` has the target for
//! libFuzzer.

use braid_lab::campaign::{Campaign, render_campaign};
use braid_lab::matrix::{Planned, parse_campaign};

/// Any bytes as a text; what is no UTF-8 in it is replaced.
pub(crate) fn fuzz_campaign(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let campaign = match parse_campaign(&text, "fuzz.toml") {
        Ok(campaign) => campaign,
        Err(error) => {
            assert!(!error.to_string().trim().is_empty());
            return;
        }
    };
    assert_in_range(&campaign);
    let rendered = render_campaign(&campaign).expect("what was accepted can be written");
    match parse_campaign(&rendered, "again.toml") {
        Ok(again) => assert_eq!(again, campaign, "{rendered}"),
        Err(error) => panic!("what was written is refused: {error}\n{rendered}"),
    }
    let Planned { subjects, cells, .. } = Planned::of(&campaign);
    assert!(!cells.is_empty(), "a campaign without a cell");
    assert!(cells.iter().all(|cell| cell.subject < subjects.len()), "a cell of nothing");
    if let Err(error) = Planned::checked(&campaign.scaled(0.01)) {
        panic!("made smaller: {error}\n{rendered}");
    }
}

fn assert_in_range(campaign: &Campaign) {
    assert!((1..=1000).contains(&campaign.repetitions));
    assert!((0.1..=86_400.0).contains(&campaign.runtime_s));
    assert!((0.0..=3600.0).contains(&campaign.ramp_s) && (0.0..=3600.0).contains(&campaign.rest_s));
    assert!(campaign.region.0 >= 4096 && campaign.seed() < 1 << 63);
    assert!(!campaign.subjects.is_empty() && !campaign.jobs.is_empty());
    let mut names: Vec<String> = campaign.expand().into_iter().map(|one| one.name).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert!(all > 0 && names.len() == all, "{all} subjects, {} names", names.len());
}
