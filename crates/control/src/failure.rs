//! Failures: the kind, a word for programs, why, and what to do next. Each is a field from where it is
//! made to where it is shown; [`with_next`] alone makes one text of them.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error_code::ErrorCode;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its kind.
    #[serde(rename = "outcome")]
    pub kind: FailureKind,
    /// The same as the sentence, for programs.
    #[serde(default)]
    pub code: ErrorCode,
    /// The sentence for people. Earlier versions called it `text`.
    #[serde(alias = "text")]
    pub why: String,
    /// The next commands, one a line.
    #[serde(default)]
    pub next: Option<String>,
    /// Values that the sentence names: members, users, sizes in bytes.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

/// The kind of a failure, from which the exit status of a command follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// It was tried and did not work: 1.
    Failed,
    /// The request makes no sense: 2.
    Usage,
    /// A safety rule says no: 3.
    Refused,
    /// The user ended it before it was done: 130, as shells have it.
    Interrupted,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [FailureKind; 4] =
        [FailureKind::Failed, FailureKind::Usage, FailureKind::Refused, FailureKind::Interrupted];

    /// The exit status of a command that fails so, on which scripts may rely.
    pub fn exit_status(self) -> u8 {
        match self {
            FailureKind::Failed => 1,
            FailureKind::Usage => 2,
            FailureKind::Refused => 3,
            FailureKind::Interrupted => 130,
        }
    }

    /// A failure of this kind, with the code that says no more than the kind.
    pub fn because(self, why: impl Display) -> Failure {
        let code = match self {
            FailureKind::Failed | FailureKind::Interrupted => ErrorCode::Failed,
            FailureKind::Usage => ErrorCode::BadRequest,
            FailureKind::Refused => ErrorCode::Refused,
        };
        Failure { kind: self, code, why: why.to_string(), next: None, values: Map::new() }
    }
}

impl Failure {
    /// It was tried and did not work.
    pub fn failed(why: impl Display) -> Failure {
        FailureKind::Failed.because(why)
    }

    /// The request makes no sense.
    pub fn usage(why: impl Display) -> Failure {
        FailureKind::Usage.because(why)
    }

    /// A safety rule says no.
    pub fn refused(why: impl Display) -> Failure {
        FailureKind::Refused.because(why)
    }

    /// The user ended it before it was done.
    pub fn interrupted(why: impl Display) -> Failure {
        FailureKind::Interrupted.because(why)
    }

    /// Adds the next command.
    #[must_use]
    pub fn next(self, next: impl Display) -> Failure {
        Failure { next: Some(next.to_string()), ..self }
    }

    /// Adds the next command, if there is one.
    #[must_use]
    pub fn led_on(self, next: Option<impl Display>) -> Failure {
        match next {
            Some(next) => self.next(next),
            None => self,
        }
    }

    /// Says why not, for programs, where that is more than the kind says.
    #[must_use]
    pub fn code(self, code: ErrorCode) -> Failure {
        Failure { code, ..self }
    }

    /// Adds a value that the sentence names.
    #[must_use]
    pub fn value(mut self, name: &str, value: impl Into<Value>) -> Failure {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// Adds another fact to the sentence.
    #[must_use]
    pub fn note(mut self, note: impl Display) -> Failure {
        self.why = format!("{}; {note}", self.why);
        self
    }

    /// Puts the subject in front of the sentence.
    #[must_use]
    pub fn of(mut self, what: impl Display) -> Failure {
        self.why = format!("{what}: {}", self.why);
        self
    }

    /// The failure that a program said last, with `BRAID_ERRORS=json` in its environment.
    pub fn said_last(output: &str) -> Option<Failure> {
        output.trim_end().lines().last().and_then(|line| serde_json::from_str(line).ok())
    }

    /// The text for a person.
    pub fn text(&self) -> String {
        with_next(&self.why, self.next.as_deref())
    }
}

/// A text for a person, with the commands that lead on, each of which is a line of `next`.
pub fn with_next(why: impl Display, next: Option<&str>) -> String {
    let lines = next.into_iter().flat_map(str::lines);
    lines.fold(why.to_string(), |text, line| format!("{text}\n  next: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_comes_back_from_json_and_keeps_its_fields_apart() {
        for kind in FailureKind::ALL {
            for code in ErrorCode::ALL {
                let bare = kind.because("no").code(*code);
                let full = bare.clone().next("`a`").value("member", "/dev/sdb");
                for failure in [bare, full] {
                    let text = serde_json::to_string(&failure).expect("JSON");
                    let again: Failure = serde_json::from_str(&text).expect("a failure");
                    assert_eq!(again, failure, "{text}");
                }
            }
        }
        let failure = Failure::refused("a is in use").next("`b`").code(ErrorCode::InUse);
        let json = serde_json::json!(failure);
        let expected = serde_json::json!({
            "outcome": "refused", "code": "in-use", "why": "a is in use", "next": "`b`"
        });
        assert_eq!(json, expected);
        assert_eq!(failure.text(), "a is in use\n  next: `b`");
    }

    #[test]
    fn what_another_version_says_is_read() {
        let earlier = r#"{"text":"a is locked","outcome":"refused"}"#;
        let failure: Failure = serde_json::from_str(earlier).expect("a failure");
        let expected = Failure::refused("a is locked").code(ErrorCode::Unknown);
        assert_eq!(failure, expected);
        let later = r#"{"outcome":"refused","code":"new-word","why":"no","next":null,"more":1}"#;
        let failure: Failure = serde_json::from_str(later).expect("a failure");
        assert_eq!(failure, Failure::refused("no").code(ErrorCode::Unknown));
    }

    #[test]
    fn several_commands_are_a_line_each() {
        assert_eq!(with_next("no", None), "no");
        assert_eq!(with_next("no", Some("a\nb")), "no\n  next: a\n  next: b");
    }
}
