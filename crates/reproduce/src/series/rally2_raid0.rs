//! Two OCZ Rally2 sticks in raid0 beside a laptop's disk.

use super::Series;
use crate::claim::{Answer, Figures, is};

pub(super) const SERIES: Series = Series {
    file: "rally2-raid0.toml",
    text: include_str!("rally2-raid0.toml"),
    claims: &[
        ("rally2.c.write-gain-wide", write_gain),
        ("rally2.c.seek-1ms", seeks_gain_a_millisecond),
        ("rally2.c.readahead-not-write", read_ahead_and_writes),
        ("rally2.c.single-seek-vs-hdd", one_stick_seeks_beside_the_disk),
        ("rally2.c.beats-hdd", array_beats_the_disk),
        ("rally2.c.single-near-advertised", one_stick_is_near_its_advertisement),
    ],
};

/// Striping two sticks raises an unsynced dd write by between 40 and 75 percent.
fn write_gain(f: Figures<'_>) -> Answer {
    Ok(is(1.4).at_most(f("rally2.raid0.dd-write")? / f("rally2.single.dd-write")?).at_most(1.75))
}

/// Random access to the array is about one millisecond quicker than to one stick.
fn seeks_gain_a_millisecond(f: Figures<'_>) -> Answer {
    let gain = f("rally2.single.seeker")? - f("rally2.raid0.seeker")?;
    Ok(is(0.0008).at_most(gain).at_most(0.0012))
}

/// Read-ahead leaves the write speed unchanged.
fn read_ahead_and_writes(f: Figures<'_>) -> Answer {
    let change = f("rally2.probe.dd-write.ra2048")? / f("rally2.raid0.dd-write")? - 1.0;
    Ok(is(change.abs()).below(0.02))
}

/// One stick seeks close to three times as quickly as the laptop's disk.
fn one_stick_seeks_beside_the_disk(f: Figures<'_>) -> Answer {
    Ok(is(2.5).at_most(f("rally2.laptop-hdd.seeker")? / f("rally2.single.seeker")?).at_most(3.0))
}

/// The array beats the laptop's disk in buffered read, unsynced write and access time.
fn array_beats_the_disk(f: Figures<'_>) -> Answer {
    let reads = is(f("rally2.raid0.hdparm-t.ra512")?).above(f("rally2.laptop-hdd.hdparm-t")?);
    let writes = is(f("rally2.raid0.dd-write")?).above(f("rally2.laptop-hdd.dd-write")?);
    let seeks = is(f("rally2.raid0.seeker")?).below(f("rally2.laptop-hdd.seeker")?);
    Ok(reads.and(writes).and(seeks))
}

/// One stick reads somewhat below its advertised maximum.
fn one_stick_is_near_its_advertisement(f: Figures<'_>) -> Answer {
    Ok(is(0.75).at_most(f("rally2.single.hdparm-t")? / f("rally2.single.advertised")?).below(1.0))
}
