//! The status of TLS at an export: a part of the schema of `braid status --json`. Key material is no part of it.

use braid_status::figures;
use serde::{Deserialize, Serialize};

figures! {
    /// TLS of an export.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct TlsStatus {
        /// Addresses at which clients without TLS are refused: `none`, `tcp`, or `all`.
        pub required: String,
        /// The folder of the certificates.
        pub certificates: String,
        /// True if clients need a certificate.
        pub verify_peer: bool,
        /// Rights by the names in certificates; if there are any, other clients have none.
        pub allow: Vec<String>,
        /// End of the server's certificate, in seconds since 1970; `null` if it cannot be read.
        pub expires_at: Option<u64> = Gauge "tls_expires_timestamp_seconds",
        /// Why the files that are in the folder now are not in use; `null` if they are.
        pub problem: Option<String>,
        /// Warning about the certificate: it expires within 14 days, or is not valid; or `problem`.
        pub warning: Option<String>,
    }
}

impl TlsStatus {
    /// Returns a line for people: where TLS is required, and of which clients a certificate.
    pub fn in_words(&self) -> String {
        let required = match self.required.as_str() {
            "all" => "required",
            "tcp" => "required over TCP",
            _ => "offered",
        };
        let clients = match (self.verify_peer, self.allow.as_slice()) {
            (false, _) => "clients without certificates".to_owned(),
            (true, []) => "clients with certificates".to_owned(),
            (true, allow) => format!("clients {}", allow.join(", ")),
        };
        format!("{required}; {clients}; certificates in {}", self.certificates)
    }
}
