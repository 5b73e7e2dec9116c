//! How far predictions are off, by family of devices: the scores of published rows, by the rows' own marks.
//!
//! Whatever is printed of the error of a prediction is computed here. Rows that are *held out* set no constant and were
//! not in view when the models were made: only they tell the error on other devices. Rows *in view* bound it from below.

use std::fmt;
use std::sync::LazyLock;

use braid_model::Kind;
use braid_published::{Predictor, Role, Study, Subject, built_in, score};

use crate::study::Models;

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
            Kind::Plain(_) => Some(Self::Plain),
            Kind::Bus(_) | Kind::Host(_) | Kind::Copies(_) | Kind::Tools(_) => None,
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

    /// The family of a published subject; `None` for a subject that no family has.
    fn of_subject(study: &Study, subject: &str) -> Option<Family> {
        let (names, is_cache) = match study.subject(subject)? {
            Subject::Device(device) => (vec![device.name.as_str()], false),
            Subject::Array(array) => {
                (array.members.iter().map(String::as_str).collect(), array.level == "cache")
            }
        };
        let kinds: Vec<_> =
            names.iter().filter_map(|name| study.device(name)).map(|one| &*one.kind).collect();
        let all = |kind: &str| kinds.iter().all(|one| *one == kind);
        match () {
            () if is_cache || all("ram") => Some(Self::Memory),
            () if all("usb-flash") => Some(Self::Sticks),
            () if all("hdd") => Some(Self::Disks),
            () => None,
        }
    }
}

/// The scores of the published rows of a family, each |ln(model / published)|, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Whose rows they are.
    pub family: Family,
    /// Of rows that were held out.
    pub held_out: Vec<f64>,
    /// Of rows that were in view.
    pub in_view: Vec<f64>,
}

/// Rows that are needed for "nine of ten".
pub const ENOUGH: usize = 10;

/// How far predictions are off.
#[derive(Clone, Debug, PartialEq)]
pub struct OffBy {
    /// |ln(model / real)| that is reckoned with, in whole hundredths.
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
            log => write!(f, "a factor of {:.2}", log.exp()),
        }
    }
}

/// The score at a place of an ascending list, up to whole hundredths; `None` of none.
fn at(ascending: &[f64], place: usize) -> Option<f64> {
    ascending.get(place).map(|score| (score * 100.0).ceil() / 100.0)
}

impl Evidence {
    /// How far predictions of this family are off; `None` without a published row.
    pub fn off_by(&self) -> Option<OffBy> {
        let (name, count) = (self.family.name(), self.held_out.len());
        let rows = format!("published rows of {name} that were held out");
        if count >= ENOUGH {
            let log = at(&self.held_out, count * 9 / 10)?;
            let grounds = format!("nine of ten of the {count} {rows} lie within {}", Within(log));
            return Some(OffBy { log, grounds });
        }
        // Too few to leave out the worst, and rows in view are nearer than others would be.
        let all = self.in_view.len();
        let seen = at(&self.in_view, all.wrapping_sub(1));
        let worst = at(&self.held_out, count.wrapping_sub(1));
        let log = seen.unwrap_or(0.0).max(worst.unwrap_or(0.0));
        let seen = seen.map(|seen| {
            format!(
                "the {all} that were in view when the models were made lie within {}",
                Within(seen)
            )
        });
        let grounds = match (worst, seen) {
            (None, None) => return None,
            (None, Some(seen)) => format!(
                "no published row of {name} was held out; {seen}, and others may be further off"
            ),
            (Some(worst), seen) => {
                let seen = seen.map_or(String::new(), |seen| format!("; {seen}"));
                format!(
                    "{count} {rows} lie within {}, too few for nine of ten{seen}",
                    Within(worst)
                )
            }
        };
        Some(OffBy { log, grounds })
    }
}

/// The evidence of all families, in their order.
pub fn evidence() -> &'static [Evidence] {
    static ALL: LazyLock<Vec<Evidence>> = LazyLock::new(|| gather(&built_in(), &Models));
    &ALL
}

/// The scores of these studies' rows to be predicted.
fn gather(studies: &[Study], models: &dyn Predictor) -> Vec<Evidence> {
    let none = |family| Evidence { family, held_out: Vec::new(), in_view: Vec::new() };
    let mut all = Family::ALL.map(none).to_vec();
    for study in studies {
        let shown = study.without_predictions();
        for row in study.rows.iter().filter(|row| row.role == Role::Prediction) {
            let family = Family::of_subject(study, &row.asked.subject);
            let model = models.predict(&shown, &row.asked.condition());
            let (Some(family), Ok(model)) = (family, model) else { continue };
            let mut of = all.iter_mut().filter(|one| one.family == family);
            let of = of.next().expect("all families are there");
            let scores = if row.held_out { &mut of.held_out } else { &mut of.in_view };
            scores.push(score(row, model));
        }
    }
    for one in &mut all {
        one.held_out.sort_by(f64::total_cmp);
        one.in_view.sort_by(f64::total_cmp);
    }
    all
}

/// How far predictions are off of what is made of these devices: the widest of their families, with the grounds of
/// each. A family without a published row is taken to be as far off as the widest of all.
pub fn off_by(families: impl IntoIterator<Item = Family>) -> OffBy {
    let mut families: Vec<Family> = families.into_iter().collect();
    families.sort_unstable();
    families.dedup();
    let widest = evidence().iter().filter_map(Evidence::off_by).map(|one| one.log);
    let widest = widest.fold(0.0, f64::max);
    let of = |family: &Family| {
        let mut evidence = evidence().iter().filter(|one| one.family == *family);
        evidence.next().and_then(Evidence::off_by).unwrap_or_else(|| OffBy {
            log: widest,
            grounds: format!(
                "no row was published of {}: they are taken to be off by as much as the worst of the other kinds, {}",
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

    fn of(held_out: &[f64], in_view: &[f64]) -> OffBy {
        let family = Family::Disks;
        let evidence = Evidence { family, held_out: held_out.to_vec(), in_view: in_view.to_vec() };
        evidence.off_by().expect("there are rows")
    }

    #[test]
    fn rows_that_were_in_view_are_no_interval_of_their_own() {
        let said = of(&[], &[0.01, 0.1]);
        assert_eq!(said.percent(), 10);
        assert!(said.grounds.starts_with("no published row of disks was held out"), "{said:?}");
    }

    #[test]
    fn few_rows_that_were_held_out_are_counted_and_widen() {
        let said = of(&[0.02, 0.05, 0.1, 0.31], &[0.1; 20]);
        assert_eq!(said.percent(), 31);
        assert!(said.grounds.starts_with("4 published rows of disks"), "{said:?}");
        assert!(said.grounds.contains("within a factor of 1.36, too few"), "{said:?}");
        assert!(said.grounds.ends_with("made lie within 10 %"), "{said:?}");
    }

    #[test]
    fn ten_rows_that_were_held_out_are_enough() {
        let held_out: Vec<f64> = (1..=20).map(|score| f64::from(score) / 100.0).collect();
        let said = of(&held_out, &[0.5; 20]);
        assert_eq!((said.percent(), said.grounds.contains("of the 20")), (19, true), "{said:?}");
    }

    #[test]
    fn a_family_without_rows_is_as_far_off_as_the_worst() {
        let worst = Family::ALL.map(|family| off_by([family]).percent()).into_iter().max();
        let said = off_by([Family::Plain]);
        assert_eq!(Some(said.percent()), worst);
        assert!(said.grounds.starts_with("no row was published"), "{said:?}");
    }
}
