//! Up to six Cruzer Titanium sticks in raid0 on one USB bus and on two.

use super::Series;
use crate::claim::{Answer, Figures, NoValue, all, is};

pub(super) const SERIES: Series = Series {
    file: "cruzer-6x-raid0.toml",
    text: include_str!("cruzer-6x-raid0.toml"),
    claims: &[
        ("cruzer.c.read-ceiling", read_ceiling),
        ("cruzer.c.write-ceiling", write_ceiling),
        ("cruzer.c.write-below-read", writes_end_below_reads),
        ("cruzer.c.below-theory", ceiling_is_below_the_bus),
        ("cruzer.c.read-saturates-3", three_saturate_reads),
        ("cruzer.c.three-exceed-bus", three_exceed_the_ceiling),
        ("cruzer.c.write-linear-3", writes_are_linear_to_three),
        ("cruzer.c.write-bends-4", writes_bend_from_four),
        ("cruzer.c.write-6-7-theory", bandwidth_is_of_six_or_seven),
        ("cruzer.c.chunk-read-window", best_read_chunk),
        ("cruzer.c.chunk-read-some", chunk_matters_to_reads),
        ("cruzer.c.chunk-write-flat", chunk_hardly_matters_to_writes),
        ("cruzer.c.chunk-depends-n", best_chunk_depends_on_the_count),
        ("cruzer.c.interleave", order_has_no_effect),
    ],
};

/// Chunks that are probed, in KiB.
const CHUNKS: [u16; 11] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Returns the rates at the chunks of `probe`, in order.
fn by_chunk(f: Figures<'_>, probe: &str) -> Result<Vec<f64>, NoValue> {
    CHUNKS.iter().map(|chunk| f(&format!("cruzer.probe.{probe}.c{chunk}"))).collect()
}

/// Returns the first of the fastest chunks of `probe`, in KiB.
fn best_chunk(f: Figures<'_>, probe: &str) -> Result<u16, NoValue> {
    let rates = by_chunk(f, probe)?;
    let mut best = (CHUNKS[0], rates[0]);
    for (chunk, rate) in CHUNKS.into_iter().zip(rates) {
        if rate > best.1 {
            best = (chunk, rate);
        }
    }
    Ok(best.0)
}

/// Returns the slowest and the fastest rate of `probe` over its chunks.
fn span(f: Figures<'_>, probe: &str) -> Result<(f64, f64), NoValue> {
    let rates = by_chunk(f, probe)?;
    Ok((rates.iter().copied().fold(f64::INFINITY, f64::min), rates.into_iter().fold(0.0, f64::max)))
}

/// One bus tops out at about 45 MB/s of reads.
fn read_ceiling(f: Figures<'_>) -> Answer {
    Ok(is(40e6).at_most(f("cruzer.1bus.dd-read.max")?).at_most(50e6))
}

/// One bus tops out at 38 MB/s of writes.
fn write_ceiling(f: Figures<'_>) -> Answer {
    Ok(is(34e6).at_most(f("cruzer.1bus.dd-write.max")?).at_most(42e6))
}

/// The ceiling of writes on one bus lies below that of reads.
fn writes_end_below_reads(f: Figures<'_>) -> Answer {
    Ok(is(f("cruzer.1bus.dd-write.max")?).below(f("cruzer.1bus.dd-read.max")?))
}

/// The ceilings of one bus lie well below 60 MB/s.
fn ceiling_is_below_the_bus(f: Figures<'_>) -> Answer {
    Ok(is(f("cruzer.1bus.dd-read.max")?).below(0.85 * f("cruzer.bus.advertised")?))
}

/// Reads on one bus are almost flat after three devices.
fn three_saturate_reads(f: Figures<'_>) -> Answer {
    let [one, two, three, six] =
        ["n1", "n2", "n3", "n6"].map(|n| f(&format!("cruzer.probe.1bus.read.{n}")));
    Ok(is(six?).at_most(1.15 * three?).and(is(two?).at_least(1.6 * one?)))
}

/// Three sticks at the rate of one would exceed the ceiling of reads.
fn three_exceed_the_ceiling(f: Figures<'_>) -> Answer {
    Ok(is(3.0 * f("cruzer.single.dd-read")?).above(f("cruzer.1bus.dd-read.max")?))
}

/// Writes on one bus are linear up to three devices.
fn writes_are_linear_to_three(f: Figures<'_>) -> Answer {
    all([2, 3].into_iter().map(|n| {
        let linear = 0.92 * f64::from(n) * f("cruzer.probe.1bus.write.n1")?;
        Ok(is(f(&format!("cruzer.probe.1bus.write.n{n}"))?)
            .at_least(linear)
            .of(&format!("n = {n}")))
    }))
}

/// From the fourth device writes on one bus fall behind linear.
fn writes_bend_from_four(f: Figures<'_>) -> Answer {
    let [one, four, six] = ["n1", "n4", "n6"].map(|n| f(&format!("cruzer.probe.1bus.write.{n}")));
    let one = one?;
    Ok(is(four?).below(0.98 * 4.0 * one).and(is(six?).below(0.88 * 6.0 * one)))
}

/// By bare bandwidth six to seven devices at 9 MB/s should still gain on one bus.
fn bandwidth_is_of_six_or_seven(f: Figures<'_>) -> Answer {
    Ok(is(6.0)
        .at_most(f("cruzer.bus.advertised")? / f("cruzer.single.advertised-write")?)
        .below(7.0))
}

/// On one bus the best chunk for reads lies in 32 to 512 KiB.
fn best_read_chunk(f: Figures<'_>) -> Answer {
    Ok(is(32.0).at_most(best_chunk(f, "1bus.read.n6")?.into()).at_most(512.0))
}

/// On one bus the chunk has some influence on reads.
fn chunk_matters_to_reads(f: Figures<'_>) -> Answer {
    let (slowest, fastest) = span(f, "1bus.read.n6")?;
    Ok(is(fastest).above(1.05 * slowest))
}

/// On one bus the chunk has very little influence on writes.
fn chunk_hardly_matters_to_writes(f: Figures<'_>) -> Answer {
    let (slowest, fastest) = span(f, "1bus.write.n6")?;
    Ok(is(fastest).below(1.10 * slowest))
}

/// On two buses the best chunk for reads depends on the count of devices.
fn best_chunk_depends_on_the_count(f: Figures<'_>) -> Answer {
    let best = |n: u8| best_chunk(f, &format!("2bus.read.n{n}"));
    let mut best = [best(2)?, best(4)?, best(6)?].to_vec();
    best.sort_unstable();
    best.dedup();
    Ok(is(best.len() as f64).above(1.0))
}

/// The order of devices across the two buses has no effect.
fn order_has_no_effect(f: Figures<'_>) -> Answer {
    all(["read", "write"].iter().map(|o| {
        let usual = format!("cruzer.probe.2bus.{o}.n6");
        let change = f(&format!("{usual}.grouped"))? / f(&usual)? - 1.0;
        Ok(is(change.abs()).below(0.03).of(&format!("o = '{o}'")))
    }))
}
