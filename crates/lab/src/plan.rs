//! What a campaign would do, before it does it: the matrix, what is written where, how long.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::campaign::{Campaign, Subject};
use crate::facts::{note_on_sharing, place_members};
use crate::matrix::{Cell, Trial, plan_matrix, plan_trials};
use crate::safety::plan_overwrites;

mod render;
mod spread;
mod work;

pub use render::render_plan;
use work::{Work, plan_work};

/// A campaign, worked out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The campaign.
    pub campaign: Campaign,
    /// Its subjects.
    pub subjects: Vec<Subject>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// The trials in their order.
    pub trials: Vec<Trial>,
    /// What would be overwritten: paths and NBD URIs.
    pub overwrites: Vec<String>,
    /// What each member would be written, by its text in the campaign.
    pub written: BTreeMap<String, Written>,
    /// Estimated time.
    pub duration: Duration,
    /// Sentences about members that share hardware, with the subject's name.
    pub notes: Vec<(String, String)>,
}

/// What a member would be written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Written {
    /// Bytes that are known beforehand.
    pub bytes: f64,
    /// Seconds in which it is written as fast as it goes.
    pub seconds: f64,
}

/// Works a campaign out. Reads `/sys` and asks members for their sizes; writes nothing.
pub fn plan_campaign(campaign: &Campaign) -> Plan {
    let subjects = campaign.expand();
    let cells = plan_matrix(campaign);
    let trials = plan_trials(campaign);
    let Work { duration, written } = plan_work(campaign, &subjects, &cells);
    let notes = subjects
        .iter()
        .filter_map(|subject| {
            let note = note_on_sharing(&place_members(&subject.source))?;
            Some((subject.name.clone(), note))
        })
        .collect();
    Plan {
        duration,
        overwrites: plan_overwrites(campaign),
        written,
        campaign: campaign.clone(),
        subjects,
        cells,
        trials,
        notes,
    }
}

#[cfg(test)]
mod tests;
