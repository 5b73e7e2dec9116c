//! Ready-made campaigns. A preset is a TOML file beside this one and one line in [`PRESETS`].

use crate::campaign::{Campaign, Source, Subject, check_campaign};
use crate::error::LabError;
use braid_stack::ByteSize;

/// A ready-made campaign without subjects.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// The name on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The campaign as TOML, all but the subjects.
    pub toml: &'static str,
}

/// All presets, in the order in which they are listed.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "quick",
        summary: "one member alone against a layout: sequential and random, read and write, \
                  1 MiB and 4 KiB, three repetitions, about a minute",
        toml: include_str!("preset/quick.toml"),
    },
    Preset {
        name: "thorough",
        summary: "as quick with more block sizes, ten seconds a trial and seven repetitions, \
                  enough for a 95 % interval; about an hour and a half for two subjects",
        toml: include_str!("preset/thorough.toml"),
    },
];

impl Preset {
    /// The preset with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// The preset with these subjects; the baseline is a stack expression or NBD URI, the others
    /// are a name with such an expression each. The baseline is named `single`, or
    /// `baseline` if a subject has taken that name.
    ///
    /// # Errors
    ///
    /// When the subjects do not make a campaign (none given, names repeated).
    pub fn campaign(
        &self,
        baseline: &str,
        subjects: &[(String, String)],
    ) -> Result<Campaign, LabError> {
        let mut campaign: Campaign =
            toml::from_str(self.toml).map_err(|error| LabError::CampaignSyntax {
                origin: format!("the preset {}", self.name),
                reason: error.to_string(),
            })?;
        let taken = subjects.iter().any(|(name, _)| name == "single");
        campaign.subjects.push(Subject {
            name: if taken { "baseline" } else { "single" }.to_owned(),
            source: Source::from_argument(baseline),
            baseline: true,
        });
        for (name, expression) in subjects {
            campaign.subjects.push(Subject {
                name: name.clone(),
                source: Source::from_argument(expression),
                baseline: false,
            });
        }
        if subjects.is_empty() {
            return Err(LabError::CampaignRefused {
                name: campaign.name,
                reason: "there is nothing to compare the baseline with".to_owned(),
                next: "give at least one --subject NAME=STACK".to_owned(),
            });
        }
        check_campaign(&campaign)?;
        Ok(campaign)
    }
}

/// What may be changed about a preset from the command line; `None` keeps the preset's value.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuickOptions {
    /// Measured seconds of one trial.
    pub runtime_s: Option<f64>,
    /// Repetitions.
    pub repetitions: Option<u32>,
    /// Bytes used of each subject.
    pub region: Option<ByteSize>,
    /// Seed of the shuffle.
    pub seed: Option<u64>,
}

impl QuickOptions {
    /// The campaign with these changes.
    ///
    /// # Errors
    ///
    /// When a value is out of its range.
    pub fn apply(&self, mut campaign: Campaign) -> Result<Campaign, LabError> {
        campaign.runtime_s = self.runtime_s.unwrap_or(campaign.runtime_s);
        campaign.repetitions = self.repetitions.unwrap_or(campaign.repetitions);
        campaign.region = self.region.unwrap_or(campaign.region);
        campaign.seed = self.seed.unwrap_or(campaign.seed);
        check_campaign(&campaign)?;
        Ok(campaign)
    }
}

/// The preset `quick` with these subjects: 8 workloads x subjects x 3 repetitions of one second.
///
/// # Errors
///
/// As [`Preset::campaign`].
pub fn quick_campaign(baseline: &str, subjects: &[(String, String)]) -> Result<Campaign, LabError> {
    PRESETS[0].campaign(baseline, subjects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::plan_trials;

    #[test]
    fn every_preset_makes_a_campaign() {
        let subjects = [("stripe".to_owned(), "raid0(a.img, b.img)".to_owned())];
        for preset in PRESETS {
            let campaign = preset.campaign("a.img", &subjects).unwrap();
            assert_eq!(campaign.name, preset.name);
            assert_eq!(Preset::find(preset.name).unwrap().name, preset.name);
            assert!(!plan_trials(&campaign).is_empty());
        }
    }

    #[test]
    fn a_subject_may_be_named_single() {
        let subjects = [("single".to_owned(), "b.img".to_owned())];
        let campaign = quick_campaign("a.img", &subjects).unwrap();
        assert_eq!(campaign.subjects[0].name, "baseline");
    }

    #[test]
    fn without_a_subject_there_is_nothing_to_compare() {
        let error = quick_campaign("a.img", &[]).unwrap_err().to_string();
        assert!(error.contains("--subject NAME=STACK"), "{error}");
    }

    #[test]
    fn changes_are_checked() {
        let subjects = [("stripe".to_owned(), "b.img".to_owned())];
        let campaign = quick_campaign("a.img", &subjects).unwrap();
        let change = QuickOptions { repetitions: Some(5), ..QuickOptions::default() };
        assert_eq!(change.apply(campaign.clone()).unwrap().repetitions, 5);
        let wrong = QuickOptions { runtime_s: Some(0.0), ..QuickOptions::default() };
        assert!(wrong.apply(campaign).is_err());
    }
}
