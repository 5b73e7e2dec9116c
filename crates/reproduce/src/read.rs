//! From the text of a file to a [`Study`], or to what is wrong with it.
//!
//! Keys without a use are ignored where they are notes of rows and claims, and kept as facts of
//! hosts, devices and arrays. What is needed and missing, and what contradicts something else, is refused
//! with the file, the entry and the key.

use std::collections::BTreeSet;

use braid_model::{Profile, profile};
use toml::{Table, Value};

use crate::params::{Param, Params};
use crate::study::{Array, Asked, CalibUse, Claim, Device, Probe, Role, Row, Study, Subject, Unit};

/// The fault of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}{reason}")]
pub struct ReadError {
    /// The file.
    pub file: String,
    /// The entry and the key, with a colon; empty of what concerns the whole file.
    pub place: String,
    /// The value that was refused, and what is wanted.
    pub reason: String,
}

/// Reads a file of this name.
///
/// # Errors
///
/// If it is no TOML, or one of the promises of a [`Study`] does not hold.
pub fn parse(file: &str, text: &str) -> Result<Study, ReadError> {
    let whole = |place: &str, reason: String| ReadError {
        file: file.to_owned(),
        place: place.to_owned(),
        reason,
    };
    let table: Table =
        text.parse().map_err(|error: toml::de::Error| whole("", format!("not TOML: {error}")))?;
    let entries = |section: &'static str, key: &'static str| -> Result<Vec<Entry<'_>>, ReadError> {
        let list = match table.get(section) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => {
                return Err(whole("", format!("[[{section}]] is wanted as a list of tables")));
            }
        };
        list.iter()
            .enumerate()
            .map(|(at, value)| Entry::new(file, section, key, at, value))
            .collect()
    };
    let (devices, arrays) = (entries("device", "name")?, entries("array", "name")?);
    let (mut rows, mut probes) = (entries("measurement", "id")?, entries("probe", "id")?);
    let mut claims = entries("claim", "id")?;
    once(devices.iter().chain(&arrays))?;
    once(rows.iter().chain(&probes))?;
    once(claims.iter())?;
    let mut passed_over = Vec::new();
    for entries in [&mut rows, &mut probes, &mut claims] {
        let why = |entry: &Entry<'_>| Some((entry.name.to_owned(), entry.not_judged()?));
        passed_over.extend(entries.iter().filter_map(why));
        entries.retain(|entry| entry.not_judged().is_none());
    }
    let mut study = Study {
        name: stem(file).to_owned(),
        title: String::new(),
        facts: Params::default(),
        devices: devices.iter().map(device).collect::<Result<_, _>>()?,
        arrays: Vec::new(),
        rows: Vec::new(),
        probes: Vec::new(),
        claims: Vec::new(),
        passed_over,
    };
    if let Some(Value::Table(source)) = table.get("source") {
        study.facts = facts(source, &[]);
        study.title = study.facts.text("title").unwrap_or_default().to_owned();
    }
    study.arrays = arrays.iter().map(|entry| array(entry, &study)).collect::<Result<_, _>>()?;
    study.rows = rows.iter().map(|entry| row(entry, &study)).collect::<Result<_, _>>()?;
    study.probes = probes.iter().map(|entry| probe(entry, &study)).collect::<Result<_, _>>()?;
    study.claims = claims.iter().map(claim).collect::<Result<_, _>>()?;
    if study.rows.is_empty() && study.probes.is_empty() {
        return Err(whole(
            "",
            "no [[measurement]] and no [[probe]] that is judged: nothing to be explained".into(),
        ));
    }
    Ok(study)
}

/// The name of a file without folders and ending.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

const ROLES: [Role; 3] = [Role::Calibration(CalibUse::Input), Role::Prediction, Role::Context];

/// A table of a list, and how errors name it.
struct Entry<'a> {
    file: &'a str,
    section: &'static str,
    /// The key by which it is named.
    key: &'static str,
    name: &'a str,
    table: &'a Table,
}

impl<'a> Entry<'a> {
    fn new(
        file: &'a str,
        section: &'static str,
        key: &'static str,
        at: usize,
        value: &'a Value,
    ) -> Result<Self, ReadError> {
        let name = value.get(key).and_then(Value::as_str).filter(|name| !name.is_empty());
        let named = value.as_table().zip(name).ok_or_else(|| ReadError {
            file: file.to_owned(),
            place: format!("{section} {}: ", at + 1),
            reason: format!("{key}: a text is wanted"),
        });
        named.map(|(table, name)| Self { file, section, key, name, table })
    }

    /// Why it is passed over: a unit, a role or a claim of a kind that others have and that is not judged here.
    fn not_judged(&self) -> Option<String> {
        let is_of = |key: &str| self.table.get(key).and_then(Value::as_str);
        let unit = is_of("norm_unit").filter(|unit| Unit::parse(unit).is_none());
        let role = is_of("role").filter(|role| ROLES.iter().all(|known| known.text() != *role));
        let claim = is_of("predicate").filter(|predicate| predicate.trim().is_empty());
        match (unit, role.filter(|_| self.section == "measurement"), claim) {
            (Some(unit), _, _) => Some(format!("norm_unit {unit:?} is none of B/s, s, 1/s")),
            (_, Some(role), _) => {
                Some(format!("role {role:?} is none of calibration, prediction, context"))
            }
            (_, _, Some(_)) => Some("its predicate is empty".to_owned()),
            (None, None, None) => None,
        }
    }

    fn refuse(&self, key: &str, reason: impl std::fmt::Display) -> ReadError {
        ReadError {
            file: self.file.to_owned(),
            place: format!("{} {:?}: ", self.section, self.name),
            reason: format!("{key}: {reason}"),
        }
    }

    fn optional_text(&self, key: &str) -> Result<Option<&'a str>, ReadError> {
        let text =
            |value: &'a Value| value.as_str().ok_or_else(|| self.refuse(key, "a text is wanted"));
        self.table.get(key).map(text).transpose()
    }

    fn text(&self, key: &str) -> Result<&'a str, ReadError> {
        self.optional_text(key)?.ok_or_else(|| self.refuse(key, "missing"))
    }

    fn optional_number(&self, key: &str) -> Result<Option<f64>, ReadError> {
        let number = |value: &Value| {
            let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
            let number = number.filter(|number| number.is_finite());
            number.ok_or_else(|| self.refuse(key, "a number is wanted"))
        };
        self.table.get(key).map(number).transpose()
    }

    /// Yes or no; no where the key is missing.
    fn flag(&self, key: &str) -> Result<bool, ReadError> {
        let flag = |value: &Value| {
            value.as_bool().ok_or_else(|| self.refuse(key, "true or false is wanted"))
        };
        self.table.get(key).map_or(Ok(false), flag)
    }

    fn params(&self, key: &str) -> Result<Params, ReadError> {
        match self.table.get(key) {
            None => Ok(Params::default()),
            Some(Value::Table(table)) => Ok(facts(table, &[])),
            Some(_) => Err(self.refuse(key, "a table is wanted")),
        }
    }

    /// The value of this text in a closed list.
    fn one_of<T: Copy>(&self, key: &str, text: &str, list: &[(&str, T)]) -> Result<T, ReadError> {
        let found = list.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
            self.refuse(key, format!("{text:?} is none of {}", names.join(", ")))
        })
    }
}

/// Refuses a second entry of one name.
fn once<'e>(entries: impl Iterator<Item = &'e Entry<'e>>) -> Result<(), ReadError> {
    let mut names = BTreeSet::new();
    for entry in entries {
        if !names.insert(entry.name) {
            return Err(entry.refuse(entry.key, "there is another one of this name"));
        }
    }
    Ok(())
}

/// Every value of a table but those of these keys, flat.
fn facts(table: &Table, but: &[&str]) -> Params {
    fn flatten(name: &str, value: &Value, out: &mut Vec<(String, Param)>) {
        let param = match value {
            Value::Integer(value) => Param::Integer(*value),
            Value::Float(value) if value.is_finite() => Param::Float(*value),
            Value::Boolean(value) => Param::Flag(*value),
            Value::Table(table) => {
                return table
                    .iter()
                    .for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, out));
            }
            Value::Array(list) => {
                let list = list.iter().enumerate();
                return list.for_each(|(at, value)| flatten(&format!("{name}.{at}"), value, out));
            }
            Value::String(text) => Param::Text(text.clone()),
            Value::Float(_) | Value::Datetime(_) => Param::Text(value.to_string()),
        };
        out.push((name.to_owned(), param));
    }
    let mut out = Vec::new();
    let kept = table.iter().filter(|(key, _)| !but.contains(&key.as_str()));
    kept.for_each(|(key, value)| flatten(key, value, &mut out));
    out.into_iter().collect()
}

fn device(entry: &Entry<'_>) -> Result<Device, ReadError> {
    let facts = facts(entry.table, &[]);
    let is_derived = entry.flag("derived")?;
    Ok(Device {
        name: entry.name.to_owned(),
        kind: entry.text("kind")?.to_owned(),
        is_derived,
        profile: own_profile(entry)?,
        facts,
    })
}

/// The profile that an entry has in itself: one of braid's, which `like` names, with some other constants.
fn own_profile(entry: &Entry<'_>) -> Result<Option<Profile>, ReadError> {
    let own = match entry.table.get("profile") {
        None => return Ok(None),
        Some(Value::Table(own)) => own,
        Some(_) => return Err(entry.refuse("profile", "a table is wanted")),
    };
    let like = own.get("like").and_then(Value::as_str);
    let like = like.and_then(profile).ok_or_else(|| {
        entry.refuse("profile.like", "the name of a profile that comes with braid is wanted")
    })?;
    let inherited = |one: &braid_model::Constant| {
        let value = Value::Array(vec![one.value.into(), one.source.clone().into()]);
        (one.name.clone(), value)
    };
    let mut constants: Table = like.constants.iter().map(inherited).collect();
    let others = own.iter().filter(|(key, _)| !matches!(key.as_str(), "like" | "capacity"));
    constants.extend(others.map(|(key, value)| (key.clone(), value.clone())));
    let label = entry.optional_text("label")?.unwrap_or(entry.name);
    let mut whole = Table::new();
    whole.insert("kind".to_owned(), like.kind.name().into());
    whole.insert("label".to_owned(), label.into());
    if let Some(capacity) = own.get("capacity") {
        whole.insert("capacity".to_owned(), capacity.clone());
    }
    whole.insert("constant".to_owned(), constants.into());
    let profile = Profile::parse(&whole.to_string());
    profile.map(Some).map_err(|why| entry.refuse("profile", why))
}

fn array(entry: &Entry<'_>, study: &Study) -> Result<Array, ReadError> {
    let level = entry.text("level")?;
    let level = level.split([' ', ',', '(']).next().unwrap_or(level).to_owned();
    let wanted = || entry.refuse("members", "a list of names of devices is wanted");
    let list = entry.table.get("members").and_then(Value::as_array).ok_or_else(wanted)?;
    let name = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wanted);
    let members: Vec<String> = list.iter().map(name).collect::<Result<_, _>>()?;
    if members.is_empty() {
        return Err(wanted());
    }
    match members.iter().find(|name| study.device(name).is_none_or(|device| device.is_derived)) {
        Some(name) => {
            Err(entry.refuse("members", format!("{name:?} is not a device of this file")))
        }
        None => {
            let facts = facts(entry.table, &["members"]);
            Ok(Array { name: entry.name.to_owned(), level, members, facts })
        }
    }
}

fn asked(entry: &Entry<'_>, study: &Study, unit: Unit) -> Result<Asked, ReadError> {
    let subject = entry.text("subject")?;
    let found = study.subject(subject).ok_or_else(|| {
        entry
            .refuse("subject", format!("{subject:?} is neither a device nor an array of this file"))
    })?;
    let kind = entry.optional_text("subject_kind")?;
    if kind.is_some_and(|kind| (kind == "device") != matches!(found, Subject::Device(_))) {
        let is = if matches!(found, Subject::Device(_)) { "a device" } else { "no device" };
        return Err(entry.refuse("subject_kind", format!("{subject:?} is {is}")));
    }
    Ok(Asked {
        id: entry.name.to_owned(),
        subject: subject.to_owned(),
        tool: entry.text("tool")?.to_owned(),
        params: entry.params("params")?,
        metric: entry.text("metric")?.to_owned(),
        unit,
    })
}

fn unit(entry: &Entry<'_>, text: &str) -> Result<Unit, ReadError> {
    Unit::parse(text)
        .ok_or_else(|| entry.refuse("norm_unit", format!("{text:?} is none of B/s, s, 1/s")))
}

fn row(entry: &Entry<'_>, study: &Study) -> Result<Row, ReadError> {
    let published = entry.optional_number("norm_value")?;
    let published = published.ok_or_else(|| entry.refuse("norm_value", "missing"))?;
    if published <= 0.0 {
        return Err(entry.refuse("norm_value", format!("{published} is not above 0")));
    }
    let low = entry.optional_number("norm_low")?.unwrap_or(published);
    let high = entry.optional_number("norm_high")?.unwrap_or(published);
    if low > high {
        return Err(entry.refuse("norm_low", format!("{low} is above norm_high, {high}")));
    }
    if !(low..=high).contains(&published) {
        let range = format!("{published} is outside of norm_low to norm_high, {low} to {high}");
        return Err(entry.refuse("norm_value", range));
    }
    let calib_use = entry.one_of(
        "calib_use",
        entry.optional_text("calib_use")?.unwrap_or("input"),
        &[("input", CalibUse::Input), ("check", CalibUse::Check), ("avoid", CalibUse::Avoid)],
    )?;
    let roles = [Role::Calibration(calib_use), Role::Prediction, Role::Context];
    let role = entry.one_of("role", entry.text("role")?, &roles.map(|role| (role.text(), role)))?;
    let held_out = entry.flag("held_out")?;
    if held_out && role != Role::Prediction {
        let why = format!("a row of role {:?} is not kept from the models", role.text());
        return Err(entry.refuse("held_out", why));
    }
    let unit = unit(entry, entry.text("norm_unit")?)?;
    Ok(Row { asked: asked(entry, study, unit)?, published, low, high, role, held_out })
}

fn probe(entry: &Entry<'_>, study: &Study) -> Result<Probe, ReadError> {
    let unit = match entry.optional_text("norm_unit")? {
        Some(text) => unit(entry, text)?,
        None => {
            let metric = entry.text("metric")?;
            let unknown =
                || entry.refuse("metric", format!("{metric:?} has no known unit; give norm_unit"));
            Unit::of_metric(metric).ok_or_else(unknown)?
        }
    };
    Ok(Probe { asked: asked(entry, study, unit)? })
}

fn claim(entry: &Entry<'_>) -> Result<Claim, ReadError> {
    Ok(Claim {
        id: entry.name.to_owned(),
        statement: entry.optional_text("statement")?.unwrap_or_default().to_owned(),
        predicate: entry.text("predicate")?.to_owned(),
        threshold: entry.optional_text("threshold")?.unwrap_or_default().to_owned(),
    })
}
