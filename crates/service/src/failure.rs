//! How a command fails: a message, what to do next, and an exit status.

use std::fmt::Display;
use std::process::ExitCode;

use crate::control::ErrorCode;

/// Why a command did not do what it was told.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
    next: Option<String>,
    code: Option<ErrorCode>,
}

/// The exit statuses, which scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// 1
    Failed,
    /// 2
    Usage,
    /// 3
    Refused,
    /// 130, as shells have it
    Interrupted,
}

impl Failure {
    /// It was tried and did not work.
    pub fn failed(message: impl Display) -> Failure {
        Failure { kind: Kind::Failed, message: message.to_string(), next: None, code: None }
    }

    /// What was asked for makes no sense.
    pub fn usage(message: impl Display) -> Failure {
        Failure { kind: Kind::Usage, message: message.to_string(), next: None, code: None }
    }

    /// A safety rule says no.
    pub fn refused(message: impl Display) -> Failure {
        Failure { kind: Kind::Refused, message: message.to_string(), next: None, code: None }
    }

    /// The user ended it before it was done.
    pub fn interrupted(message: impl Display) -> Failure {
        Failure { kind: Kind::Interrupted, message: message.to_string(), next: None, code: None }
    }

    /// Adds the next command.
    pub fn next(mut self, next: impl Display) -> Failure {
        self.next = Some(next.to_string());
        self
    }

    /// Says why not, for programs, where that is more than the exit status says.
    pub fn code(self, code: impl Into<Option<ErrorCode>>) -> Failure {
        Failure { code: code.into().or(self.code), ..self }
    }

    /// The same for a program that started this one: a line of JSON.
    fn json(&self) -> String {
        let by_kind = match self.kind {
            Kind::Failed | Kind::Interrupted => ErrorCode::Failed,
            Kind::Usage => ErrorCode::BadRequest,
            Kind::Refused => ErrorCode::Refused,
        };
        // Some messages have their next command in them.
        let (error, next) = match (&self.next, self.message.split_once("\n  next: ")) {
            (None, Some((error, next))) => (error, Some(next)),
            (next, _) => (self.message.as_str(), next.as_deref()),
        };
        let code = self.code.unwrap_or(by_kind);
        serde_json::json!({ "code": code, "error": error, "next": next }).to_string()
    }

    /// Adds what else is to be known.
    pub fn note(mut self, note: impl Display) -> Failure {
        self.message = format!("{}; {note}", self.message);
        self
    }

    /// The text for a person.
    pub fn text(&self) -> String {
        match &self.next {
            Some(next) => format!("{}\n  next: {next}", self.message),
            None => self.message.clone(),
        }
    }

    /// Says it on standard error, in JSON if the caller is a program that asked for that, and answers the exit
    /// status.
    pub fn report(&self) -> ExitCode {
        match std::env::var_os("BRAID_ERRORS").is_some_and(|form| form == "json") {
            true => eprintln!("{}", self.json()),
            false => eprintln!("braid: {}", self.text()),
        }
        self.exit_code()
    }

    /// The exit status of a command that fails so.
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Refused => 3,
            Kind::Interrupted => 130,
        })
    }
}

/// Adds what was being done to an error of the system.
pub trait Context<T> {
    /// `what`: "cannot …", without a full stop.
    fn context(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::failed(format!("{what}: {error}")))
    }
}
