//! A volume that is ready, as the command that brought it up shows it.

use serde::{Deserialize, Serialize};

use crate::control::{self, ExportStatus};
use crate::log;

/// The ways in which a volume that is ready can be reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The volume's name.
    pub name: String,
    /// The ways by which clients reach it.
    pub exports: Vec<ExportStatus>,
    /// Warnings that hold from the start.
    pub warnings: Vec<String>,
}

impl Ready {
    /// Shows it to the user: the device and addresses on standard output, all else on standard error.
    pub fn print(&self, how: Printed) {
        let device = self.exports.iter().find(|export| export.is_device());
        let link = device.and_then(|device| device.link.as_ref());
        let uris = self.exports.iter().flat_map(|export| &export.uris);
        let of = |kind: &'static str| {
            let exports = self.exports.iter().filter(move |export| export.kind == kind);
            exports.flat_map(|export| &export.uris).collect::<Vec<_>>()
        };
        if how.json {
            let shown = serde_json::json!({
                "output_version": control::OUTPUT_VERSION,
                "name": self.name,
                "device": device.map(|device| &device.address),
                "link": link,
                "nbd": of("nbd"),
                "vhost": of("vhost").first(),
                "warnings": self.warnings,
            });
            return log::out(format_args!("{shown}\n"));
        }
        self.warnings.iter().for_each(|warning| eprintln!("braid: warning: {warning}"));
        if how.quiet {
            return;
        }
        if let Some(device) = device {
            log::out(format_args!("{}\n", device.address));
        }
        if let Some(link) = link {
            eprintln!("its name that stays is {link}");
        }
        uris.for_each(|uri| log::out(format_args!("{uri}\n")));
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
