//! Members as they are named: profiles, and devices, which are fitted or have a profile that was fitted before.
//!
//! Invariants: all that can be refused at a glance is refused before anything is measured; a device is written
//! to only if `--destroy` names it again.

use std::path::{Path, PathBuf};

use braid_model::{BusProfile, Kind, Profile};
use braid_predict::advise::Offer;
use braid_probe::{MemberFacts, find_duplicates};
use braid_shell::shell_path;

use super::super::{given, model};
use super::costs::{Costs, missing};
use crate::cli;
use braid_service::failure::{Context, Failure};

/// Maximum number of members; more would make too many layouts.
const MOST: usize = 12;

/// A device among the members.
pub(super) struct Device {
    /// Absolute path.
    pub(super) path: PathBuf,
    /// The device was named for overwriting.
    pub(super) destroy: bool,
}

/// Members of the layouts.
pub(super) struct Members {
    pub(super) offers: Vec<Offer>,
    /// For each offer the device, if it is one.
    pub(super) devices: Vec<Option<Device>>,
    /// Why what is known of them may not be believed.
    pub(super) doubts: Vec<String>,
    /// Prices and power consumption, if given.
    pub(super) prices: Option<Costs>,
    pub(super) watts: Option<Costs>,
}

/// A word of the command line.
struct Word<'a> {
    /// The device, or the profile.
    name: &'a str,
    /// The profile of a device, where one is given.
    profile: Option<&'a str>,
    count: usize,
    bus: Option<&'a str>,
}

/// A word that was looked at.
enum Seen {
    Profile(Profile),
    Device { facts: Box<MemberFacts>, doubts: Vec<String>, destroy: bool, profile: Option<Profile> },
}

impl Members {
    pub(super) fn of(options: &cli::Advise) -> Result<Members, Failure> {
        let words =
            options.members.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
        let count = words.iter().map(|word| word.count).sum::<usize>();
        if count > MOST {
            let text = format!("{count} members; at most {MOST} are compared");
            return Err(Failure::usage(text));
        }
        let named: Vec<_> = words.iter().map(|one| (one.name, one.profile, one.count)).collect();
        let prices = Costs::of("--price", None, &options.price, &named)?;
        if options.need == cli::AdviseNeed::Price && prices.is_none() {
            return Err(missing("--price", words[0].name));
        }
        let watts = Costs::of("--watts", Some("W"), &options.watts, &named)?;
        let destroy = named_to_be_destroyed(&words, &options.destroy)?;
        let seen: Vec<Seen> =
            words.iter().map(|word| word.look(&destroy)).collect::<Result<_, _>>()?;
        let (offers, devices, doubts) = (Vec::new(), Vec::new(), Vec::new());
        let lacks_size =
            |seen: &Seen| matches!(seen, Seen::Profile(Profile { capacity: None, .. }));
        if options.size.is_some() && !seen.iter().any(lacks_size) {
            eprintln!("braid: --size is not used: each member has a size of its own");
        }
        let mut members = Members { offers, devices, doubts, prices, watts };
        for (word, seen) in words.iter().zip(seen) {
            members.add(word, seen, options)?;
        }
        Ok(members)
    }

    fn add(&mut self, word: &Word<'_>, seen: Seen, options: &cli::Advise) -> Result<(), Failure> {
        let name = word.name.to_owned();
        let bus = word.bus.map(str::to_owned);
        let (profile, size, device) = match seen {
            Seen::Profile(profile) => {
                let size = profile.capacity.or(options.size.map(|size| size.0));
                let missing = || {
                    let text = format!("{name} has no capacity");
                    Failure::usage(text).next("give --size, such as --size 500G")
                };
                (profile, size.ok_or_else(missing)?, None)
            }
            Seen::Device { facts, doubts, destroy, profile } => {
                let path = facts.path.clone();
                let (size, device) = (facts.size, Device { path: path.clone(), destroy });
                let (profile, doubts) = match profile {
                    Some(profile) => (profile, doubts),
                    None => {
                        let fitted = model::fit::measure(*facts, doubts, destroy, options.time)?;
                        let shown = shell_path(&path);
                        eprintln!(
                            "braid: its profile is not kept; `braid model fit {shown} --output FILE.toml` keeps \
                             one, and {shown}=FILE.toml takes it instead of another fit"
                        );
                        (fitted.profile, fitted.doubts)
                    }
                };
                self.doubts.extend(doubts.iter().map(|doubt| format!("{name}: {doubt}")));
                (profile, size, Some(device))
            }
        };
        let of_bus = bus_of(word, &profile);
        let offer = Offer { name, profile, size, bus, of_bus };
        self.offers.extend(vec![offer; word.count]);
        self.devices.push(device);
        self.devices.resize_with(self.offers.len(), || None);
        Ok(())
    }
}

fn bus_of(word: &Word<'_>, profile: &Profile) -> BusProfile {
    let usual = profile.usual_bus();
    let of_profile = word.profile.or((!is_device(word.name)).then_some(word.name));
    match (&profile.kind, word.bus) {
        _ if of_profile.is_some_and(|name| braid_model::profile(name).is_some()) => usual,
        // What was fitted to a stick contains its bus; one that it shares is a limit nevertheless.
        (Kind::Flash(_), None) => BusProfile::default(),
        _ => BusProfile { turn_ns: 0, wrapper_ns: 0, ..usual },
    }
}

/// Those of the devices that `--destroy` names again; no two of the devices are one.
fn named_to_be_destroyed(words: &[Word<'_>], named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let devices = words.iter().filter(|word| is_device(word.name));
    let devices: Vec<PathBuf> = devices.map(|word| PathBuf::from(word.name)).collect();
    let devices = given::absolute(&devices)?;
    let destroy = given::named_again("--destroy", named, &devices)?;
    let duplicates = find_duplicates(&devices).context("cannot tell the members apart")?;
    match duplicates.first() {
        None => Ok(destroy),
        Some(pair) => {
            let (first, second) = (pair.first.display(), pair.second.display());
            let text = format!("{second} is refused: it has bytes in common with {first}");
            Err(Failure::refused(text).next("name each device once"))
        }
    }
}

impl Word<'_> {
    fn look(&self, destroy: &[PathBuf]) -> Result<Seen, Failure> {
        if !is_device(self.name) {
            return Ok(Seen::Profile(device_profile(self.name)?));
        }
        let profile = self.profile.map(device_profile).transpose()?;
        let path = given::absolute(&[PathBuf::from(self.name)])?.swap_remove(0);
        let destroy = destroy.contains(&path);
        let (facts, doubts) = model::fit::device(&path, destroy)?;
        let facts = Box::new(facts);
        Ok(Seen::Device { facts, doubts, destroy, profile })
    }
}

/// The profile of a device.
fn device_profile(name: &str) -> Result<Profile, Failure> {
    let profile = model::read(name)?;
    if profile.long_rates().is_none() {
        let text = format!("{name} is of kind {}, no device", profile.kind.name());
        return Err(Failure::usage(text).next("braid model list"));
    }
    Ok(profile)
}

/// `DEVICE[=PROFILE][@BUS]` or `PROFILE[*COUNT][@BUS]`.
fn parse(text: &str) -> Result<Word<'_>, Failure> {
    let alone = |name, bus| Word { name, profile: None, count: 1, bus };
    if is_device(text) {
        return Ok(alone(text, None));
    }
    let (rest, bus) = match text.rsplit_once('@') {
        Some((rest, bus)) if !bus.is_empty() => (rest, Some(bus)),
        _ => (text, None),
    };
    if is_device(rest) {
        return Ok(alone(rest, bus));
    }
    if let Some((name, profile)) = rest.split_once('=')
        && is_device(name)
    {
        return Ok(Word { profile: Some(profile), ..alone(name, bus) });
    }
    let Some((name, count)) = rest.rsplit_once('*') else { return Ok(alone(rest, bus)) };
    if is_device(name) {
        let text = format!("{text}: {name} is a device, and there is one of it");
        return Err(Failure::usage(text).next("name each device once"));
    }
    let number = count.parse().ok().filter(|count| (1..=MOST).contains(count));
    let wrong = || Failure::usage(format!("{text}: {count:?} is no count from 1 to {MOST}"));
    Ok(Word { count: number.ok_or_else(wrong)?, ..alone(name, bus) })
}

/// Returns whether `name` is the path of something other than a profile.
fn is_device(name: &str) -> bool {
    let path = Path::new(name);
    braid_model::profile(name).is_none()
        && path.exists()
        && path.extension().is_none_or(|ending| ending != "toml")
}
