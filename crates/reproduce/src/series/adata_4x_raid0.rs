//! Four A-DATA sticks in raid0 beside a disk.

use super::Series;
use crate::claim::{Answer, Figures, is};

pub(super) const SERIES: Series = Series {
    file: "adata-4x-raid0.toml",
    text: include_str!("adata-4x-raid0.toml"),
    claims: &[
        ("adata.c.sublinear", sublinear),
        ("adata.c.1000rps", thousand_reads),
        ("adata.c.rndrd-vs-hdd", reads_beside_the_disk),
        ("adata.c.hdd-90", disk_keeps_its_rate),
        ("adata.c.usb-20th", writes_are_a_twentieth),
    ],
};

/// Four sticks read sequentially faster than one, but clearly below four times.
fn sublinear(f: Figures<'_>) -> Answer {
    Ok(is(2.0).below(f("adata.raid0-64k.hdparm-t")? / f("adata.single.hdparm-t")?).below(4.0))
}

/// The array passes 1000 random reads per second.
fn thousand_reads(f: Figures<'_>) -> Answer {
    Ok(is(f("adata.raid0-64k.rndrd.iops")?).above(1000.0))
}

/// Random reads of the array come several times as fast as those of the disk.
fn reads_beside_the_disk(f: Figures<'_>) -> Answer {
    Ok(is(f("adata.raid0-64k.rndrd")? / f("adata.hdd.rndrd")?).above(5.0))
}

/// The disk keeps at least 90 percent of its random read rate when it writes.
fn disk_keeps_its_rate(f: Figures<'_>) -> Answer {
    Ok(is(f("adata.hdd.rndwr.iops")? / f("adata.hdd.rndrd.iops")?).at_least(0.9))
}

/// Random writes of the array fall below a twentieth of its random reads.
fn writes_are_a_twentieth(f: Figures<'_>) -> Answer {
    Ok(is(f("adata.raid0-64k.rndwr.iops")? / f("adata.raid0-64k.rndrd.iops")?).below(1.0 / 20.0))
}
