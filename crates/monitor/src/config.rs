//! `monitor.toml`: the receivers, the way to each, and the severity from which events are reported. Pure except
//! for [`Config::read`].
//!
//! Invariant: a configuration that was read is meaningful: addresses are addresses, each receiver gets some
//! events, and settings for a receiver that does not exist are refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use braid_stack::ByteSize;
use serde::Deserialize;

use crate::event::{KINDS, Severity};
use crate::outbox::Limit;
use crate::span::Span;
use crate::watch::Policy;

mod check;
mod values;

pub(crate) use values::{Address, Program, Url};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// It is no configuration, or one that makes no sense.
    #[error("{path}: {problem}")]
    Invalid {
        /// The file.
        path: String,
        /// The error, its place, and a correct value.
        problem: String,
    },
}

/// The content of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub(crate) interval: Span,
    pub(crate) disks: Span,
    pub(crate) increment: u8,
    pub(crate) settle: Span,
    pub(crate) reminder: Span,
    pub(crate) timeout: Span,
    leave_out: Vec<String>,
    thresholds: Thresholds,
    limit: LimitOf,
    pub(crate) retry: Retry,
    spares: BTreeMap<String, usize>,
    pub(crate) mail: Option<Mail>,
    pub(crate) smtp: Option<Smtp>,
    webhook: Vec<Webhook>,
    program: Vec<ProgramOf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Thresholds {
    write_back_age: Span,
    log_full: u8,
    memory: Option<ByteSize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LimitOf {
    burst: u64,
    every: Span,
}

/// The times of the attempts to deliver: after `first`, then after twice as long, and so on.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retry {
    pub(crate) attempts: u32,
    pub(crate) first: Span,
}

/// The program or protocol that transports mails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Via {
    Sendmail,
    Smtp,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mail {
    pub(crate) to: Vec<Address>,
    #[serde(default)]
    pub(crate) from: Option<Address>,
    #[serde(default = "by_sendmail")]
    pub(crate) via: Via,
    #[serde(default = "sendmail")]
    pub(crate) sendmail: Program,
    #[serde(default = "from_warnings_on")]
    least: Severity,
}

/// The encryption towards a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encryption {
    /// In the clear.
    None,
    /// From the STARTTLS on, which has to be there.
    Starttls,
    /// From the start.
    #[serde(rename = "tls")]
    Always,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Smtp {
    #[serde(default = "localhost")]
    pub(crate) host: String,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    tls: Option<Encryption>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    pub(crate) user: Option<String>,
    #[serde(default)]
    pub(crate) password_file: Option<PathBuf>,
    #[serde(default)]
    pub(crate) ca_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Webhook {
    url: Url,
    #[serde(default = "from_all")]
    least: Severity,
    #[serde(default)]
    insecure: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramOf {
    path: Program,
    #[serde(default = "from_all")]
    least: Severity,
}

fn by_sendmail() -> Via {
    Via::Sendmail
}

fn sendmail() -> Program {
    Program("/usr/sbin/sendmail".into())
}

fn from_warnings_on() -> Severity {
    Severity::Warning
}

fn from_all() -> Severity {
    Severity::Info
}

fn localhost() -> String {
    "localhost".to_owned()
}

impl Default for Config {
    fn default() -> Config {
        Config {
            interval: Span(5),
            disks: Span(1_800),
            increment: 20,
            settle: Span(60),
            reminder: Span(86_400),
            timeout: Span(30),
            leave_out: Vec::new(),
            thresholds: Thresholds::default(),
            limit: LimitOf::default(),
            retry: Retry::default(),
            spares: BTreeMap::new(),
            mail: None,
            smtp: None,
            webhook: Vec::new(),
            program: Vec::new(),
        }
    }
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { write_back_age: Span(300), log_full: 90, memory: None }
    }
}

impl Default for LimitOf {
    fn default() -> LimitOf {
        LimitOf { burst: 10, every: Span(300) }
    }
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 6, first: Span(5) }
    }
}

/// The destination of one receiver's messages.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Mail,
    Webhook(Url),
    Program(Program),
}

impl Config {
    /// Reads `path`; a file that is not there is an empty one, unless it was asked for.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn read(path: &Path, is_asked_for: bool) -> Result<Config, ConfigError> {
        let shown = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Config::parse(&text)
                .map_err(|problem| ConfigError::Invalid { path: shown, problem }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_asked_for => {
                Ok(Config::default())
            }
            Err(error) => Err(ConfigError::Unreadable { path: shown, error }),
        }
    }

    /// Reads the text of a file; else what is wrong, with the line where there is one.
    fn parse(text: &str) -> Result<Config, String> {
        let config: Config =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        match check::problem(&config) {
            None => Ok(config),
            Some((key, problem)) => Err(match check::line_of(text, &key) {
                Some(line) => format!("line {line}: {key}: {problem}"),
                None => format!("{key}: {problem}"),
            }),
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        Policy {
            increment: self.increment,
            settle: self.settle.0,
            reminder: self.reminder.0,
            write_back_age: self.thresholds.write_back_age.0,
            log_full: self.thresholds.log_full,
            memory: self.thresholds.memory.map(|bytes| bytes.0),
            spares: self.spares.clone(),
        }
    }

    pub(crate) fn limit(&self) -> Limit {
        Limit { burst: self.limit.burst, every: self.limit.every.0 }
    }

    /// True if events of this name are reported at all.
    pub(crate) fn is_told(&self, event: &str) -> bool {
        let is_step = |name: &str| {
            name == "RebuildNN"
                && event.strip_prefix("Rebuild").is_some_and(|step| step.parse::<u8>().is_ok())
        };
        !self.leave_out.iter().any(|name| name == event || is_step(name))
    }

    /// The receivers, each with its own name and its least severity.
    pub(crate) fn targets(&self) -> Vec<(String, Severity, Target)> {
        let mail = self.mail.iter().map(|mail| ("mail".to_owned(), mail.least, Target::Mail));
        let hooks = self.webhook.iter().map(|hook| {
            (format!("webhook {}", hook.url.shown()), hook.least, Target::Webhook(hook.url.clone()))
        });
        let programs = self.program.iter().map(|program| {
            let name = format!("program {}", program.path.0.display());
            (name, program.least, Target::Program(program.path.clone()))
        });
        mail.chain(hooks).chain(programs).collect()
    }

    /// Returns true if receivers are programs of the administrator's, or mails go by sendmail: these may be set-user-ID.
    pub fn starts_programs(&self) -> bool {
        let by_sendmail = self.mail.as_ref().is_some_and(|mail| mail.via == Via::Sendmail);
        by_sendmail || !self.program.is_empty()
    }

    /// The meaning of the configuration, for people.
    pub fn describe(&self) -> String {
        let mut lines = vec![format!("looks at all volumes every {}", self.interval)];
        let mut line = |text: String| lines.push(text);
        for (name, least, _) in self.targets() {
            let from = match least {
                Severity::Info => "of everything".to_owned(),
                least => format!("of what is {} or worse", least.word()),
            };
            let how = match (name.as_str(), &self.mail) {
                ("mail", Some(mail)) => format!(" {}", self.mail_route(mail)),
                _ => String::new(),
            };
            line(format!("tells {name}{how}, {from}"));
        }
        if self.targets().is_empty() {
            line("sends no messages: it only logs".to_owned());
        }
        line(format!(
            "to each: at most {} messages at once, then one in {}; {} attempts, of {} each",
            self.limit.burst, self.limit.every, self.retry.attempts, self.timeout
        ));
        line(match self.disks {
            Span(0) => "never looks at the disks below members".to_owned(),
            every => format!("looks at the disks below members every {every}"),
        });
        line(match self.reminder {
            Span(0) => "never reminds of what lasts".to_owned(),
            every => format!("reminds of what lasts every {every}"),
        });
        line(format!("calls it well again when a cause has been away for {}", self.settle));
        let Thresholds { write_back_age, log_full, memory } = &self.thresholds;
        let memory = memory.map_or("a twentieth of all".to_owned(), |bytes| format!("{bytes:#}"));
        line(format!(
            "tells of writes that a cache has held for {write_back_age}, of a log that is {log_full} % full, of \
             memory below {memory}, of passes in steps of {} %",
            self.increment
        ));
        for (volume, spares) in &self.spares {
            line(format!("wants {spares} spares of {volume}"));
        }
        if !self.leave_out.is_empty() {
            line(format!("leaves out {}", self.leave_out.join(", ")));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn mail_route(&self, mail: &Mail) -> String {
        let to: Vec<String> = mail.to.iter().map(|to| to.0.to_string()).collect();
        let via = match (&self.smtp, mail.via) {
            (Some(smtp), Via::Smtp) => {
                format!("{}:{} ({})", smtp.host, smtp.port(), smtp.tls().word())
            }
            _ => mail.sendmail.0.display().to_string(),
        };
        format!("to {} via {via}", to.join(", "))
    }
}

impl Smtp {
    /// In the clear on this machine, else STARTTLS.
    pub(crate) fn tls(&self) -> Encryption {
        self.tls.unwrap_or(if self.is_local() { Encryption::None } else { Encryption::Starttls })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls() {
            Encryption::None => 25,
            Encryption::Starttls => 587,
            Encryption::Always => 465,
        })
    }

    fn is_local(&self) -> bool {
        values::is_local(&self.host)
    }
}

impl Encryption {
    fn word(self) -> &'static str {
        match self {
            Encryption::None => "in the clear",
            Encryption::Starttls => "STARTTLS",
            Encryption::Always => "TLS",
        }
    }
}

/// The names of all events.
fn known_events() -> String {
    KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
