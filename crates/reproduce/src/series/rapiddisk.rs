//! A RAM disk, the disk beside it, and a write-through cache of RAM in front of the disk.

use super::Series;
use crate::claim::{Answer, Compared, Figures, NoValue, all, any, is};

pub(super) const SERIES: Series = Series {
    file: "rapiddisk.toml",
    text: include_str!("rapiddisk.toml"),
    claims: &[
        ("rapiddisk.c.seq-eq-rand-1M", order_does_not_matter_at_1m),
        ("rapiddisk.c.30x-any", thirty_times_the_disk),
        ("rapiddisk.c.4K-range", range_at_4k),
        ("rapiddisk.c.writethrough", writes_go_through),
        ("rapiddisk.c.cache-reads", cached_reads),
        ("rapiddisk.c.cache-below-ram", cache_is_below_memory),
        ("rapiddisk.c.page-size", a_second_from_a_page_on),
        ("rapiddisk.c.dd-peak", dd_has_a_peak),
        ("rapiddisk.c.fs-cost", file_system_costs_little),
    ],
};

const PATTERNS: [&str; 4] = ["seq-read", "rand-read", "seq-write", "rand-write"];

/// Returns the value of `one` as a multiple of that of `other`, both of `rapiddisk.`.
fn ratio(f: Figures<'_>, one: &str, other: &str) -> Result<f64, NoValue> {
    Ok(f(&format!("rapiddisk.{one}"))? / f(&format!("rapiddisk.{other}"))?)
}

/// The RAM disk is as fast at random places as in sequence, at 1 MiB.
fn order_does_not_matter_at_1m(f: Figures<'_>) -> Answer {
    all(["read", "write"].iter().map(|o| {
        let ratio = ratio(f, &format!("rxdsk.1M.1G.rand-{o}"), &format!("rxdsk.1M.1G.seq-{o}"))?;
        Ok(is((ratio - 1.0).abs()).below(0.05).of(&format!("o = '{o}'")))
    }))
}

/// The RAM disk is over 30 times as fast as the disk at 1 MiB in at least one pattern.
fn thirty_times_the_disk(f: Figures<'_>) -> Answer {
    any(PATTERNS.iter().map(|j| {
        let ratio = ratio(f, &format!("rxdsk.1M.1G.{j}"), &format!("sata.1M.1G.{j}"))?;
        Ok(is(ratio).above(30.0).of(&format!("j = '{j}'")))
    }))
}

/// The RAM disk at 4 KiB stays between 1.3 and 1.7 GB/s in all patterns.
fn range_at_4k(f: Figures<'_>) -> Answer {
    all(PATTERNS.iter().map(|j| {
        let rate = f(&format!("rapiddisk.rxdsk.4K.1G.{j}"))?;
        Ok(is(1.3e9).at_most(rate).at_most(1.7e9).of(&format!("j = '{j}'")))
    }))
}

/// The write-through cache leaves writes as on the bare disk.
fn writes_go_through(f: Figures<'_>) -> Answer {
    all(["seq-write", "rand-write"].iter().map(|j| {
        let ratio = ratio(f, &format!("rxcache.4K.32M.{j}"), &format!("sata.4K.32M.{j}"))?;
        Ok(is((ratio - 1.0).abs()).below(0.05).of(&format!("j = '{j}'")))
    }))
}

/// Cached reads are far above those of the bare disk: over 7 times in sequence, over 100 times at random places.
fn cached_reads(f: Figures<'_>) -> Answer {
    let in_sequence = ratio(f, "rxcache.4K.32M.seq-read", "sata.4K.32M.seq-read")?;
    let at_random = ratio(f, "rxcache.4K.32M.rand-read", "sata.4K.32M.rand-read")?;
    Ok(is(in_sequence).above(7.0).and(is(at_random).above(100.0)))
}

/// Cached reads of 4 KiB stay below those of the bare RAM disk.
fn cache_is_below_memory(f: Figures<'_>) -> Answer {
    let below = |j: &str| -> Answer {
        let memory = f(&format!("rapiddisk.rxdsk.4K.1G.{j}"))?;
        Ok(is(f(&format!("rapiddisk.rxcache.4K.32M.{j}"))?).below(memory))
    };
    Ok(below("seq-read")?.and(below("rand-read")?))
}

/// dd moves 1 GB in less than a second once a transfer is at least a page.
fn a_second_from_a_page_on(f: Figures<'_>) -> Answer {
    let every = |sizes: &[&str], compare: fn(Compared) -> Compared| {
        let cases = ["node", "file"].iter().flat_map(|w| sizes.iter().map(move |b| (w, b)));
        all(cases.map(|(w, b)| {
            let seconds = f(&format!("rapiddisk.dd.{w}.{b}.seconds"))?;
            Ok(compare(is(seconds)).of(&format!("w = '{w}', b = '{b}'")))
        }))
    };
    let quick = every(&["4K", "1M", "4M"], |seconds| seconds.below(1.0))?;
    Ok(quick.and(every(&["512", "1K"], |seconds| seconds.above(1.0))?))
}

/// The rate of dd has a peak inside: it rises from 512 bytes to 4 KiB, and is lower again at 4 MiB.
fn dd_has_a_peak(f: Figures<'_>) -> Answer {
    all(["node", "file"].iter().map(|w| {
        let at = |b: &str| f(&format!("rapiddisk.dd.{w}.{b}"));
        let rises = is(at("512")?).below(at("1K")?).below(at("4K")?);
        Ok(rises.above(at("4M")?).of(&format!("w = '{w}'")))
    }))
}

/// A file system costs hardly anything against the bare node.
fn file_system_costs_little(f: Figures<'_>) -> Answer {
    all(["512", "1K", "4K", "1M", "4M"].iter().map(|b| {
        let ratio = ratio(f, &format!("dd.file.{b}"), &format!("dd.node.{b}"))?;
        Ok(is(ratio).above(0.95).of(&format!("b = '{b}'")))
    }))
}
