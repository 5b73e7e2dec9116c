//! Orders about the caches of a volume.

#![allow(
    missing_docs,
    reason = "fields are named as the command line's arguments, which say what they are"
)]

use braid_shell::CommandLine;
use serde::{Deserialize, Serialize};

use super::Effect;
use crate::status::Status;

/// An order about the caches of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheOrder {
    /// Put a cache in front of the volume, with these parameters, in the syntax of a stack.
    Attach { parameters: String },
    /// Detach the cache in front of the volume.
    Detach,
    /// Change the memory size of the volume's cache.
    Resize { bytes: u64 },
    /// Change the write mode; with the parameters of write-back mode, in the syntax of a stack.
    Mode {
        mode: String,
        #[serde(default)]
        parameters: String,
    },
    /// Limit the rate of draining; `None` for no limit.
    Drain { bytes_per_second: Option<u64> },
}

impl CacheOrder {
    /// Returns true if the order names a log, for writes that were flushed and that the origin lacks.
    pub fn names_log(&self) -> bool {
        let (CacheOrder::Attach { parameters, .. } | CacheOrder::Mode { parameters, .. }) = self
        else {
            return false;
        };
        parameters.contains("log=")
    }

    pub(super) fn command(&self, volume: &str) -> CommandLine {
        let on = |word: &str| CommandLine::new(&["cache", word]).name(volume);
        // Parameters are separated as in a stack; each is a word.
        let with = |line: CommandLine, parameters: &str| {
            let each = parameters.split(',').map(str::trim).filter(|one| !one.is_empty());
            each.fold(line, |line, one| line.name(one))
        };
        match self {
            CacheOrder::Attach { parameters } => with(on("attach"), parameters),
            CacheOrder::Detach => on("detach"),
            CacheOrder::Resize { bytes } => on("resize").name(bytes.to_string()),
            CacheOrder::Mode { mode, parameters } => with(on("mode").name(mode), parameters),
            CacheOrder::Drain { bytes_per_second } => on("drain")
                .name(bytes_per_second.map_or("unlimited".to_owned(), |rate| format!("{rate}/s"))),
        }
    }

    pub(super) fn effect(&self, status: &Status) -> Effect {
        let name = &status.name;
        let write_backs = status.caches.iter().filter_map(|one| one.write_back.as_ref());
        let dirty: u64 = write_backs.map(|one| one.dirty_bytes).sum();
        match self {
            CacheOrder::Attach { parameters } => {
                let effect = Effect::of(format!(
                    "Puts a cache ({parameters}) in front of {name}, until it is detached. Clients are not delayed."
                ));
                match parameters.contains("write-back") && parameters.contains("volatile") {
                    true => effect
                        .loses("A power cut or a crash loses the writes that are not drained."),
                    false => effect,
                }
            }
            CacheOrder::Detach => Effect::of(format!(
                "Drains the cache of {name} ({dirty} bytes are dirty), then detaches it."
            )),
            CacheOrder::Resize { bytes } => Effect::of(format!(
                "Changes the memory of the cache to {bytes} bytes; a smaller cache evicts blocks by its policy."
            )),
            CacheOrder::Mode { mode, .. } => Effect::of(format!(
                "Drains the cache ({dirty} bytes are dirty), then changes its mode to {mode}."
            )),
            CacheOrder::Drain { bytes_per_second } => {
                let rate = bytes_per_second
                    .map_or("no limit".to_owned(), |rate| format!("{rate} bytes per second"));
                Effect::of(format!("Sets the limit of background draining: {rate}."))
            }
        }
    }
}
