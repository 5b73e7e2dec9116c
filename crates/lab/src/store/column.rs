//! The encoding of values in columns of the database.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::metric::Metric;

/// A value as JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(&self.0);
        text.map(Into::into).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        serde_json::from_str(text).map(Json).map_err(|_| unknown(text))
    }
}

impl FromSql for Metric {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?;
        Self::find(name).ok_or_else(|| unknown(name))
    }
}

/// Returns the value of a JSON column.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T> {
    row.get(column).map(|Json(value)| value)
}

/// Returns the error of an unknown value in a column.
pub(super) fn unknown(value: &str) -> FromSqlError {
    let start: String = value.chars().take(200).collect();
    FromSqlError::Other(format!("it holds {start:?}, which this program does not know").into())
}
