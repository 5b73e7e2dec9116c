//! The parts of a request: its path, its query and its body, or the refusal of what makes no sense.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::shared::Shared;
use crate::up::check_name;

pub(crate) type Asked = State<Arc<Shared>>;
pub(crate) type Named = Result<Path<String>, PathRejection>;

/// Parses the JSON that a request brings.
pub(crate) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        Refusal::bad(format!("the body is not what was expected: {error}"))
            .next("GET /api/v1/openapi.json has examples")
    })
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
