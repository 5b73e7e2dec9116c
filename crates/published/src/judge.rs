//! How well a predictor explains a study: the score of each row, and which claims hold.
//!
//! Invariants: a predictor is given the study without the rows it is judged on; whatever has no value says
//! why, and counts as not held, never as held.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::predicate::{NoAnswer, Predicate};
use crate::predictor::{NotModelled, Predictor};
use crate::study::{Asked, Role, Row, Study, Unit};
use crate::values::{mean, stands_for, value};

/// What became of a study.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The study's name.
    pub study: String,
    /// The study's title.
    pub title: String,
    /// A row each, in the file's order.
    pub rows: Vec<JudgedRow>,
    /// A claim each, in the file's order.
    pub claims: Vec<JudgedClaim>,
    /// What is not judged, by name, with the reason.
    pub passed_over: Vec<(String, String)>,
}

/// A published figure beside the model's.
#[derive(Debug, Clone)]
pub struct JudgedRow {
    /// The row's id.
    pub id: String,
    /// The device or the array.
    pub subject: String,
    /// What it may be used for.
    pub role: Role,
    /// Whether it was kept from the models.
    pub held_out: bool,
    /// The unit of all values.
    pub unit: Unit,
    /// The published figure.
    pub published: f64,
    /// The model's value, or why there is none.
    pub model: Result<f64, NotModelled>,
    /// What the model is off by, see [`score`].
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

/// Whether a predicate holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It does; with the comparison that came last.
    Holds(String),
    /// It does not; with the comparison that failed.
    Fails(String),
    /// It asks for what has no value, or for what cannot be computed.
    Undecided(NoAnswer),
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

/// Lets a predictor explain a study.
pub fn judge(study: &Study, predictor: &dyn Predictor) -> Judgement {
    let shown = study.without_predictions();
    let model = Model { study, shown, predictor, known: RefCell::default() };
    let rows = study.rows.iter().map(|row| model.row(row)).collect();
    let claims = study.claims.iter().map(|claim| {
        let published = |asked: &Asked| {
            let row = study.row(&asked.id).map(|row| row.published);
            row.ok_or_else(|| format!("{} was not published", asked.id))
        };
        let taken = RefCell::default();
        let modelled = |asked: &Asked| model.or_published(asked, &taken);
        let in_print = decide(study, &claim.predicate, &published);
        let in_model = decide(study, &claim.predicate, &modelled);
        JudgedClaim {
            id: claim.id.clone(),
            statement: claim.statement.clone(),
            predicate: claim.predicate.text().to_owned(),
            in_print,
            in_model,
            taken: taken.into_inner(),
        }
    });
    let claims = claims.collect();
    let (name, title) = (study.name.clone(), study.title.clone());
    Judgement { study: name, title, rows, claims, passed_over: study.passed_over.clone() }
}

/// |ln(model / published)|, and 0 inside of what the print may mean.
pub fn score(row: &Row, model: f64) -> f64 {
    if (row.low..=row.high).contains(&model) { 0.0 } else { (model / row.published).ln().abs() }
}

/// What a predictor says, each condition once.
struct Model<'a> {
    study: &'a Study,
    /// What the predictor sees of it.
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
        let condition = asked.condition().on(subject);
        let answer = self.predictor.predict(&self.shown, &condition).and_then(|value| {
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
    /// Whether its figure may stand in for a model's.
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

fn decide(
    study: &Study,
    predicate: &Predicate,
    of: &dyn Fn(&Asked) -> Result<f64, String>,
) -> Decision {
    match predicate.evaluate(&|id| value(study, id, of)) {
        Ok(evaluated) => {
            let seen = evaluated.seen.unwrap_or_else(|| evaluated.value.to_string());
            if evaluated.value.is_true() { Decision::Holds(seen) } else { Decision::Fails(seen) }
        }
        Err(why) => Decision::Undecided(why),
    }
}

impl Decision {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Holds(_))
    }
}

impl JudgedClaim {
    /// Whether the model has to hold it: what the figures contradict it need not, and what they do not
    /// decide (the figures behind it were not published) is taken at its word.
    pub fn is_published(&self) -> bool {
        !matches!(self.in_print, Decision::Fails(_))
    }
}

impl Judgement {
    /// How far off the rows of a kind are.
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

    /// Of the rows that a model is judged on.
    pub fn predictions(&self) -> Option<Summary> {
        self.summary(|role| role == Role::Prediction)
    }

    /// How many of these have no value.
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

    /// How many of the published claims the model holds, and how many there are.
    pub fn held(&self) -> (usize, usize) {
        let published = self.claims.iter().filter(|claim| claim.is_published());
        let held = published.clone().filter(|claim| claim.in_model.holds());
        (held.count(), published.count())
    }
}
