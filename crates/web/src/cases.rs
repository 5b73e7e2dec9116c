//! Cases of `braid rescue`, as their folders have them. Nothing is written, and no member is read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::asked::Asked;
use crate::shared::blocking;

/// The most bytes of a file of a case.
const MOST_BYTES: u64 = 4 << 20;

pub(crate) async fn cases(State(shared): Asked) -> Result<Json<Value>, Refusal> {
    let read =
        blocking(move || Ok(shared.cases.iter().map(|one| case(one)).collect::<Vec<Value>>()));
    Ok(Json(json!({ "cases": read.await? })))
}

/// A case: its members, its hypotheses, and what was verified. A file that is not there is `null`.
fn case(folder: &Path) -> Value {
    let name = folder.file_stem().unwrap_or(folder.as_os_str()).to_string_lossy();
    let mut problems = Vec::new();
    let mut read = |file: &str| {
        json_of(&folder.join(file)).unwrap_or_else(|why| {
            problems.push(why);
            Value::Null
        })
    };
    let (case, verified) = (read("case.json"), read("verified.json"));
    let hypotheses = read("hypotheses.json");
    if case.is_null() && problems.is_empty() {
        problems.push(format!("there is no case in {}", folder.display()));
    }
    json!({ "name": name, "folder": folder.display().to_string(), "members": case["members"],
            "verified": verified, "hypotheses": hypotheses["ranked"], "problems": problems })
}

/// The JSON in a file; `null` if the file is not there.
fn json_of(path: &PathBuf) -> Result<Value, String> {
    let failed = |why: String| format!("{}: {why}", path.display());
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Value::Null),
        file => file.map_err(|error| failed(error.to_string()))?,
    };
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut text = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut text);
    read.map_err(|error| failed(error.to_string()))?;
    if !is_file || text.len() as u64 > MOST_BYTES {
        return Err(failed(format!("it is no file of at most {MOST_BYTES} bytes")));
    }
    serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_what_its_folder_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home.rescue");
        let problem = |value: &Value| value["problems"][0].as_str().unwrap_or_default().to_owned();
        assert!(problem(&case(&home)).contains("there is no case in"));
        std::fs::create_dir(&home).expect("a folder");
        let write =
            |name: &str, text: &str| std::fs::write(home.join(name), text).expect("written");
        write("case.json", r#"{"version": 1, "members": [{"path": "/a"}]}"#);
        write("verified.json", "[{");
        let read = case(&home);
        assert_eq!((&read["name"], &read["members"][0]["path"]), (&json!("home"), &json!("/a")));
        assert_eq!(read["hypotheses"], Value::Null);
        assert!(problem(&read).contains("verified.json"), "{read}");
    }
}
