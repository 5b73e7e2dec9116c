//! The errors of predictions, by family of devices: the scores of published rows, by the rows' own marks.
//!
//! Every printed error of a prediction is computed here, from constants: `braid-reproduce` has the rows, and
//! one of its tests compares them. Rows that are *held out* set no constant and were unknown when the models
//! were made: only they show the error on other devices. Rows *in view* give a lower bound for it.

use std::fmt;

use braid_model::Kind;

/// Devices whose models have the same mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// USB sticks.
    Sticks,
    /// Hard disks.
    Disks,
    /// RAM disks, and caches of RAM.
    Memory,
    /// Devices of which only rates and a latency are known.
    Plain,
}

impl Family {
    /// All families, in the order in which they are listed.
    pub const ALL: [Family; 4] = [Self::Sticks, Self::Disks, Self::Memory, Self::Plain];

    /// The family of a device; `None` for a kind that is no device.
    pub fn of(kind: &Kind) -> Option<Family> {
        match kind {
            Kind::Flash(_) => Some(Self::Sticks),
            Kind::Disk(_) => Some(Self::Disks),
            Kind::Ram(_) => Some(Self::Memory),
            Kind::Plain(_) | Kind::Remote(_) => Some(Self::Plain),
            Kind::Bus(_) | Kind::Host(_) => None,
        }
    }

    /// The plural, as sentences have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sticks => "USB sticks",
            Self::Disks => "disks",
            Self::Memory => "RAM and caches",
            Self::Plain => "devices known by rates alone",
        }
    }
}

/// The evidence of a family's published rows about its predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// The family of the rows.
    pub family: Family,
    /// The scores of rows that were held out.
    pub held_out: Scores,
    /// The scores of rows that were in view.
    pub in_view: Scores,
}

/// Scores of rows, each |ln(model / published)|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores {
    /// The number of rows.
    pub rows: usize,
    /// The score within which they lie, up to whole hundredths; 0 for no rows. For [`ENOUGH`] held-out rows,
    /// nine of ten lie within it.
    pub within: f64,
}

/// The evidence of all families, in their order: that of the series in `crates/reproduce`.
pub const EVIDENCE: [Evidence; 4] = {
    const fn of(family: Family, held_out: (usize, f64), in_view: (usize, f64)) -> Evidence {
        Evidence {
            family,
            held_out: Scores { rows: held_out.0, within: held_out.1 },
            in_view: Scores { rows: in_view.0, within: in_view.1 },
        }
    }
    [
        of(Family::Sticks, (2, 0.32), (9, 0.14)),
        of(Family::Disks, (13, 0.38), (48, 0.3)),
        of(Family::Memory, (0, 0.0), (4, 0.17)),
        of(Family::Plain, (0, 0.0), (0, 0.0)),
    ]
};

/// Rows that are needed for "nine of ten".
pub const ENOUGH: usize = 10;

/// The error of predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct OffBy {
    /// The assumed |ln(model / real)|, in whole hundredths.
    pub log: f64,
    /// Which rows that rests on: a sentence without its full stop.
    pub grounds: String,
}

impl OffBy {
    /// [`OffBy::log`] in hundredths, rounded.
    pub fn percent(&self) -> u32 {
        u32::try_from((self.log * 100.0).round() as u64).unwrap_or(u32::MAX)
    }
}

/// A logarithm as people say it: a percentage, or a factor where percents mislead.
struct Within(f64);

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            log if log < 0.3 => write!(f, "{:.0} %", log * 100.0),
            log => write!(f, "a factor of {:.2} in either direction", log.exp()),
        }
    }
}

impl Evidence {
    /// The error of predictions of this family; `None` without a published row.
    pub fn off_by(&self) -> Option<OffBy> {
        let (name, held_out) = (self.family.name(), self.held_out);
        let (count, worst) = (held_out.rows, Within(held_out.within));
        let figures = format!("published figures of {name} that the models had not seen");
        if count >= ENOUGH {
            let grounds = format!("nine of ten of the {count} {figures} lie within {worst}");
            return Some(OffBy { log: held_out.within, grounds });
        }
        // Too few to leave out the worst, and rows in view are nearer than others would be.
        let Scores { rows: all, within } = self.in_view;
        let log = within.max(held_out.within);
        let seen = (all > 0).then(|| {
            format!(
                "the {all} that were known when the models were made lie within {}",
                Within(within)
            )
        });
        let grounds = match (count, seen) {
            (0, None) => return None,
            (0, Some(seen)) => format!(
                "the models had seen all published figures of {name}; {seen}, and others may be further off"
            ),
            (_, seen) => {
                let seen = seen.map_or(String::new(), |seen| format!("; {seen}"));
                format!(
                    "the {count} {figures} lie within {worst}, and are too few for nine of ten{seen}"
                )
            }
        };
        Some(OffBy { log, grounds })
    }
}

/// The error of predictions for arrays of these devices: the widest of their families, with the grounds of
/// each. For a family without a published row, the widest of all families is assumed.
pub fn off_by(families: impl IntoIterator<Item = Family>) -> OffBy {
    let mut families: Vec<Family> = families.into_iter().collect();
    families.sort_unstable();
    families.dedup();
    let widest = EVIDENCE.iter().filter_map(Evidence::off_by).map(|one| one.log);
    let widest = widest.fold(0.0, f64::max);
    let of = |family: &Family| {
        let mut evidence = EVIDENCE.iter().filter(|one| one.family == *family);
        evidence.next().and_then(Evidence::off_by).unwrap_or_else(|| OffBy {
            log: widest,
            grounds: format!(
                "no figure was published of {}: they are taken to be off by as much as the worst of the other kinds, {}",
                family.name(),
                Within(widest)
            ),
        })
    };
    let all: Vec<OffBy> = families.iter().map(of).collect();
    let log = all.iter().map(|one| one.log).fold(0.0, f64::max);
    let grounds: Vec<String> = all.into_iter().map(|one| one.grounds).collect();
    OffBy { log, grounds: grounds.join("; ") }
}

/// As [`off_by`], of the kinds of devices.
pub fn off_by_kinds<'a>(kinds: impl IntoIterator<Item = &'a Kind>) -> OffBy {
    off_by(kinds.into_iter().filter_map(Family::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(held_out: (usize, f64), in_view: (usize, f64)) -> OffBy {
        let scores = |(rows, within)| Scores { rows, within };
        let (held_out, in_view) = (scores(held_out), scores(in_view));
        let evidence = Evidence { family: Family::Disks, held_out, in_view };
        evidence.off_by().expect("there are rows")
    }

    #[test]
    fn rows_that_were_in_view_are_no_interval_of_their_own() {
        let said = of((0, 0.0), (2, 0.1));
        assert_eq!(said.percent(), 10);
        assert!(
            said.grounds.starts_with("the models had seen all published figures of disks"),
            "{said:?}"
        );
    }

    #[test]
    fn few_rows_that_were_held_out_are_counted_and_widen() {
        let said = of((4, 0.31), (20, 0.1));
        assert_eq!(said.percent(), 31);
        assert!(said.grounds.starts_with("the 4 published figures of disks"), "{said:?}");
        assert!(
            said.grounds.contains("a factor of 1.36 in either direction, and are too few"),
            "{said:?}"
        );
        assert!(said.grounds.ends_with("made lie within 10 %"), "{said:?}");
        assert_eq!(of((4, 0.02), (20, 0.1)).percent(), 10);
    }

    #[test]
    fn ten_rows_that_were_held_out_are_enough() {
        let said = of((20, 0.19), (20, 0.5));
        assert_eq!((said.percent(), said.grounds.contains("of the 20")), (19, true), "{said:?}");
    }

    #[test]
    fn a_family_without_rows_is_as_far_off_as_the_worst() {
        let worst = Family::ALL.map(|family| off_by([family]).percent()).into_iter().max();
        let said = off_by([Family::Plain]);
        assert_eq!(Some(said.percent()), worst);
        assert!(said.grounds.starts_with("no figure was published"), "{said:?}");
    }
}
