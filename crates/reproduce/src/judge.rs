//! The judgement of a predictor on a study: the score of each row, and which claims hold.
//!
//! Invariants: a predictor is given the study without the rows it is judged on; whatever has no value says
//! why, and counts as not held, never as held.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::claim::{Check, NoValue};
use crate::null::NullModel;
use crate::series::check;
use crate::study::{Asked, Claim, NotModelled, Predictor, Role, Row, Study, Unit};
use crate::values::{mean, stands_for, value};

/// The judgement of a predictor on a study.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The study's name.
    pub study: String,
    /// The study's title.
    pub title: String,
    /// A row each, in the file's order.
    pub rows: Vec<JudgedRow>,
    /// The error of the ratio of two held-out rows, |ln(model / published)|, for each two arrays over the same members
    /// under the same conditions.
    pub ratios: Vec<f64>,
    /// A claim each, in the file's order, of those that have a function.
    pub claims: Vec<JudgedClaim>,
    /// Claims without a function: they are not judged.
    pub not_judged: Vec<Claim>,
    /// Rows, probes and claims of a kind that is not judged, by name, with the reason.
    pub passed_over: Vec<(String, String)>,
}

/// A published figure beside the model's.
#[derive(Debug, Clone)]
pub struct JudgedRow {
    /// The row's id.
    pub id: String,
    /// The device or the array.
    pub subject: String,
    /// The use that may be made of it.
    pub role: Role,
    /// True if it was kept from the models.
    pub held_out: bool,
    /// The unit of all values.
    pub unit: Unit,
    /// The published figure.
    pub published: f64,
    /// The model's value, or why there is none.
    pub model: Result<f64, NotModelled>,
    /// The model's error, see [`score`].
    pub score: Option<f64>,
}

/// A claim, in print and in the model.
#[derive(Debug, Clone)]
pub struct JudgedClaim {
    /// The claim's id.
    pub id: String,
    /// In words.
    pub statement: String,
    /// As an expression.
    pub predicate: String,
    /// By the published figures.
    pub in_print: Decision,
    /// By the model's values.
    pub in_model: Decision,
    /// Rows whose published figure stood in for a model's: context, and data sheets.
    pub taken: Vec<String>,
}

/// The decision about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It does; with the comparison that came last.
    Holds(String),
    /// It does not; with the comparison that failed.
    Fails(String),
    /// It asks for what has no value.
    Undecided(NoValue),
}

/// Scores of some rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Rows with a score.
    pub scored: usize,
    /// The mean of the scores.
    pub mean: f64,
    /// The median of the scores.
    pub median: f64,
}

/// Lets a predictor explain a study. Claims are judged whose text is that of a claim of the series.
pub fn judge(study: &Study, predictor: &dyn Predictor) -> Judgement {
    judge_by(study, predictor, &check)
}

/// The same, with `check` for the functions of claims by their texts.
pub fn judge_by(
    study: &Study,
    predictor: &dyn Predictor,
    check: &dyn Fn(&str) -> Option<Check>,
) -> Judgement {
    let shown = study.without_predictions();
    let model = Model { study, shown, predictor, known: RefCell::default() };
    let (mut claims, mut not_judged) = (Vec::new(), Vec::new());
    for claim in &study.claims {
        match check(&claim.predicate) {
            Some(check) => claims.push(model.claim(claim, check)),
            None => not_judged.push(claim.clone()),
        }
    }
    let rows: Vec<JudgedRow> = study.rows.iter().map(|row| model.row(row)).collect();
    Judgement {
        study: study.name.clone(),
        title: study.title.clone(),
        ratios: ratios(study, &rows),
        rows,
        claims,
        not_judged,
        passed_over: study.passed_over.clone(),
    }
}

/// The errors of the ratios of held-out rows.
fn ratios(study: &Study, judged: &[JudgedRow]) -> Vec<f64> {
    let known = study.rows.iter().zip(judged).filter_map(|(row, judged)| {
        let members = &study.array(&row.asked.subject).filter(|_| row.held_out)?.members;
        let signed = (*judged.model.as_ref().ok()? / row.published).ln();
        Some(((members, &row.asked.tool, &row.asked.params), signed))
    });
    let known: Vec<_> = known.collect();
    let pairs = known.iter().enumerate().flat_map(|(at, one)| {
        let others = known[at + 1..].iter().filter(move |other| other.0 == one.0);
        others.map(move |other| (one.1 - other.1).abs())
    });
    pairs.collect()
}

/// |ln(model / published)|, and 0 inside of what the print may mean.
pub fn score(row: &Row, model: f64) -> f64 {
    if (row.low..=row.high).contains(&model) { 0.0 } else { (model / row.published).ln().abs() }
}

/// The answers of a predictor, each condition asked once.
struct Model<'a> {
    study: &'a Study,
    /// The part that the predictor sees.
    shown: Study,
    predictor: &'a dyn Predictor,
    known: RefCell<BTreeMap<(String, String), Result<f64, NotModelled>>>,
}

impl Model<'_> {
    fn value(&self, asked: &Asked) -> Result<f64, NotModelled> {
        let derived = self.study.device(&asked.subject).filter(|device| device.is_derived);
        match derived {
            None => self.on(asked, &asked.subject),
            Some(derived) => {
                let devices: Vec<_> = stands_for(self.study, derived).collect();
                if devices.is_empty() {
                    return Err(NotModelled(format!("{} stands for no device", derived.name)));
                }
                mean(devices.iter().map(|device| self.on(asked, &device.name)))
            }
        }
    }

    fn on(&self, asked: &Asked, subject: &str) -> Result<f64, NotModelled> {
        let key = (asked.id.clone(), subject.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let on_it = Asked { subject: subject.to_owned(), ..asked.clone() };
        let answer = self.predictor.predict(&self.shown, &on_it).and_then(|value| {
            match value.is_finite() && value > 0.0 {
                true => Ok(value),
                false => Err(NotModelled(format!("the model's value is {value}"))),
            }
        });
        self.known.borrow_mut().insert(key, answer.clone());
        answer
    }

    /// The model's value; of what is context or a data sheet the published one where there is no other.
    fn or_published(&self, asked: &Asked, taken: &RefCell<Vec<String>>) -> Result<f64, String> {
        let row = self.study.row(&asked.id).filter(|row| row.is_background());
        match (self.value(asked), row) {
            (Ok(value), _) => Ok(value),
            (Err(_), Some(row)) => {
                let mut taken = taken.borrow_mut();
                if !taken.contains(&asked.id) {
                    taken.push(asked.id.clone());
                }
                Ok(row.published)
            }
            (Err(why), None) => Err(why.0),
        }
    }

    fn claim(&self, claim: &Claim, check: Check) -> JudgedClaim {
        let published = |asked: &Asked| {
            let row = self.study.row(&asked.id).map(|row| row.published);
            row.ok_or_else(|| format!("{} was not published", asked.id))
        };
        let taken = RefCell::default();
        let in_print = decide(self.study, check, &published);
        let in_model = decide(self.study, check, &|asked| self.or_published(asked, &taken));
        JudgedClaim {
            id: claim.id.clone(),
            statement: claim.statement.clone(),
            predicate: claim.predicate.clone(),
            in_print,
            in_model,
            taken: taken.into_inner(),
        }
    }

    fn row(&self, row: &Row) -> JudgedRow {
        let model = self.value(&row.asked);
        JudgedRow {
            id: row.asked.id.clone(),
            subject: row.asked.subject.clone(),
            role: row.role,
            held_out: row.held_out,
            unit: row.asked.unit,
            published: row.published,
            score: model.as_ref().ok().map(|model| score(row, *model)),
            model,
        }
    }
}

impl Row {
    /// Returns true if its figure may stand in for a model's.
    fn is_background(&self) -> bool {
        match self.role {
            Role::Context => true,
            Role::Calibration(_) => self.asked.tool == "datasheet",
            Role::Prediction => false,
        }
    }
}

impl Study {
    /// The study as a predictor sees it.
    pub fn without_predictions(&self) -> Self {
        let mut shown = self.clone();
        shown.rows.retain(|row| row.role != Role::Prediction);
        shown
    }
}

fn decide(study: &Study, check: Check, of: &dyn Fn(&Asked) -> Result<f64, String>) -> Decision {
    let figure = |id: &str| value(study, id, of).map_err(|why| NoValue { id: id.to_owned(), why });
    match check(&figure) {
        Ok(compared) if compared.holds => Decision::Holds(compared.text),
        Ok(compared) => Decision::Fails(compared.text),
        Err(why) => Decision::Undecided(why),
    }
}

impl Decision {
    /// Returns true if the claim holds.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Holds(_))
    }
}

impl JudgedClaim {
    /// Returns true if the model has to hold it: what the figures contradict it need not, and what they do not
    /// decide (the figures behind it were not published) is taken at its word.
    pub fn is_published(&self) -> bool {
        !matches!(self.in_print, Decision::Fails(_))
    }
}

impl Judgement {
    /// Summarises the scores of a kind of rows.
    pub fn summary(&self, of: impl Fn(Role) -> bool) -> Option<Summary> {
        let rows = self.rows.iter().filter(|row| of(row.role));
        let mut scores: Vec<f64> = rows.filter_map(|row| row.score).collect();
        scores.sort_by(f64::total_cmp);
        let scored = scores.len();
        let median =
            f64::midpoint(*scores.get(scored.wrapping_sub(1) / 2)?, *scores.get(scored / 2)?);
        let mean = scores.iter().sum::<f64>() / scored as f64;
        Some(Summary { scored, mean, median })
    }

    /// Summarises the scores of the rows that a model is judged on.
    pub fn predictions(&self) -> Option<Summary> {
        self.summary(|role| role == Role::Prediction)
    }

    /// Returns how many of these rows have no value.
    pub fn missing(&self) -> usize {
        let judged = self.rows.iter().filter(|row| row.role == Role::Prediction);
        judged.filter(|row| row.score.is_none()).count()
    }

    /// The row that is furthest off, of those that a model is judged on.
    pub fn worst(&self) -> Option<(&JudgedRow, f64)> {
        let judged = self.rows.iter().filter(|row| row.role == Role::Prediction);
        let scored = judged.filter_map(|row| Some((row, row.score?)));
        scored.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Returns how many of the published claims the model holds, and how many there are.
    pub fn held(&self) -> (usize, usize) {
        let published = self.claims.iter().filter(|claim| claim.is_published());
        let held = published.clone().filter(|claim| claim.in_model.holds());
        (held.count(), published.count())
    }
}

/// A study as it is told: a model's judgement, beside models without a mechanism.
pub struct Judged {
    /// The model's.
    pub model: Judgement,
    /// The scores of each null model's predictions.
    pub null: [(NullModel, Option<Summary>); 2],
}

impl Judged {
    /// Judges a predictor and the null models.
    pub fn of(study: &Study, predictor: &dyn Predictor) -> Self {
        let null = NullModel::ALL.map(|null| (null, judge(study, &null).predictions()));
        Self { model: judge(study, predictor), null }
    }
}
