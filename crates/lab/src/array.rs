//! The commands that degrade, repair and query a running array, and the parsers of their output. Pure.
//!
//! ```text
//!           fail          take_out        put_in            check
//!   whole ───────▶ faulty ───────▶ gone ───────▶ recovering ───────▶ …
//! ```
//!
//! The member that comes back is the failed one, without its superblock. Nothing marks it as a former member,
//! so all of it is filled, as with a new disk.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{CommandLine, Exit, Finished};

/// An array from which members can be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Array {
    /// The program that runs the array.
    pub(crate) keeper: Keeper,
    /// The member that fails, as the keeper names it; `None` if no member may fail.
    pub(crate) victim: Option<String>,
    /// True if a member can be added: the array has metadata for it.
    pub(crate) remembers: bool,
}

/// The program that runs an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// A braid volume.
    Volume {
        /// The way to call braid.
        braid: Braid,
        /// The volume's name.
        name: String,
    },
    /// The kernel's md.
    Kernel {
        /// `/dev/md127`.
        device: String,
        /// `/sys/block/md127/md`.
        sys: String,
    },
}

/// The way to call braid: the program, and folders of the laboratory for its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Braid {
    pub(crate) program: String,
    /// Folder for records of volumes, apart from the user's.
    pub(crate) config: String,
    /// Folder for the bytes that `braid undo` restores.
    pub(crate) state: String,
}

impl Braid {
    /// Keeps braid's records in a folder of the laboratory.
    pub(crate) fn in_folder(program: impl Into<String>, folder: &Path) -> Self {
        let place = |name: &str| folder.join(name).display().to_string();
        Self { program: program.into(), config: place("config"), state: place("state") }
    }

    /// Returns braid's record of a volume, in the laboratory's folder.
    pub(crate) fn record(&self, name: &str) -> PathBuf {
        Path::new(&self.config).join(format!("{name}.toml"))
    }

    /// Returns a call of braid. `env` sets the folders.
    pub(crate) fn call<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> CommandLine {
        let command = CommandLine::new("env")
            .arg(format!("BRAID_CONFIG_DIR={}", self.config))
            .arg(format!("BRAID_STATE_DIR={}", self.state))
            .arg(&self.program);
        words.into_iter().fold(command, |command, word| command.arg(word))
    }
}

/// The state of an array.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// The pass that runs or waits for its turn: `resync`, `recovery`, `check`, ...
    pub(crate) pass: Option<String>,
    /// True if a role has no member in sync.
    pub(crate) is_degraded: bool,
    /// State of the victim: `in_sync`, `recovering`, `spare`, `faulty`. `None` if it is absent, or its keeper
    /// does not report it.
    pub(crate) victim: Option<String>,
}

impl Array {
    fn on_victim(&self, braid: &[&str], mdadm: &str) -> Option<CommandLine> {
        let victim = self.victim.as_deref()?;
        Some(match &self.keeper {
            Keeper::Volume { braid: program, name } => {
                program.call(braid.iter().copied().chain([name.as_str(), victim]))
            }
            Keeper::Kernel { device, .. } => {
                CommandLine::new("mdadm").arg("--manage").arg(device).arg(mdadm).arg(victim)
            }
        })
    }

    /// Returns the command that fails the victim.
    pub(crate) fn fail(&self) -> Option<CommandLine> {
        self.on_victim(&["member", "fail"], "--fail")
    }

    /// Returns the command that removes the failed victim.
    pub(crate) fn take_out(&self) -> Option<CommandLine> {
        self.on_victim(&["member", "remove"], "--remove")
    }

    /// Returns the command that erases the victim's superblock.
    pub(crate) fn forget(&self) -> Option<CommandLine> {
        let victim = self.victim.as_deref()?;
        Some(match &self.keeper {
            Keeper::Volume { braid, .. } => braid.call(["wipe", victim]),
            Keeper::Kernel { .. } => CommandLine::new("mdadm").arg("--zero-superblock").arg(victim),
        })
    }

    /// Returns the command that adds the victim as a new member, which begins a recovery.
    pub(crate) fn put_in(&self) -> Option<CommandLine> {
        self.remembers.then(|| self.on_victim(&["member", "add", "--force"], "--add")).flatten()
    }

    /// Returns the command that begins a check of the whole array.
    pub(crate) fn check(&self) -> CommandLine {
        self.scrub(&["scrub"], "--action=check")
    }

    /// Returns the command that ends a check.
    pub(crate) fn cancel_check(&self) -> CommandLine {
        self.scrub(&["scrub", "--cancel"], "--action=idle")
    }

    fn scrub(&self, words: &[&str], action: &str) -> CommandLine {
        match &self.keeper {
            Keeper::Volume { braid, name } => {
                braid.call(words.iter().copied().chain([name.as_str()]))
            }
            Keeper::Kernel { device, .. } => CommandLine::new("mdadm").arg(action).arg(device),
        }
    }

    /// Returns the command that queries the array's state; [`Array::read`] parses the output.
    pub(crate) fn ask(&self) -> CommandLine {
        match &self.keeper {
            Keeper::Volume { braid, name } => braid.call(["status", name.as_str(), "--json"]),
            Keeper::Kernel { sys, .. } => {
                let command = CommandLine::new("cat").arg(format!("{sys}/sync_action"));
                command.arg(format!("{sys}/degraded"))
            }
        }
    }

    /// Parses the output of [`Array::ask`].
    ///
    /// # Errors
    ///
    /// The reason why there is no state, as part of a sentence: the volume is gone, or its output is invalid.
    pub(crate) fn read(&self, done: &Finished) -> Result<Activity, String> {
        if done.exit != Exit::Code(0) {
            return Err(done.why());
        }
        match &self.keeper {
            Keeper::Volume { .. } => parse_volume(&done.stdout, self.victim.as_deref()),
            Keeper::Kernel { .. } => parse_kernel(&done.stdout),
        }
    }
}

/// Parses two files of md: `sync_action` (`idle`, `recover`, `check`, ...) and `degraded` (a number).
fn parse_kernel(text: &str) -> Result<Activity, String> {
    let mut lines = text.lines();
    let (Some(action), Some(degraded)) =
        (lines.next(), lines.next().and_then(|line| line.trim().parse::<u32>().ok()))
    else {
        return Err(format!("the state of md is invalid: {text:?}"));
    };
    let pass = match action.trim() {
        "idle" => None,
        "recover" => Some("recovery".to_owned()),
        other => Some(other.to_owned()),
    };
    Ok(Activity { pass, is_degraded: degraded > 0, victim: None })
}

/// Returns the process that serves a volume, from its `braid status NAME --json`.
pub(crate) fn pid_in_status(text: &str) -> Option<u32> {
    volume_of(text).ok()?["pid"].as_u64()?.try_into().ok()
}

/// Returns the one volume in a status.
fn volume_of(text: &str) -> Result<Value, String> {
    let mut all: Value =
        serde_json::from_str(text).map_err(|error| format!("its status is invalid: {error}"))?;
    let volume = all.get_mut("volumes").and_then(|volumes| volumes.get_mut(0));
    volume.map(Value::take).ok_or_else(|| "its status names no volume".to_owned())
}

/// Parses the state of all arrays of a volume.
fn parse_volume(text: &str, victim: Option<&str>) -> Result<Activity, String> {
    let volume = volume_of(text)?;
    let arrays = || volume["arrays"].as_array().into_iter().flatten();
    let of_arrays =
        |list: &'static str| arrays().filter_map(move |array| array[list].as_array()).flatten();
    let owned = |value: &Value| value.as_str().map(str::to_owned);
    Ok(Activity {
        pass: arrays()
            .find_map(|array| owned(&array["job"]["kind"]).or_else(|| owned(&array["requested"]))),
        is_degraded: of_arrays("in_sync").any(|is_in_sync| *is_in_sync == false),
        victim: of_arrays("members")
            .find(|one| victim.is_some() && one["member"].as_str() == victim)
            .and_then(|one| owned(&one["state"])),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn volume() -> Array {
        let braid =
            Braid { program: "braid".into(), config: "/tmp/c".into(), state: "/tmp/s".into() };
        Array {
            keeper: Keeper::Volume { braid, name: "lab-1".into() },
            victim: Some("/srv/a.img".into()),
            remembers: true,
        }
    }

    pub(crate) fn kernel() -> Array {
        let keeper =
            Keeper::Kernel { device: "/dev/md127".into(), sys: "/sys/block/md127/md".into() };
        Array { keeper, victim: Some("/dev/loop3".into()), remembers: true }
    }

    pub(crate) fn said(text: &str) -> Finished {
        Finished { exit: Exit::Code(0), stdout: text.to_owned(), stderr: String::new() }
    }

    #[test]
    fn both_keepers_take_the_same_orders() {
        let text = |command: Option<CommandLine>| command.map(|c| c.to_string()).unwrap();
        let (braid, md) = (volume(), kernel());
        let call = "env BRAID_CONFIG_DIR=/tmp/c BRAID_STATE_DIR=/tmp/s braid";
        assert_eq!(text(braid.fail()), format!("{call} member fail lab-1 /srv/a.img"));
        assert_eq!(text(md.fail()), "mdadm --manage /dev/md127 --fail /dev/loop3");
        assert_eq!(text(braid.put_in()), format!("{call} member add --force lab-1 /srv/a.img"));
        assert_eq!(text(md.forget()), "mdadm --zero-superblock /dev/loop3");
        assert_eq!(braid.cancel_check().to_string(), format!("{call} scrub --cancel lab-1"));
        assert_eq!(md.check().to_string(), "mdadm --action=check /dev/md127");
    }

    #[test]
    fn without_a_memory_nothing_is_put_in() {
        assert_eq!(Array { remembers: false, ..volume() }.put_in(), None);
        assert_eq!(Array { victim: None, ..volume() }.fail(), None);
    }

    #[test]
    fn a_status_of_braid_is_understood() {
        let text = r#"{"output_version":1,"volumes":[{"pid":7,"arrays":[{"in_sync":[true,false],
            "job":{"kind":"recovery","done_bytes":1,"total_bytes":9},"requested":null,
            "members":[{"member":"/srv/a.img","state":"recovering"}]}]}]}"#;
        let found = volume().read(&said(text)).unwrap();
        assert_eq!(found.pass.as_deref(), Some("recovery"));
        assert!(found.is_degraded);
        assert_eq!(found.victim.as_deref(), Some("recovering"));
        let quiet = r#"{"volumes":[{"pid":7,"arrays":[{"in_sync":[true],"job":null}]}]}"#;
        assert_eq!(volume().read(&said(quiet)).unwrap(), Activity::default());
        assert!(volume().read(&said("{}")).is_err());
        assert!(volume().read(&said(r#"{"volumes":[]}"#)).is_err());
    }

    #[test]
    fn the_kernel_is_understood() {
        let found = kernel().read(&said("recover\n1\n")).unwrap();
        assert_eq!((found.pass.as_deref(), found.is_degraded), (Some("recovery"), true));
        assert_eq!(kernel().read(&said("idle\n0\n")).unwrap(), Activity::default());
        assert!(kernel().read(&said("idle\n")).is_err());
    }

    #[test]
    fn one_that_is_gone_says_so() {
        let gone = Finished {
            exit: Exit::Code(1),
            stdout: String::new(),
            stderr: "braid: lab-1: its process is gone\n".into(),
        };
        assert_eq!(
            volume().read(&gone).unwrap_err(),
            "exit status 1 braid: lab-1: its process is gone"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(text: String) {
            drop(volume().read(&said(&text)));
            drop(kernel().read(&said(&text)));
        }
    }
}
