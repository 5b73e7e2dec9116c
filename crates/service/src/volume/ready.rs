//! A volume that is ready, as the command that brought it up shows it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::control;
use crate::log;

/// The ways in which a volume that is ready can be reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The volume's name.
    pub name: String,
    /// The block device, if it is attached.
    pub device: Option<PathBuf>,
    /// A link to it, whose name stays.
    #[serde(default)]
    pub link: Option<PathBuf>,
    /// Where NBD clients connect.
    pub uris: Vec<String>,
    /// Warnings that hold from the start.
    pub warnings: Vec<String>,
}

impl Ready {
    /// Shows it to the user: the device and addresses on standard output, all else on standard error.
    pub fn print(&self, how: Printed) {
        if how.json {
            let shown = serde_json::json!({
                "output_version": control::OUTPUT_VERSION,
                "name": self.name,
                "device": self.device,
                "link": self.link,
                "nbd": self.uris,
                "warnings": self.warnings,
            });
            return log::out(format_args!("{shown}\n"));
        }
        self.warnings.iter().for_each(|warning| eprintln!("braid: warning: {warning}"));
        if how.quiet {
            return;
        }
        if let Some(device) = &self.device {
            log::out(format_args!("{}\n", device.display()));
        }
        if let Some(link) = &self.link {
            eprintln!("its name that stays is {}", link.display());
        }
        self.uris.iter().for_each(|uri| log::out(format_args!("{uri}\n")));
        if how.with_name {
            eprintln!("the volume is called {}: `braid down {}` ends it", self.name, self.name);
        }
    }
}

/// The form in which a volume that is ready is shown.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Printed {
    /// JSON instead of lines.
    pub json: bool,
    /// Warnings only.
    pub quiet: bool,
    /// The volume's name is said too, since braid has chosen it.
    pub with_name: bool,
}
