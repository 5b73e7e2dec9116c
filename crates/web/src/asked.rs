//! The parts of a request: its path, its query and its body, or the refusal of what makes no sense.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::shared::Shared;
use crate::up::check_name;

pub(crate) type Asked = State<Arc<Shared>>;
pub(crate) type Named = Result<Path<String>, PathRejection>;

/// Parses the JSON that a request brings. A field that is not known is refused, and so is an array in place of an
/// object.
pub(crate) fn read<T: DeserializeOwned + Serialize>(body: &Bytes) -> Result<T, Refusal> {
    let mut sent: Value = serde_json::from_slice(body).map_err(unexpected)?;
    let read = serde_json::from_slice(body).or_else(|error| {
        write_whole(&mut sent);
        T::deserialize(&sent).map_err(|_| unexpected(error))
    })?;
    refuse_unknown(&sent, &json!(read))?;
    Ok(read)
}

fn unexpected(why: impl std::fmt::Display) -> Refusal {
    Refusal::bad(format!("the body is not what was expected: {why}"))
        .next("GET /api/v1/openapi.json has examples")
}

/// Writes numbers such as 7.0 as integers, which they are in the words of JSON Schema.
fn write_whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|one| one.fract() == 0.0 && one.abs() < 1e15);
            if let (true, Some(whole)) = (number.is_f64(), whole) {
                *value = (whole as i64).into();
            }
        }
        Value::Array(all) => all.iter_mut().for_each(write_whole),
        Value::Object(object) => object.values_mut().for_each(write_whole),
        _ => {}
    }
}

/// Refuses fields of `sent` that `understood`, which was read from it, does not have.
fn refuse_unknown(sent: &Value, understood: &Value) -> Result<(), Refusal> {
    match (sent, understood) {
        (Value::Object(sent), Value::Object(understood)) => {
            sent.iter().try_for_each(|(key, value)| match understood.get(key) {
                Some(known) => refuse_unknown(value, known),
                None => Err(unexpected(format_args!("unknown field `{key}`"))),
            })
        }
        (Value::Array(_), Value::Object(_)) => Err(unexpected("an array in place of an object")),
        _ => Ok(()),
    }
}

/// Returns the number in a query that has nothing but `name=NUMBER`; none without a query.
pub(crate) fn number(query: Option<&str>, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(None) };
    let value = query.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    match value.and_then(|value| value.parse().ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(Refusal::bad(format!("{query:?} means nothing here"))
            .next(format!("?{name}=NUMBER, or nothing"))),
    }
}

/// Returns the answer to a request for what is so already.
pub(crate) fn nothing_done(why: &str, command: &str) -> Value {
    json!({ "done": why, "changed": false, "command": command, "answer": "" })
}

/// Returns true if only the plan is asked for.
pub(crate) fn only_planned(query: Option<&str>) -> Result<bool, Refusal> {
    match query {
        None | Some("" | "plan=0") => Ok(false),
        Some("plan=1") => Ok(true),
        Some(other) => {
            Err(Refusal::bad(format!("{other:?} means nothing here")).next("?plan=1, or nothing"))
        }
    }
}

/// Returns the name of a volume in a path.
pub(crate) fn name_of(named: Named) -> Result<String, Refusal> {
    let Path(name) = named.map_err(|error| Refusal::bad(error.body_text()))?;
    check_name(&name).map(|()| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_integers_and_what_is_not_understood_is_refused() {
        let body = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let read = |text| read::<Vec<u64>>(&body(text)).map_err(|refusal| refusal.why);
        assert_eq!(read("[7.0, 8, 9e2]"), Ok(vec![7, 8, 900]));
        for wrong in ["[7.5]", "[-1.0]", "[1e300]", "{}", "["] {
            assert!(read(wrong).unwrap_err().contains("is not what was expected"), "{wrong}");
        }
        let unknown = |sent: Value| {
            let known = json!({ "fail": { "member": "a", "array": null } });
            refuse_unknown(&sent, &known).map_err(|refusal| refusal.why)
        };
        assert_eq!(unknown(json!({ "fail": { "member": "a" } })), Ok(()));
        let refused = unknown(json!({ "fail": { "member": "a", "forced": true } })).unwrap_err();
        assert!(refused.contains("unknown field `forced`"), "{refused}");
        assert!(unknown(json!({ "fail": ["a", null] })).is_err(), "serde takes it for the fields");
    }

    #[test]
    fn a_query_is_one_number_or_nothing() {
        let read = |query| number(query, "wait").map_err(|refusal| refusal.status.as_u16());
        assert_eq!(
            (read(None), read(Some("")), read(Some("wait=7"))),
            (Ok(None), Ok(None), Ok(Some(7)))
        );
        for wrong in ["wait", "wait=", "wait=-1", "wait=1&x=2", "x=1", "wait=99999999999999999999"]
        {
            assert_eq!(read(Some(wrong)), Err(400), "{wrong}");
        }
    }
}
