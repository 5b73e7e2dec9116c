//! The choices that a campaign leaves to its first run: the seed, and the control of its baseline.
//!
//! Two equal files, sticks or pieces of memory are never equal for ever: one of them is ahead in every
//! repetition, and no repetition shows that the layout is not the reason. The control is the baseline a second
//! time in another place: their distance is the effect of a place here.
//!
//! Invariants:
//!
//! * choices that were made when results were begun are made the same way whenever the campaign continues;
//! * the control takes only paths that the campaign uses already: no other path is written;
//! * settling a settled campaign changes nothing.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;

use super::rooted::change_paths;
use super::{Campaign, Subject, SubjectDecl};
use crate::facts::{Member, Place, members_of, place_path};

/// Repetitions below which no winner is named, so that no control is needed.
const LEAST_REPETITIONS: u32 = 3;

/// Draws a seed from the system's randomness, below 2^63 as TOML's integers are.
pub(crate) fn draw_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 1
}

impl Campaign {
    /// Returns the campaign with its open choices made: as it was begun in `held`, else with a drawn `seed` and
    /// a control if a winner can be named.
    #[must_use]
    pub(crate) fn settled(&self, held: Option<&Self>, seed: Option<u64>) -> Self {
        let mut settled = self.clone();
        settled.seed = self.seed.or(held.map_or(seed, |held| held.seed));
        settled.control = self.control.or(held.map_or_else(
            || Some(self.repetitions >= LEAST_REPETITIONS && !self.rounds),
            |held| held.control,
        ));
        if settled.control == Some(true) && !self.subjects.iter().any(|one| one.control) {
            settled.subjects.extend(settled.control_of_baseline());
        }
        settled
    }

    /// Returns the control. `None` without a single baseline, or without another subject.
    fn control_of_baseline(&self) -> Option<SubjectDecl> {
        let all = self.expand();
        let mut baselines = all.iter().filter(|subject| subject.baseline);
        let baseline = baselines.next().filter(|_| baselines.next().is_none() && all.len() > 1)?;
        let mut name = format!("{} again", baseline.name);
        while all.iter().any(|subject| subject.name == name) {
            name += " (control)";
        }
        // As written: the campaign decides the base of its paths.
        let written = Self { working_dir: None, ..self.clone() }.expand();
        let baseline = written.iter().find(|subject| subject.baseline)?;
        let source = elsewhere(baseline, &written, self.working_dir.as_deref());
        Some(SubjectDecl { control: true, ..SubjectDecl::new(&name, source, false) })
    }
}

/// Returns the source of the subject on other files or devices of the campaign, each on hardware like that of
/// the original; if these are too few, the same source, measured at other times.
fn elsewhere(subject: &Subject, all: &[Subject], folder: Option<&Path>) -> super::Source {
    let paths_of = |subject: &Subject| -> Vec<String> {
        let members = members_of(&subject.source).into_iter();
        let paths = members.filter_map(|member| match member {
            Member::Path(path) => Some(path),
            _ => None,
        });
        paths.collect()
    };
    if subject.source.is_folder() {
        return subject.source.clone();
    }
    let own = paths_of(subject);
    let mut spare: Vec<String> = Vec::new();
    // Folders, and devices beside an array in another stack, are no members.
    for path in all.iter().filter(|one| one.source.stack().is_some()).flat_map(paths_of) {
        if !own.contains(&path) && !spare.contains(&path) {
            spare.push(path);
        }
    }
    let place = |path: &str| place_path(&folder.unwrap_or(Path::new("")).join(path));
    let mut chosen = Vec::new();
    for path in &own {
        let Some(found) = spare.iter().position(|other| are_alike(&place(path), &place(other)))
        else {
            return subject.source.clone();
        };
        chosen.push((path.clone(), spare.remove(found)));
    }
    let other = |path: &str| Some(chosen.iter().find(|(own, _)| own == path)?.1.clone());
    change_paths(&subject.source, &mut |path| other(path)).unwrap_or_else(|| subject.source.clone())
}

/// Returns true if two places are the same hardware, or disks of one make.
fn are_alike(one: &Place, other: &Place) -> bool {
    match (one, other) {
        (Place::Disk(one), Place::Disk(other)) => {
            let make = |disk: &crate::facts::Disk| (disk.model.clone(), disk.size_bytes);
            one.name == other.name || one.model.is_some() && make(one) == make(other)
        }
        (Place::Unknown(_), _) => false,
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::{Source, render_campaign};
    use crate::matrix::{Planned, parse_campaign};
    use crate::preset::quick_campaign;

    fn pair(folder: &Path) -> Campaign {
        let [a, b] = ["a.img", "b.img"].map(|name| {
            let path = folder.join(name);
            std::fs::write(&path, [0; 4096]).unwrap();
            path.display().to_string()
        });
        let subjects = [("pair".to_owned(), format!("raid0(chunk=64K, {a}, {b})"))];
        quick_campaign(&a, &subjects).unwrap()
    }

    #[test]
    fn the_control_is_the_baseline_on_the_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let campaign = pair(folder.path()).settled(None, Some(7));
        assert_eq!((campaign.seed, campaign.control), (Some(7), Some(true)));
        let subjects = campaign.expand();
        let control = subjects.last().unwrap();
        assert!(control.control && !control.baseline, "{control:?}");
        assert_eq!(control.name, "single again");
        let other = folder.path().join("b.img").display().to_string();
        assert_eq!(control.source, Source::Stack(other.as_str().into()));
        Planned::checked(&campaign).unwrap();
    }

    /// One file, memory, or a device without a similar one: the control is the same expression.
    #[test]
    fn where_there_is_no_other_place_it_is_the_same_again() {
        let subjects = [("two".to_owned(), "raid0(ram(64M), ram(64M))".to_owned())];
        let campaign = quick_campaign("ram(64M)", &subjects).unwrap().settled(None, None);
        let texts: Vec<String> =
            campaign.expand().iter().map(|one| one.source.to_string()).collect();
        assert_eq!(texts, ["ram(64M)", "raid0(ram(64M), ram(64M))", "ram(64M)"]);
        let subjects =
            [("cached".to_owned(), "cache(size=8M, mode=write-through, /no/a)".to_owned())];
        let campaign = quick_campaign("/no/a", &subjects).unwrap().settled(None, None);
        assert_eq!(campaign.expand()[2].source.to_string(), "/no/a");
    }

    #[test]
    fn what_was_decided_stays_decided() {
        let folder = tempfile::tempdir().unwrap();
        let open = pair(folder.path());
        let held = open.settled(None, Some(7));
        let text = render_campaign(&held).unwrap();
        assert_eq!(parse_campaign(&text, "copy").unwrap(), held, "{text}");
        assert_eq!(open.settled(Some(&held), Some(8)), held);
        assert_eq!(held.settled(None, Some(8)), held);
        // Begun by a version without controls.
        let older = Campaign { seed: Some(42), ..open.clone() };
        assert_eq!(open.settled(Some(&older), Some(8)), older);
        let named = Campaign { seed: Some(3), control: Some(false), ..open };
        assert_eq!(named.settled(None, Some(8)), named);
    }

    #[test]
    fn nothing_is_controlled_where_nobody_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let open = pair(folder.path());
        for without in [
            Campaign { repetitions: 2, ..open.clone() },
            Campaign { rounds: true, ..open.clone() },
            Campaign { subjects: open.subjects[..1].to_vec(), ..open.clone() },
        ] {
            let settled = without.settled(None, None);
            assert!(settled.expand().iter().all(|subject| !subject.control));
        }
        let mut two = open;
        two.subjects[1].baseline = true;
        assert_eq!(two.settled(None, None).subjects, two.subjects);
    }
}
