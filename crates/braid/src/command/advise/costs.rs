//! Prices and watts of members, as the user says them: `MEMBER=20EUR`.
//!
//! Invariant: each member has a figure, or none has; all are in one unit, which is the user's own word or none.

use std::path::absolute;

use braid_shell::shell_word;

use braid_service::failure::Failure;

/// A figure for each member.
pub(super) struct Costs {
    /// The word that stands with the figures; empty if there is none.
    pub(super) unit: String,
    each: Vec<f64>,
}

/// A member as a word of the command line names it: the device or profile, the profile of a device, how many.
pub(super) type Named<'a> = (&'a str, Option<&'a str>, usize);

/// One `--price` or `--watts`, as given.
struct Given<'a> {
    name: &'a str,
    figure: f64,
    unit: &'a str,
}

impl Costs {
    /// Figures of all members, or `None` if none is given. With `only`, that is the one word that may stand with them,
    /// and it may be left out.
    ///
    /// # Errors
    /// A text is no figure of a member, units differ, or a member has none.
    pub(super) fn of(
        option: &str,
        only: Option<&str>,
        texts: &[String],
        members: &[Named<'_>],
    ) -> Result<Option<Costs>, Failure> {
        let given = texts.iter().map(|text| parse(option, text));
        let mut given = given.collect::<Result<Vec<_>, Failure>>()?;
        for one in given.iter_mut().filter(|one| only == Some(one.unit)) {
            one.unit = "";
        }
        let Some(first) = given.first() else { return Ok(None) };
        for (index, one) in given.iter().enumerate() {
            let of = format!("{option} {}", shell_word(one.name));
            if let Some(only) = only.filter(|_| !one.unit.is_empty()) {
                return Err(Failure::usage(format!("{of} is in {:?}, not in {only}", one.unit)));
            }
            if one.unit != first.unit {
                let text = format!("{of} is in {:?}, and another in {:?}", one.unit, first.unit);
                return Err(Failure::usage(text).next(format!("give all {option} in one unit")));
            }
            if given[..index].iter().any(|other| is_same(other.name, one.name)) {
                return Err(Failure::usage(format!("{of} is given twice")));
            }
            let is_meant = |member: &Named<'_>| {
                is_same(member.0, one.name) || member.1.is_some_and(|name| is_same(name, one.name))
            };
            if !members.iter().any(is_meant) {
                let names: Vec<_> = members.iter().map(|member| shell_word(member.0)).collect();
                let text = format!("{of}: none of the members is called so");
                return Err(Failure::usage(text).note(format!("members: {}", names.join(", "))));
            }
        }
        let mut each = Vec::new();
        for (name, profile, count) in members {
            let by = |name: &str| given.iter().find(|one| is_same(one.name, name));
            let one =
                by(name).or_else(|| profile.and_then(by)).ok_or_else(|| missing(option, name))?;
            each.extend(vec![one.figure; *count]);
        }
        Ok(Some(Costs { unit: first.unit.to_owned(), each }))
    }

    /// The sum over these members.
    pub(super) fn sum(&self, members: &[usize]) -> f64 {
        members.iter().map(|index| self.each[*index]).sum()
    }
}

/// Why members cannot be compared by what they have not all.
pub(super) fn missing(option: &str, name: &str) -> Failure {
    let (name, example) = (shell_word(name), if option == "--price" { "20EUR" } else { "4.5" });
    Failure::usage(format!("{name} has no {option}, which each member needs"))
        .next(format!("add {option} MEMBER=FIGURE for each, such as {option} {name}={example}"))
}

fn is_same(one: &str, other: &str) -> bool {
    let path = |text: &str| absolute(text).ok();
    one == other || path(one).is_some_and(|one| path(other) == Some(one))
}

/// `MEMBER=20EUR`, `MEMBER='20 EUR'`, `MEMBER=€20`, `MEMBER=20`.
fn parse<'a>(option: &str, text: &'a str) -> Result<Given<'a>, Failure> {
    let wrong = |why: &str| {
        let next = format!("{option} MEMBER=FIGURE, such as {option} rally2=20EUR");
        Failure::usage(format!("{option} {}: {why}", shell_word(text))).next(next)
    };
    let (name, figure) = text.rsplit_once('=').ok_or_else(|| wrong("there is no ="))?;
    let is_digit = |one: char| one.is_ascii_digit() || one == '.';
    let number = figure.trim_matches(|one| !is_digit(one));
    // A sign belongs to no word.
    let (before, after) = figure.split_once(number).unwrap_or_default();
    let unit = if before.trim().is_empty() { after.trim() } else { before.trim() };
    let is_word = |unit: &str| !unit.contains(|one: char| one.is_control() || " -+,".contains(one));
    let is_one = before.trim().is_empty() || after.trim().is_empty();
    let number: Option<f64> = number.parse().ok();
    match number.filter(|number| number.is_finite() && *number > 0.0 && is_one && is_word(unit)) {
        Some(figure) => Ok(Given { name, figure, unit }),
        None => {
            Err(wrong("a figure is a number above 0, such as 20 or 19.90, and at most one word"))
        }
    }
}
