//! Volumes that are to be made, brought up or called otherwise: what a request may say, as a command line. Pure.

use std::collections::BTreeSet;

use braid_control::Status;
use braid_shell::CommandLine;
use serde::{Deserialize, Serialize};

use crate::answer::Refusal;

/// A request for a volume.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NewVolume {
    /// Bring up a volume that is known, or a stack.
    Up(Up),
    /// Make an md array.
    Create(Create),
    /// Call a volume that is down otherwise.
    Rename(Rename),
    /// Remove the record of a volume that is down.
    Forget(Forget),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forget {
    name: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rename {
    name: String,
    /// Its name from now on.
    to: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Up {
    /// The name of a volume that was up before, or was created.
    name: Option<String>,
    /// A stack expression, for a new one.
    stack: Option<String>,
    /// Addresses to listen at for NBD clients.
    #[serde(default)]
    nbd: Vec<String>,
    /// `none`, `fuse`, …
    attach: Option<String>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    degraded: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    name: String,
    level: String,
    /// In the order of their roles; `missing` leaves one free.
    members: Vec<String>,
    #[serde(default)]
    spares: Vec<String>,
    chunk_bytes: Option<u64>,
    layout: Option<String>,
    metadata: Option<String>,
    /// `none`, `internal`.
    bitmap: Option<String>,
    consistency: Option<String>,
    size_bytes: Option<u64>,
    #[serde(default)]
    assume_clean: bool,
    /// Members that are taken whatever they carry, named again.
    #[serde(default)]
    force: Vec<String>,
}

/// A member's path is a whole one; so no name is taken for an option, either.
fn check_paths<'a>(paths: impl IntoIterator<Item = &'a String>) -> Result<(), Refusal> {
    match paths.into_iter().find(|path| !path.starts_with('/') && *path != "missing") {
        None => Ok(()),
        Some(path) => Err(Refusal::bad(format!("{path:?} is no whole path"))
            .next("name members from the root, as /dev/sdb")),
    }
}

impl NewVolume {
    /// Returns the command line of this order; with `plan`, of its dry run, if there is one.
    ///
    /// # Errors
    /// The request makes no sense.
    pub(crate) fn line(&self, plan: bool) -> Result<CommandLine, Refusal> {
        match self {
            NewVolume::Up(up) => up.line(),
            NewVolume::Create(create) => create.line(plan),
            NewVolume::Rename(Rename { name, to }) => {
                check_name(name)?;
                check_name(to)?;
                Ok(CommandLine::new(&["rename"]).without_json().name(name).name(to))
            }
            NewVolume::Forget(Forget { name }) => {
                check_name(name)?;
                Ok(CommandLine::new(&["forget"]).name(name))
            }
        }
    }
}

impl NewVolume {
    /// Returns a sentence if nothing is to be done, by the names of volumes that have a record.
    pub(crate) fn is_so(&self, known: &BTreeSet<String>) -> Option<String> {
        match self {
            NewVolume::Rename(Rename { name, to }) if name == to && known.contains(name) => {
                Some(format!("Nothing: {name} is called so already."))
            }
            NewVolume::Forget(Forget { name }) if !known.contains(name) => {
                Some(format!("Nothing: no volume called {name} is known."))
            }
            _ => None,
        }
    }
}

impl Forget {
    /// Returns the effect, for people.
    pub(crate) fn does(&self) -> String {
        format!(
            "Removes the record of {}, which has to be down: it is not started at boot any more. Its members stay as \
             they are; the record is kept in the state folder.",
            self.name
        )
    }
}

impl Rename {
    /// Returns a sentence about its effect.
    pub(crate) fn does(&self) -> String {
        let Rename { name, to } = self;
        format!(
            "Calls {name}, which has to be down, {to} from now on: its record, and the paths of its sockets and its \
             device. Nothing is written to its members."
        )
    }
}

impl Up {
    fn line(&self) -> Result<CommandLine, Refusal> {
        // A name could be that of a file, as far as `up` is concerned.
        let (target, name) = match (&self.stack, &self.name) {
            (Some(stack), name) if stack.contains('(') => (stack, name.as_ref()),
            (None, Some(name)) => {
                check_name(name)?;
                (name, None)
            }
            (Some(stack), _) => {
                return Err(Refusal::bad(format!("{stack:?} is no stack")).next("such as ram(64M)"));
            }
            (None, None) => {
                return Err(Refusal::bad("neither a name nor a stack is given")
                    .next("GET /api/v1/volumes lists the volumes that are known"));
            }
        };
        name.map_or(Ok(()), |name| check_name(name))?;
        let line =
            CommandLine::new(&["up"]).option("name", name).option("attach", self.attach.as_ref());
        let line = self.nbd.iter().fold(line, |line, address| line.option("nbd", Some(address)));
        Ok(line.flag("read-only", self.read_only).flag("degraded", self.degraded).name(target))
    }

    /// The name of the volume that is to be up, if the request has it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns true for a volume with a record: its plan can say if it is up already.
    pub(crate) fn is_by_name(&self) -> bool {
        self.stack.is_none()
    }

    /// Returns how a volume that is up already differs from the one that is asked for, apart from its stack.
    pub(crate) fn differs(&self, status: &Status) -> Option<String> {
        if self.read_only && !status.device.read_only {
            return Some("it can be written to".to_owned());
        }
        match (self.attach.as_deref(), &status.attached) {
            (Some("none"), Some(device)) => {
                return Some(format!("it is attached as {}", device.address));
            }
            (Some("fuse" | "ublk" | "nbd"), None) => return Some("it is not attached".to_owned()),
            _ => {}
        }
        let uris = || status.nbd.iter().flat_map(|nbd| &nbd.uris);
        let listens = |address: &&String| {
            let place = address.split_once(':').map_or("", |(_, place)| place);
            let parts = [format!("/{place}/"), format!(":{place}/")];
            uris().any(|uri| {
                uri.ends_with(&format!("={place}")) || parts.iter().any(|part| uri.contains(part))
            })
        };
        let missing = self.nbd.iter().find(|address| !listens(address));
        missing.map(|address| format!("it does not listen at {address}"))
    }

    /// Returns a sentence about its effect.
    pub(crate) fn does(&self) -> String {
        let what = match (&self.name, &self.stack) {
            (Some(name), Some(stack)) => format!("Brings {stack} up as {name}"),
            (None, Some(stack)) => format!("Brings {stack} up under a new name"),
            (name, None) => {
                format!("Brings {} up as its record says", name.as_deref().unwrap_or("?"))
            }
        };
        let how = if self.read_only { ", for reading only" } else { "" };
        let without = match self.degraded {
            true => {
                " An array goes on without members that it was last seen with: these become stale."
            }
            false => "",
        };
        format!("{what}{how}.{without} Members that are not what they were are refused.")
    }
}

impl Create {
    fn line(&self, plan: bool) -> Result<CommandLine, Refusal> {
        check_name(&self.name)?;
        check_paths(self.members.iter().chain(&self.spares).chain(&self.force))?;
        let line = CommandLine::new(&["create"])
            .option("level", Some(&self.level))
            .option("chunk", self.chunk_bytes)
            .option("layout", self.layout.as_ref())
            .option("metadata", self.metadata.as_ref())
            .option("bitmap", self.bitmap.as_ref())
            .option("consistency", self.consistency.as_ref())
            .option("size", self.size_bytes)
            .flag("assume-clean", self.assume_clean)
            .flag("plan", plan);
        let line = self.spares.iter().fold(line, |line, path| line.option("spare", Some(path)));
        let line = self.force.iter().fold(line, |line, path| line.option("force", Some(path)));
        Ok(self.members.iter().fold(line.name(&self.name), |line, path| line.name(path)))
    }
}

/// Checks that `name` can be that of a volume; otherwise the answer that there is none.
///
/// # Errors
/// A text that is a path, an option, or too long for a socket's.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let starts_well = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if name == braid_control::MONITOR {
        let text = format!("{name:?} cannot name a volume: {name}.toml configures `braid monitor`");
        return Err(Refusal::bad(text).next("another name"));
    }
    if starts_well && name.len() <= 40 && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Refusal::bad(format!("{name:?} cannot name a volume"))
        .next("1 to 40 letters, digits, '-', '_' and '.', beginning with a letter or a digit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: &str) -> Result<String, String> {
        let request: NewVolume =
            serde_json::from_str(request).map_err(|error| error.to_string())?;
        request.line(true).map(|line| line.arguments().join(" ")).map_err(|refusal| refusal.why)
    }

    #[test]
    fn a_volume_that_is_up_is_compared_with_what_is_asked_for() {
        let mut status: Status = serde_json::from_value(serde_json::json!({
            "output_version": 1, "name": "v", "state": "online", "why": null, "next": null, "stack": "",
            "device": {
                "size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
                "optimal_io_bytes": 512, "read_only": false, "volatile": false,
            },
            "attached": null, "members": [], "arrays": [], "warnings": [], "pid": 1,
            "nbd": {
                "uris": ["nbd+unix:///v?socket=/run/v.nbd", "nbd://127.0.0.1:10809/v"], "connections": 0,
                "connections_accepted": 0, "connections_refused": 0, "protocol_errors": 0,
                "requests": 0, "replies": 0, "errors": 0, "receives": 0, "sends": 0,
                "requests_per_receive": 0.0, "replies_per_send": 0.0, "read_bytes": 0,
                "written_bytes": 0,
            },
            "uptime_seconds": 1, "io": "threads", "shards": 1, "cpu_ns": 0,
        }))
        .expect("a status");
        let differs = |status: &Status, up: &str| {
            serde_json::from_str::<Up>(up).expect("a request").differs(status)
        };
        for same in [
            r#"{"name":"v"}"#,
            r#"{"name":"v","attach":"none"}"#,
            r#"{"name":"v","nbd":["unix:/run/v.nbd","tcp:127.0.0.1:10809","tcp:10809"]}"#,
        ] {
            assert_eq!(differs(&status, same), None, "{same}");
        }
        for (other, why) in [
            (r#"{"name":"v","read_only":true}"#, "it can be written to"),
            (r#"{"name":"v","attach":"fuse"}"#, "it is not attached"),
            (r#"{"name":"v","nbd":["unix:/run/w.nbd"]}"#, "it does not listen at unix:/run/w.nbd"),
            (r#"{"name":"v","nbd":["tcp:809"]}"#, "it does not listen at tcp:809"),
        ] {
            assert_eq!(differs(&status, other).as_deref(), Some(why), "{other}");
        }
        status.device.read_only = true;
        assert_eq!(differs(&status, r#"{"name":"v","read_only":true}"#), None);
    }

    #[test]
    fn requests_are_command_lines() {
        let good = [
            (r#"{"up":{"name":"home"}}"#, "up --json -- home"),
            (
                r#"{"up":{"stack":"ram(1M)","name":"r","attach":"none","nbd":["unix:/x"]}}"#,
                "up --name=r --attach=none --nbd=unix:/x --json -- ram(1M)",
            ),
            (
                r#"{"create":{"name":"a","level":"raid1","members":["/x","missing"],"spares":["/y"],"bitmap":"none"}}"#,
                "create --level=raid1 --bitmap=none --plan --spare=/y --json -- a /x missing",
            ),
            (r#"{"rename":{"name":"a","to":"b"}}"#, "rename -- a b"),
            (r#"{"forget":{"name":"a"}}"#, "forget --json -- a"),
        ];
        for (request, arguments) in good {
            assert_eq!(line(request).as_deref(), Ok(arguments));
        }
        let bad = [
            (r#"{"up":{}}"#, "neither a name nor a stack"),
            (r#"{"up":{"name":"../../etc/x.toml"}}"#, "cannot name a volume"),
            (r#"{"up":{"name":"--foreground"}}"#, "cannot name a volume"),
            (r#"{"up":{"stack":"/tmp/evil.toml"}}"#, "is no stack"),
            (r#"{"up":{"stack":"ram(1M)","name":"a/b"}}"#, "cannot name a volume"),
            (r#"{"up":{"name":"a","foreground":true}}"#, "unknown field `foreground`"),
            (r#"{"create":{"name":"a","level":"raid1","members":["x"]}}"#, "is no whole path"),
            (
                r#"{"create":{"name":"a","level":"raid1","members":["--force"]}}"#,
                "is no whole path",
            ),
            (r#"{"rename":{"name":"a","to":"--force"}}"#, "cannot name a volume"),
            (r#"{"up":{"name":"monitor"}}"#, "configures `braid monitor`"),
            (r#"{"down":{"name":"a"}}"#, "unknown variant `down`"),
        ];
        for (request, why) in bad {
            let error = line(request).unwrap_err();
            assert!(error.contains(why), "{request}: {error}");
        }
    }
}
