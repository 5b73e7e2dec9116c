//! Which array an order is for, and asking it on its shard.

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use braid_engine::redundant::{ControlError, Redundant};
use braid_md::Uuid;
use braid_shell::shown;
use braid_uring::Handle;
use braid_wiring::Array;

use super::md::MdArray;
use super::shard::{Local, Orders as Remote};
use crate::control::OrderAnswer;
use crate::metadata::Metadata;

/// How long an order may take: a superblock on every member, behind what is under way.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether `text` means an array: by its name, or its identifier.
pub(super) fn means(text: &str, name: &str, uuid: Option<&str>) -> bool {
    let given = text.parse::<Uuid>().map(|uuid| uuid.to_string());
    text == name || uuid.is_some_and(|uuid| given.as_deref() == Ok(uuid))
}

/// The array with superblocks that a device is to become a member of: the one that is named, the
/// one whose superblock it carries, or the only one.
pub(super) fn which_takes<'a>(
    arrays: &[&'a MdArray],
    path: &Path,
    named: Option<&str>,
) -> Result<&'a MdArray, OrderAnswer> {
    let uuid = |array: &MdArray| array.superblock.array_uuid;
    let is_named =
        |array: &&&MdArray, text: &str| means(text, &array.name, Some(&uuid(array).to_string()));
    match (arrays, named) {
        ([], _) => Err(OrderAnswer::refused(
            "only an array with superblocks takes members in: nothing would remember them\n  next: \
             `braid create` makes one",
        )),
        (_, Some(text)) => match arrays.iter().find(|array| is_named(array, text)) {
            Some(array) => Ok(array),
            None => Err(no_such_array(text, arrays.iter().map(|array| array.name.as_str()))),
        },
        ([array], None) => Ok(array),
        (several, None) => {
            let own = Metadata::read(path).ok().map(|own| own.superblock.array_uuid);
            let array = several.iter().find(|array| Some(uuid(array)) == own);
            array
                .copied()
                .ok_or_else(|| which_is_meant(arrays.iter().map(|array| array.name.as_str())))
        }
    }
}

/// The array with superblocks that has a member.
pub(super) fn which_has<'a>(
    arrays: &[&'a MdArray],
    member: &str,
    named: Option<&str>,
) -> Result<&'a MdArray, OrderAnswer> {
    let has = |array: &&&MdArray| array.leaves().iter().any(|leaf| leaf.label == member);
    match (named, arrays.iter().find(has)) {
        (None, Some(array)) => Ok(array),
        _ => which_takes(arrays, Path::new(member), named),
    }
}

pub(super) fn no_such_array<'a>(
    text: &str,
    there_are: impl Iterator<Item = &'a str>,
) -> OrderAnswer {
    let names = there_are.collect::<Vec<_>>().join(", ");
    OrderAnswer::refused(format!("the stack has no array {text:?}: there are {names}"))
}

pub(super) fn which_is_meant<'a>(there_are: impl Iterator<Item = &'a str>) -> OrderAnswer {
    let names: Vec<&str> = there_are.collect();
    OrderAnswer::refused(format!(
        "the stack has several arrays, and which one is meant is not said: {}\n  next: the same with \
         --array {}",
        names.join(", "),
        names.first().copied().unwrap_or("NAME")
    ))
}

/// Which of the arrays on the shard an order is for.
pub(super) enum Which {
    /// The one with this name or identifier, or the only one.
    Named(Option<String>),
    /// The one that has this member, of those with this name or identifier.
    Member(String, Option<String>),
}

impl Which {
    pub(super) fn member(member: &str, array: Option<String>) -> Which {
        Which::Member(member.to_owned(), array)
    }

    /// The arrays that are meant.
    pub(super) fn of<'a>(&self, local: &'a Local) -> Result<Vec<&'a Array>, OrderAnswer> {
        let all: Vec<&Array> = local.arrays.iter().map(Rc::as_ref).collect();
        let names = || all.iter().map(|one| one.name.as_str());
        if all.is_empty() {
            return Err(OrderAnswer::refused("the volume has no array that survives a failure"));
        }
        let (Which::Named(named) | Which::Member(_, named)) = self;
        let mut found = all.clone();
        if let Some(text) = named {
            found.retain(|one| means(text, &one.name, one.uuid.as_deref()));
            if found.is_empty() {
                return Err(no_such_array(text, names()));
            }
        }
        let Which::Member(label, _) = self else { return Ok(found) };
        let labels = |one: &&Array| -> Vec<String> {
            one.array.status().members.into_iter().map(|one| one.label).collect()
        };
        let there_are: Vec<String> = found.iter().flat_map(labels).collect();
        found.retain(|one| labels(one).contains(label));
        if found.is_empty() {
            return Err(OrderAnswer::refused(format!(
                "{} is no member of an array that survives a failure: there are {}",
                shown(label),
                shown(&there_are.join(", "))
            )));
        }
        Ok(found)
    }
}

/// Has `f` work on the one array that is meant.
pub(super) fn on_one<F, W>(remote: &Remote, which: Which, f: F) -> OrderAnswer
where
    F: FnOnce(Redundant) -> W + Send + 'static,
    W: Future<Output = Result<String, ControlError>> + 'static,
{
    ask(remote, move |handle, local, answer| match which.of(local).as_deref() {
        Ok([one]) => {
            let work = f(one.array.clone());
            handle.spawn(async move { send(&answer, answer_of(work.await)) });
        }
        Ok(several) => {
            send(&answer, which_is_meant(several.iter().map(|one| one.name.as_str())));
        }
        Err(refused) => send(&answer, refused.clone()),
    })
}

/// Has `f` work on all arrays, each with its number, or the one that is named. None is touched if one refuses before.
pub(super) fn on_each(
    remote: &Remote,
    array: Option<String>,
    f: impl Fn(usize, &Redundant) -> Result<String, ControlError> + Send + 'static,
) -> OrderAnswer {
    ask(remote, move |_, local, answer| {
        let found = match Which::Named(array).of(local) {
            Ok(found) => found,
            Err(refused) => return send(&answer, refused),
        };
        let several = found.len() > 1;
        let text = |one: &&Array| {
            let number = local.arrays.iter().position(|other| std::ptr::eq(&**other, *one));
            let text = f(number.unwrap_or_default(), &one.array)?;
            Ok(if several { format!("{}: {text}", one.name) } else { text })
        };
        let texts: Result<Vec<String>, ControlError> = found.iter().map(text).collect();
        send(&answer, answer_of(texts.map(|texts| texts.join("\n"))));
    })
}

pub(super) fn answer_of(result: Result<String, ControlError>) -> OrderAnswer {
    match result {
        Ok(text) => OrderAnswer::done(text),
        Err(error) => OrderAnswer::refused(error.to_string()),
    }
}

/// Calls `f` on the shard, unless whoever gave the order has gone, and waits for what it sends.
pub(super) fn ask(
    remote: &Remote,
    f: impl FnOnce(&Handle, &Local, Sender<OrderAnswer>) + Send + 'static,
) -> OrderAnswer {
    remote.carry_out(PATIENCE, f)
}

pub(super) fn send(to: &Sender<OrderAnswer>, answer: OrderAnswer) {
    // Whoever asked may have lost patience.
    let _ = to.send(answer);
}
