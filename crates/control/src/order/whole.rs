//! Orders to a volume as a whole.

#![allow(
    missing_docs,
    reason = "fields are named as the command line's arguments, which say what they are"
)]

use std::path::PathBuf;

use braid_shell::CommandLine;
use serde::{Deserialize, Serialize};

use super::Effect;
use crate::status::Status;

/// An order to a volume as a whole. `force`: although the volume is in use, or data are overwritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WholeOrder {
    /// Refuse writes.
    Lock {
        #[serde(default)]
        force: bool,
    },
    Unlock,
    /// Discard the content of a RAM disk.
    Erase {
        #[serde(default)]
        force: bool,
    },
    /// Change the size of a RAM disk.
    Resize {
        bytes: u64,
    },
    /// Write the content to a new file.
    Save {
        file: PathBuf,
        #[serde(default)]
        force: bool,
    },
    /// Load the content from such a file.
    Restore {
        file: PathBuf,
        #[serde(default)]
        force: bool,
    },
}

impl WholeOrder {
    pub(super) fn command(&self, volume: &str) -> CommandLine {
        let on = |word: &str| CommandLine::new(&[word]).name(volume);
        match self {
            WholeOrder::Lock { force } => on("lock").flag("force", *force),
            WholeOrder::Unlock => on("unlock"),
            WholeOrder::Erase { force } => on("erase").flag("force", *force),
            WholeOrder::Resize { bytes, .. } => on("resize").name(bytes.to_string()),
            WholeOrder::Save { file, force } => on("save").flag("force", *force).path(file),
            WholeOrder::Restore { file, force } => on("restore").flag("force", *force).path(file),
        }
    }

    pub(super) fn effect(&self, status: &Status) -> Effect {
        let name = &status.name;
        match self {
            WholeOrder::Lock { .. } => {
                let effect = Effect::of(format!(
                    "Refuses writes to {name} until it is unlocked; reads continue."
                ));
                match status.device_export() {
                    Some(device) => {
                        let address = &device.address;
                        effect.loses(format!("Programs that write to {address} get errors."))
                    }
                    None if status.connections() > 0 => {
                        effect.loses("Clients that write get errors.")
                    }
                    None => effect,
                }
            }
            WholeOrder::Unlock => Effect::of(format!("Makes {name} writable again.")),
            WholeOrder::Erase { .. } => {
                Effect::of(format!("Discards the content of {name} and frees its memory."))
                    .loses("All data are lost.")
            }
            WholeOrder::Resize { bytes } => Effect::of(format!(
                "Changes the size of {name} from {} to {bytes} bytes.",
                status.device.size_bytes
            )),
            WholeOrder::Save { file, force } => {
                let file = file.display();
                let effect = Effect::of(format!(
                    "Writes the content of {name} to {file}, compressed; meanwhile writes wait or are refused."
                ));
                match force {
                    true => effect.loses(format!("{file} is replaced, if it exists.")),
                    false => effect,
                }
            }
            WholeOrder::Restore { file, .. } => Effect::of(format!(
                "Verifies {}, then loads the content of {name} from it.",
                file.display()
            ))
            .loses(format!("The present content of {name} is overwritten.")),
        }
    }
}
