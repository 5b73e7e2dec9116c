//! Which array an order is for, and asking it on its shard.

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use braid_engine::redundant::{ControlError, Redundant};
use braid_md::Uuid;
use braid_uring::Handle;
use braid_wiring::Array;

use super::md::MdArray;
use super::shard::Local;
use super::to_shard::Orders as Remote;
use crate::control::{Answer, ErrorCode};
use crate::failure::Failure;
use crate::metadata::Metadata;
use crate::why::Why;

/// Time limit of an order: a superblock on every member, behind the requests in flight.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns true if `text` is the name of an array, or its identifier.
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
) -> Result<&'a MdArray, Failure> {
    let uuid = |array: &MdArray| array.superblock.array_uuid;
    let is_named =
        |array: &&&MdArray, text: &str| means(text, &array.name, Some(&uuid(array).to_string()));
    let names = || arrays.iter().map(|array| array.name.clone()).collect();
    match (arrays, named) {
        ([], _) => Err(Failure::refused(
            "only an array with superblocks takes members in: nothing would remember them",
        )
        .next("`braid create` makes one")
        .code(ErrorCode::NoArray)),
        (_, Some(text)) => match arrays.iter().find(|array| is_named(array, text)) {
            Some(array) => Ok(array),
            None => Err(no_such_array(text, names())),
        },
        ([array], None) => Ok(array),
        (several, None) => {
            let own = Metadata::array_at(path);
            let array = several.iter().find(|array| Some(uuid(array)) == own);
            array.copied().ok_or_else(|| Why::WhichArray { arrays: names() }.into())
        }
    }
}

/// The array with superblocks that has a member.
pub(super) fn which_has<'a>(
    arrays: &[&'a MdArray],
    member: &str,
    named: Option<&str>,
) -> Result<&'a MdArray, Failure> {
    let has = |array: &&&MdArray| array.leaves().iter().any(|leaf| leaf.label == member);
    match (named, arrays.iter().find(has)) {
        (None, Some(array)) => Ok(array),
        _ => which_takes(arrays, Path::new(member), named),
    }
}

fn no_such_array(text: &str, arrays: Vec<String>) -> Failure {
    Why::NoSuchArray { array: text.to_owned(), arrays }.into()
}

/// No array of the volume is of the kind that an order needs.
pub(super) fn no_array(why: &str) -> Failure {
    Failure::refused(why).code(ErrorCode::NoArray)
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
    pub(super) fn of<'a>(&self, local: &'a Local) -> Result<Vec<&'a Array>, Failure> {
        let all: Vec<&Array> = local.arrays.iter().map(Rc::as_ref).collect();
        if all.is_empty() {
            return Err(no_array("the volume has no array that survives a failure"));
        }
        let (Which::Named(named) | Which::Member(_, named)) = self;
        let mut found = all.clone();
        if let Some(text) = named {
            found.retain(|one| means(text, &one.name, one.uuid.as_deref()));
            if found.is_empty() {
                return Err(no_such_array(text, names_of(&all)));
            }
        }
        let Which::Member(label, _) = self else { return Ok(found) };
        let labels = |one: &&Array| -> Vec<String> {
            one.array.status().members.into_iter().map(|one| one.label).collect()
        };
        let there_are: Vec<String> = found.iter().flat_map(labels).collect();
        found.retain(|one| labels(one).contains(label));
        if found.is_empty() {
            return Err(Why::NoSuchMember { member: label.clone(), members: there_are }.into());
        }
        Ok(found)
    }
}

fn names_of(arrays: &[&Array]) -> Vec<String> {
    arrays.iter().map(|one| one.name.clone()).collect()
}

/// Has `act` work on the one array that is meant, if `check` finds nothing against it. `check` returns a sentence if
/// the array is already as the order wants it.
pub(super) fn on_one<F, W>(
    remote: &Remote,
    which: Which,
    check: impl FnOnce(&Redundant) -> Result<Option<String>, ControlError> + Send + 'static,
    act: F,
) -> Answer
where
    F: FnOnce(Redundant) -> W + Send + 'static,
    W: Future<Output = Result<String, ControlError>> + 'static,
{
    let check = move |_: &Handle, local: &Local| {
        let found = which.of(local).map_err(Err)?;
        let [one] = found[..] else {
            return Err(Err(Why::WhichArray { arrays: names_of(&found) }.into()));
        };
        match check(&one.array) {
            Ok(None) => Ok(one.array.clone()),
            Ok(Some(text)) => Err(Ok(text)),
            Err(error) => Err(Err(of_array(error))),
        }
    };
    remote.carry_out(PATIENCE, check, move |handle, _, array, answer| {
        let work = act(array);
        handle.spawn(async move { send(&answer, work.await.map_err(of_array)) });
    })
}

/// Has `act` work on all arrays, each with its number, or on the one that is named. `check` comes first for all of
/// them, so that none is touched if one refuses.
pub(super) fn on_each<T: 'static>(
    remote: &Remote,
    array: Option<String>,
    check: impl Fn(&Redundant) -> Result<T, ControlError> + Send + 'static,
    act: impl Fn(usize, &Redundant, T) -> Result<String, ControlError> + Send + 'static,
) -> Answer {
    let check = move |_: &Handle, local: &Local| {
        let found = Which::Named(array).of(local).map_err(Err)?;
        let several = found.len() > 1;
        let number =
            |one: &Array| local.arrays.iter().position(|other| std::ptr::eq(&**other, one));
        let checked = |one: &Array| {
            let name = several.then(|| one.name.clone());
            Ok((number(one).unwrap_or_default(), name, one.array.clone(), check(&one.array)?))
        };
        let all: Result<Vec<_>, ControlError> = found.into_iter().map(checked).collect();
        all.map_err(|error| Err(of_array(error)))
    };
    remote.carry_out(PATIENCE, check, move |_, _, all, answer| {
        let text = |(number, name, array, checked): (usize, Option<String>, Redundant, T)| {
            let text = act(number, &array, checked)?;
            Ok(name.map_or(text.clone(), |name| format!("{name}: {text}")))
        };
        let texts: Result<Vec<String>, ControlError> = all.into_iter().map(text).collect();
        send(&answer, texts.map(|texts| texts.join("\n")).map_err(of_array));
    })
}

/// The failure of what an array does not do.
pub(super) fn of_array(error: ControlError) -> Failure {
    let failure = Failure::refused(&error);
    match error {
        ControlError::NoSuchMember { label, .. } => {
            failure.code(ErrorCode::NoSuchMember).value("member", label)
        }
        ControlError::LastCopy { label } => {
            failure.code(ErrorCode::LastCopy).value("member", label)
        }
        ControlError::InUse { label, state } => {
            failure.code(ErrorCode::MemberActive).value("member", label).value("state", state)
        }
        ControlError::Twice { label } => {
            failure.code(ErrorCode::AlreadyMember).value("device", label)
        }
        ControlError::TooSmall { label, has, needed } => failure
            .code(ErrorCode::TooSmall)
            .value("device", label)
            .value("bytes", has)
            .value("least_bytes", needed),
        ControlError::NoReplacement { label, .. } => {
            failure.code(ErrorCode::NotReplaceable).value("member", label)
        }
        ControlError::ReadOnly => failure.code(ErrorCode::ReadOnly),
        ControlError::Stopped => failure.code(ErrorCode::Stopped),
        ControlError::Unsuitable(_) => failure.code(ErrorCode::Unsuitable),
    }
}

pub(super) fn send(to: &Sender<Answer>, answer: Answer) {
    // The receiver may have given up.
    let _ = to.send(answer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_that_has_stopped_or_lacks_room_says_so_by_a_code() {
        let label = || "/dev/sdb".to_owned();
        let small = of_array(ControlError::TooSmall { label: label(), has: 1, needed: 2 });
        assert_eq!((small.code, &small.values["least_bytes"]), (ErrorCode::TooSmall, &2.into()));
        assert_eq!(of_array(ControlError::Stopped).code, ErrorCode::Stopped);
        let twice = of_array(ControlError::Twice { label: label() });
        assert_eq!(
            (twice.code, &twice.values["device"]),
            (ErrorCode::AlreadyMember, &label().into())
        );
    }
}
