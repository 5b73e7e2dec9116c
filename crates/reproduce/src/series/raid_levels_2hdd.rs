//! Two IDE disks alone, concatenated, striped and mirrored, with one process and with several.

use super::Series;
use crate::claim::{Answer, Figures, NoValue, all, is};

pub(super) const SERIES: Series = Series {
    file: "raid-levels-2hdd.toml",
    text: include_str!("raid-levels-2hdd.toml"),
    claims: &[
        ("2hdd.c.raid1-p1-mean", mirror_in_the_mean),
        ("2hdd.c.raid1-p1-dd", mirror_writes),
        ("2hdd.c.raid1-p1-rest", mirror_in_the_rest),
        ("2hdd.c.raid1-p1-bonnie", mirror_in_bonnie),
        ("2hdd.c.raid0-50", stripes_gain_half),
        ("2hdd.c.raid1-single-read", stripes_read_faster),
    ],
};

const TESTS: [&str; 6] = ["bonnie", "dd-write", "cp-read", "cp-small", "untar", "cp-tree"];

/// Returns the time of a test on an array as a multiple of that on the average disk.
fn ratio(f: Figures<'_>, array: &str, test: &str) -> Result<f64, NoValue> {
    let processes = array.split('.').next_back().unwrap_or_default();
    Ok(f(&format!("2hdd.{array}.{test}"))? / f(&format!("2hdd.disk-average.{processes}.{test}"))?)
}

/// RAID1 with one process is 17.5 percent slower in the mean of percents.
fn mirror_in_the_mean(f: Figures<'_>) -> Answer {
    let ratios = TESTS.map(|test| ratio(f, "raid1.p1", test));
    let sum = ratios.into_iter().sum::<Result<f64, NoValue>>()?;
    Ok(is(0.165).at_most(sum / 6.0 - 1.0).at_most(0.195))
}

/// RAID1 with one process writes about 50 percent slower.
fn mirror_writes(f: Figures<'_>) -> Answer {
    Ok(is(0.4).at_most(ratio(f, "raid1.p1", "dd-write")? - 1.0).at_most(0.6))
}

/// RAID1 with one process, without dd and the small cp, is 5 to 10 percent slower in each other test.
fn mirror_in_the_rest(f: Figures<'_>) -> Answer {
    all(["bonnie", "cp-read", "untar", "cp-tree"].iter().map(|test| {
        let slower = ratio(f, "raid1.p1", test)? - 1.0;
        Ok(is(0.05).at_most(slower).at_most(0.11).of(&format!("t = '{test}'")))
    }))
}

/// RAID1 with one process is about 6 percent slower in bonnie.
fn mirror_in_bonnie(f: Figures<'_>) -> Answer {
    Ok(is(0.05).at_most(ratio(f, "raid1.p1", "bonnie")? - 1.0).at_most(0.075))
}

/// Some operation of two processes gains about 50 percent by striping.
fn stripes_gain_half(f: Figures<'_>) -> Answer {
    let mut most = f64::NEG_INFINITY;
    for test in TESTS {
        most = most.max(1.0 - ratio(f, "raid0.p2", test)?);
    }
    Ok(is(0.45).at_most(most).at_most(0.55))
}

/// With one process striping reads faster than RAID1.
fn stripes_read_faster(f: Figures<'_>) -> Answer {
    Ok(is(f("2hdd.raid0.p1.cp-read")?).below(f("2hdd.raid1.p1.cp-read")?))
}
