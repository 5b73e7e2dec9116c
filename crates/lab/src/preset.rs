//! Ready-made campaigns. A preset is a TOML file beside this one and an entry in [`PRESETS`].
//!
//! A preset that repeats a study names its members and leaves their devices open: the user names real ones
//! (`--member stick1=/dev/sdb`), or takes modelled ones (`--modelled`) that behave as the study's devices did
//! alone. Presets like `quick` compare any stacks instead (`--baseline`, `--subject`).

use std::path::Path;

use braid_stack::ByteSize;

use crate::campaign::{
    Campaign, MemberDecl, Source, SubjectDecl, parse_unchecked, read_draft, resolve_device,
};
use crate::error::LabError;
use crate::matrix::Planned;
use crate::settings::did_you_mean;

/// A ready-made campaign.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// The name on the command line.
    pub name: &'static str,
    /// Summary of one line.
    pub summary: &'static str,
    /// The campaign as TOML.
    pub toml: &'static str,
    /// The model of each member without a named device.
    pub modelled: &'static [(&'static str, &'static str)],
}

/// The study's two disks of IDE, as they were measured alone, on the PCI bus of their host.
const IDE_1: &str = "model(ide-1, size=8G, bus=pci)";
const IDE_2: &str = "model(ide-2, size=8G, bus=pci)";
/// An OCZ Rally2, as it was measured alone.
const RALLY2: &str = "model(rally2, size=2G, bus=usb2)";
/// An A-DATA stick, as it was measured alone; all of them at one controller.
const ADATA: &str = "model(adata, size=2G, bus=usb2)";
/// A SanDisk Cruzer Titanium, as it was measured alone, at each of two controllers.
const CRUZER_1: &str = "model(cruzer-titanium, size=2G, bus=usb2:0)";
const CRUZER_2: &str = "model(cruzer-titanium, size=2G, bus=usb2:1)";

/// Defines the presets: name, which is also the file's, summary, and members with their models.
macro_rules! presets {
    ($($name:literal: $summary:literal, [$($member:literal = $model:expr),*];)*) => {
        &[$(Preset {
            name: $name,
            summary: $summary,
            toml: include_str!(concat!("preset/", $name, ".toml")),
            modelled: &[$(($member, $model)),*],
        }),*]
    };
}

/// All presets, in the order in which they are listed.
pub const PRESETS: &[Preset] = presets! {
    "quick": "one member alone against layouts: sequential and random, read and write, 1 MiB and 4 KiB, \
              five repetitions, two minutes", [];
    "thorough": "as quick with more block sizes, ten seconds a trial and seven repetitions, enough for a \
                 95 % interval; about an hour and a half for two subjects", [];
    "failure": "arrays healthy, with a failed member, and while it is filled again: sequential and random, \
                reads and writes apart, and how long the recovery took; five repetitions of three \
                seconds", [];
    "crystal": "the profile that people post: sequential 1 MiB at depth 8 and 1, random 4 KiB at depth 32 \
                and 1, five repetitions of five seconds", [];
    "steady": "after SNIA's test specification: precondition, then rounds of random writes and mixes until \
               a window of five is steady; hours", [];
    "two-disk-levels": "two disks alone, linear, striped, mirrored and raid5: bonnie++, dd, cp, cp from the \
                        cache, untar, cp -r by one to four processes, four repetitions",
        ["disk1" = IDE_1, "disk2" = IDE_2];
    "rally2": "two USB sticks striped: hdparm, seeks, dd, read-ahead 256 to 2048 sectors, mount -o sync",
        ["stick1" = RALLY2, "stick2" = RALLY2];
    "rapiddisk": "RAM disks (braid's, zram, a loop on tmpfs) and a modelled disk, bare and cached: fio 1 MiB \
                  and 4 KiB at depth 32; of RAM disks dd of 512 bytes to 4 MiB, raw and on ext4 and ext2", [];
    "adata-4x": "four USB sticks striped with chunks of 64 and 128 KiB, and linear: hdparm, sysbench random \
                 reads and writes",
        ["stick1" = ADATA, "stick2" = ADATA, "stick3" = ADATA, "stick4" = ADATA];
    "cruzer-6x": "one to six USB sticks on one and two buses: dd over a sweep of chunk sizes and orders, \
                  then bonnie++ on six file systems",
        ["stick1" = CRUZER_1, "stick2" = CRUZER_1, "stick3" = CRUZER_1,
         "stick4" = CRUZER_1, "stick5" = CRUZER_1, "stick6" = CRUZER_1,
         "moved4" = CRUZER_2, "moved5" = CRUZER_2, "moved6" = CRUZER_2];
};

/// The subjects of a preset, and its changes. `None` and empty keep the preset's values.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The stack or NBD URI of the baseline, for presets without members.
    pub baseline: Option<String>,
    /// Names and stacks (or NBD URIs) to measure, for presets without members.
    pub subjects: Vec<(String, String)>,
    /// Devices (or stack expressions) of members, by name.
    pub members: Vec<(String, String)>,
    /// True for modelled members in place of all that are not named.
    pub modelled: bool,
    /// True for the kernel's md instead of braid, for the preset's own subjects.
    pub kernel: bool,
    /// Factor of times and amounts of data.
    pub scale: Option<f64>,
    /// Measured seconds of one trial.
    pub runtime_s: Option<f64>,
    /// Repetitions.
    pub repetitions: Option<u32>,
    /// Bytes used of each subject.
    pub region: Option<ByteSize>,
    /// Seed of orders, offsets and contents; `None` keeps the campaign's, or draws one.
    pub seed: Option<u64>,
    /// Only subjects whose name matches one of these patterns, with `*` for any letters.
    pub only: Vec<String>,
}

impl Preset {
    /// Returns the preset with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns true if its subjects are the user's: any stacks, compared with a baseline.
    pub fn compares_stacks(&self) -> bool {
        !self.toml.contains("[[subject]]")
    }

    /// Applies the choices to the preset.
    ///
    /// # Errors
    ///
    /// A member or subject is missing or unknown, or the campaign is invalid.
    pub fn campaign(&self, choices: &Choices) -> Result<Campaign, LabError> {
        let mut campaign = parse_unchecked(self.toml, &format!("the preset {}", self.name))?;
        if campaign.subjects.is_empty() {
            add_subjects(&mut campaign, choices)?;
        } else if choices.baseline.is_some() || !choices.subjects.is_empty() {
            let next = self.how_to_name_members(&campaign);
            return Err(campaign.refused("it has its subjects", next));
        }
        self.check_flags(&campaign, choices)?;
        if choices.modelled {
            for member in &mut campaign.members {
                let model = self.modelled.iter().find(|(name, _)| *name == member.name);
                if let Some((_, model)) = model {
                    member.device = (*model).to_owned();
                }
            }
        }
        if choices.kernel {
            campaign.subjects.iter_mut().for_each(use_kernel);
        }
        set_members(&mut campaign, choices)?;
        for MemberDecl { name, device, .. } in &campaign.members {
            if device.is_empty() {
                let next = self.how_to_name_members(&campaign);
                return Err(campaign.refused(format!("the device of {name} is not named"), next));
            }
            if choices.kernel && device.contains('(') {
                return Err(campaign.refused(
                    format!("--kernel: {name} is {device}, which the kernel has no device for"),
                    format!("give --member {name}=PATH, or leave --kernel out"),
                ));
            }
        }
        choices.apply(campaign)
    }

    /// Refuses flags that this preset does not use: an ignored flag would promise another measurement.
    fn check_flags(&self, campaign: &Campaign, choices: &Choices) -> Result<(), LabError> {
        let Choices { modelled, kernel, .. } = choices;
        let own = self.compares_stacks();
        if *modelled && self.modelled.is_empty() {
            return Err(campaign.refused(
                "--modelled: it has no members that could be modelled",
                match own {
                    true => "name models yourself: --baseline 'model(hdd, size=1G)'",
                    false => "leave --modelled out",
                },
            ));
        }
        if *kernel && campaign.members.is_empty() {
            return Err(campaign.refused(
                "--kernel: it has no members that the kernel could make arrays of",
                match own {
                    true => "name the kernel's array as a device: --subject md=/dev/md0",
                    false => "leave --kernel out",
                },
            ));
        }
        if *kernel && *modelled {
            return Err(campaign.refused(
                "--kernel and --modelled: the kernel's md takes whole devices and files, and no models",
                format!("leave one of the two out; with --kernel {}", name_all(campaign)),
            ));
        }
        Ok(())
    }

    fn how_to_name_members(&self, campaign: &Campaign) -> String {
        if campaign.members.is_empty() {
            return "run it as it is".to_owned();
        }
        let modelled = if self.modelled.is_empty() { "" } else { ", or take --modelled" };
        format!("{}{modelled}", name_all(campaign))
    }
}

/// Returns the flags that name every member.
fn name_all(campaign: &Campaign) -> String {
    let members = campaign.members.iter();
    let flags: Vec<String> =
        members.map(|member| format!("--member {}=DEVICE", member.name)).collect();
    format!("give {}", flags.join(" "))
}

impl Choices {
    /// Applies these changes to a campaign and checks it. Members, baseline and subjects belong to a preset and
    /// are ignored, except for members of the campaign.
    ///
    /// # Errors
    ///
    /// A value is out of its range, or no subject is left.
    pub fn apply(&self, mut campaign: Campaign) -> Result<Campaign, LabError> {
        if let Some(scale) = self.scale {
            if !(scale.is_finite() && scale > 0.0 && scale <= 1000.0) {
                return Err(campaign.refused(
                    format!("the scale is {scale}"),
                    "take a number above 0, such as 0.01 or 1/100",
                ));
            }
            campaign = campaign.scaled(scale);
        }
        campaign.runtime_s = self.runtime_s.unwrap_or(campaign.runtime_s);
        campaign.repetitions = self.repetitions.unwrap_or(campaign.repetitions);
        campaign.region = self.region.unwrap_or(campaign.region);
        campaign.seed = self.seed.or(campaign.seed);
        campaign.only.extend(self.only.iter().cloned());
        Planned::checked(&campaign).map(|planned| planned.campaign)
    }
}

/// Reads a campaign file, such as a printed preset whose members have no devices yet, and applies the choices
/// for members and amounts.
///
/// # Errors
///
/// The file cannot be read, is not TOML of this form, or is incomplete even with the choices.
pub fn read_chosen(path: &Path, choices: &Choices) -> Result<Campaign, LabError> {
    let mut campaign = read_draft(path)?;
    set_members(&mut campaign, choices)?;
    choices.apply(campaign)
}

/// Gives members their devices.
///
/// # Errors
///
/// A name is not that of a member.
fn set_members(campaign: &mut Campaign, choices: &Choices) -> Result<(), LabError> {
    for (name, device) in &choices.members {
        let found = campaign.members.iter_mut().find(|member| member.name == *name);
        match found {
            // A device on the command line is relative to the directory in which the command runs.
            Some(member) if campaign.working_dir.is_some() => {
                let here = std::env::current_dir();
                let here = here.map_err(LabError::file("resolve", Path::new(device)))?;
                member.device = resolve_device(device, &here);
            }
            Some(member) => member.device.clone_from(device),
            None => {
                let names: Vec<&str> = campaign.members.iter().map(|m| m.name.as_str()).collect();
                let hint = did_you_mean(name, names.iter().copied());
                return Err(campaign.refused(
                    format!("it has no member {name:?}{hint}"),
                    match names.len() {
                        0 => "it has no members at all; leave --member out".to_owned(),
                        _ => format!("its members are {}", names.join(", ")),
                    },
                ));
            }
        }
    }
    Ok(())
}

/// Replaces braid by the kernel: a level becomes an array of the kernel's md, a single member stays as it is.
fn use_kernel(subject: &mut SubjectDecl) {
    if let Source::Stack(text) = &subject.source {
        subject.source = match text.text().contains('(') {
            true => Source::Kernel(text.clone()),
            false => Source::Path(text.to_string()),
        };
    }
}

/// Adds baseline and subjects. The baseline is named `single`, or `baseline` if a subject has that name.
fn add_subjects(campaign: &mut Campaign, choices: &Choices) -> Result<(), LabError> {
    let Some(baseline) = &choices.baseline else {
        return Err(campaign.refused(
            "it compares stacks, and none is named",
            "--baseline STACK says with what, and --subject NAME=STACK what",
        ));
    };
    let taken = choices.subjects.iter().any(|(name, _)| name == "single");
    let name = if taken { "baseline" } else { "single" };
    campaign.subjects.push(SubjectDecl::new(name, Source::from_argument(baseline), true));
    for (name, stack) in &choices.subjects {
        campaign.subjects.push(SubjectDecl::new(name, Source::from_argument(stack), false));
    }
    Ok(())
}

/// Returns the preset `quick` with these subjects.
///
/// # Errors
///
/// As [`Preset::campaign`].
pub fn quick_campaign(baseline: &str, subjects: &[(String, String)]) -> Result<Campaign, LabError> {
    PRESETS[0].campaign(&Choices {
        baseline: Some(baseline.to_owned()),
        subjects: subjects.to_vec(),
        ..Choices::default()
    })
}

#[cfg(test)]
mod tests;
