//! The text of `mdadm --examine-badblocks`: a member's bad-block log.
//!
//! Source: mdadm 4.2 `super1.c` (`examine_badblocks_super1`), which also ignores a log of more
//! than 100 sectors.

use std::fmt::Write as _;

use braid_md::superblock::Superblock;
use braid_md::{BadBlocks, Features};

/// Sectors in a log, at most.
const MOST_SECTORS: u64 = 100;

/// The text, of the member at `device`; `log` is what its superblock's log holds, if its entries count.
#[must_use]
pub fn bad_blocks_text(device: &str, superblock: &Superblock, log: Option<&BadBlocks>) -> String {
    let there = superblock.bad_block_log.filter(|log| (1..=MOST_SECTORS * 512).contains(&log.size));
    if there.is_none() {
        return format!("No bad-blocks list configured on {device}\n");
    }
    let log =
        log.filter(|log| superblock.features.contains(Features::BAD_BLOCKS) && !log.is_empty());
    let Some(log) = log else { return format!("Bad-blocks list is empty in {device}\n") };
    let mut text = format!("Bad-blocks on {device}:\n");
    for range in log.iter() {
        let _ = writeln!(text, "{:>20} for {} sectors", range.offset / 512, range.len / 512);
    }
    text
}
