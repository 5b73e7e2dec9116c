//! The error of predictions in the rows of studies, by family of devices, which `braid_predict::off` has as
//! constants.

use braid_predict::off::{ENOUGH, Evidence, Family, Scores};

use crate::judge::score;
use crate::study::{Predictor, Role, Study, Subject};

/// Returns the evidence of all families, in their order, in the rows of these studies that are to be predicted.
pub fn evidence(studies: &[Study], models: &dyn Predictor) -> [Evidence; 4] {
    let mut scored = Vec::new();
    for study in studies {
        let shown = study.without_predictions();
        for row in study.rows.iter().filter(|row| row.role == Role::Prediction) {
            let family = family(study, &row.asked.subject);
            let model = models.predict(&shown, &row.asked);
            if let (Some(family), Ok(model)) = (family, model) {
                scored.push((family, row.held_out, score(row, model)));
            }
        }
    }
    Family::ALL.map(|family| {
        let of = |held_out: bool| {
            let of_both = scored.iter().filter(|one| one.0 == family && one.1 == held_out);
            of_both.map(|one| one.2).collect::<Vec<f64>>()
        };
        let (held_out, in_view) = (of(true), of(false));
        let nine_of_ten = (held_out.len() >= ENOUGH).then_some(held_out.len() * 9 / 10);
        Evidence { family, held_out: scores(held_out, nine_of_ten), in_view: scores(in_view, None) }
    })
}

/// Summarises the errors of ratios of held-out rows: nine of ten lie within it, if there are enough.
pub(crate) fn of_ratios<'r>(ratios: impl Iterator<Item = &'r f64>) -> Scores {
    let all: Vec<f64> = ratios.copied().collect();
    let nine_of_ten = (all.len() >= ENOUGH).then_some(all.len() * 9 / 10);
    scores(all, nine_of_ten)
}

/// Summarises scores by that at a place in ascending order, or else by the worst.
fn scores(mut all: Vec<f64>, place: Option<usize>) -> Scores {
    all.sort_by(f64::total_cmp);
    let within = match place {
        Some(place) => all.get(place),
        None => all.last(),
    };
    Scores { rows: all.len(), within: within.map_or(0.0, |score| (score * 100.0).ceil() / 100.0) }
}

/// The family of a published subject; `None` for a subject that no family has.
fn family(study: &Study, subject: &str) -> Option<Family> {
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
        () if is_cache || all("ram") => Some(Family::Memory),
        () if all("usb-flash") => Some(Family::Sticks),
        () if all("hdd") => Some(Family::Disks),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use braid_predict::off::EVIDENCE;

    use super::*;
    use crate::{Models, built_in};

    /// The program's constants for the error of a prediction are those of the rows.
    #[test]
    fn the_programs_constants_are_of_these_rows() {
        assert_eq!(
            EVIDENCE,
            evidence(&built_in(), &Models),
            "next: put the second list into EVIDENCE of crates/predict/src/off.rs"
        );
    }

    #[test]
    fn nine_of_ten_lie_within_where_there_are_enough() {
        let all: Vec<f64> = (1..=20).rev().map(|score| f64::from(score) / 100.0).collect();
        assert_eq!(scores(all.clone(), Some(18)), Scores { rows: 20, within: 0.19 });
        assert_eq!(scores(all, None), Scores { rows: 20, within: 0.2 });
        assert_eq!(scores(vec![0.011, 0.001], None), Scores { rows: 2, within: 0.02 });
        assert_eq!(scores(Vec::new(), None), Scores { rows: 0, within: 0.0 });
    }
}
