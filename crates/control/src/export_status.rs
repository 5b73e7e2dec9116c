//! The status of a volume's exports: a part of the schema of `braid status --json`.

use braid_status::{ExportCounts, Latencies, MemberIo, figures};
use serde::{Deserialize, Serialize};

use crate::TlsStatus;

figures! {
    /// A way by which clients reach the volume.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct ExportStatus {
        /// `nbd`; `vhost` for a disk of a virtual machine over vhost-user-blk; `ublk` for a device of the ublk driver; `fuse` for a
        /// loop device on the file of a FUSE file system; `nbd-device` for a device of the kernel's NBD client. Others may come.
        #[serde(alias = "by")]
        pub kind: String,
        /// The path of the block device, or the first of `uris`.
        #[serde(alias = "path")]
        pub address: String,
        /// Addresses to which clients connect, of `vhost` the path of its socket; empty for a block device of this machine.
        pub uris: Vec<String>,
        /// A link to the block device under the volume's name, which stays when the number of the device changes;
        /// `null` if it could not be made.
        pub link: Option<String>,
        /// The folder of the file system below the block device.
        pub mount: Option<String>,
        /// The way of requests of a block device on FUSE: `uring` for queues of io_uring, `device` for `/dev/fuse`;
        /// `null` for other exports.
        pub transport: Option<String>,
        /// Rights of the users of this machine that Unix sockets list, as `NAME=RIGHTS`; besides them, root and the user of
        /// the volume's process may connect.
        pub users: Vec<String>,
        /// TLS; `null` if it is not used.
        pub tls: Option<TlsStatus>,
        /// Clients that are connected now; 0 for a block device.
        pub connections: u64 = Gauge "connections",
        /// Counts since the volume was brought up.
        #[serde(flatten)]
        pub counts: ExportCounts,
        /// Latencies of client requests.
        pub io: ClientIo,
    }
}

impl ExportStatus {
    /// Returns true for a block device of this machine. Clients connect to other exports.
    pub fn is_device(&self) -> bool {
        self.uris.is_empty()
    }

    /// The name by which it is best called: the link that stays, or its address.
    pub fn name(&self) -> &str {
        self.link.as_ref().unwrap_or(&self.address)
    }

    /// Fills in what a process of an earlier version of braid does not say.
    pub(crate) fn complete(&mut self) {
        if let Some(first) = self.uris.first() {
            (self.kind, self.address) = ("nbd".to_owned(), first.clone());
        }
    }
}

figures! {
    /// Latencies of the client requests of an export: from the moment in which the export has the whole request to that
    /// in which it has the answer. The way to the client and back is not included. A long write that goes to memory is several,
    /// of 128 KiB.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct ClientIo {
        /// Requests that the volume has not answered yet.
        pub in_flight: u64 = Gauge "in_flight",
        /// Reads.
        pub reads: Latencies,
        /// Writes and discards.
        pub writes: Latencies,
        /// Flushes.
        pub flushes: Latencies,
    }
}

impl From<MemberIo> for ClientIo {
    fn from(MemberIo { in_flight, reads, writes, flushes, .. }: MemberIo) -> ClientIo {
        ClientIo { in_flight, reads, writes, flushes }
    }
}

impl ClientIo {
    /// These and `other` together.
    #[must_use]
    pub fn plus(&self, other: &ClientIo) -> ClientIo {
        ClientIo {
            in_flight: self.in_flight + other.in_flight,
            reads: self.reads.plus(&other.reads),
            writes: self.writes.plus(&other.writes),
            flushes: self.flushes.plus(&other.flushes),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Status;

    #[test]
    fn exports_of_a_process_of_an_earlier_version_are_listed() {
        let status = serde_json::json!({
            "output_version": 1, "name": "v", "state": "online", "why": null, "next": null, "stack": "",
            "device": {
                "size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
                "optimal_io_bytes": 512, "read_only": false, "volatile": false,
            },
            "attached": {
                "by": "fuse", "path": "/dev/loop0", "mount": "/run/m", "reads": 1, "writes": 2, "flushes": 3,
                "errors": 4, "read_bytes": 5, "written_bytes": 6, "io": {"in_flight": 7},
            },
            "nbd": {
                "uris": ["nbd://one", "nbd://two"], "connections": 1, "connections_accepted": 2,
                "connections_refused": 3, "protocol_errors": 4, "requests": 5, "replies": 6, "errors": 7,
                "receives": 8, "sends": 9, "requests_per_receive": 0.5, "replies_per_send": 0.5,
                "read_bytes": 10, "written_bytes": 11, "io": {"in_flight": 12},
            },
            "members": [], "warnings": [], "pid": 1, "uptime_seconds": 0, "io": "uring", "shards": 1, "cpu_ns": 0,
        });
        let status: Status = serde_json::from_value(status).expect("a status");
        let status = status.completed();
        let is = |index: usize| {
            let one = &status.exports[index];
            (one.kind.as_str(), one.address.as_str(), one.is_device(), one.connections)
        };
        assert_eq!(is(0), ("fuse", "/dev/loop0", true, 0));
        assert_eq!(is(1), ("nbd", "nbd://one", false, 1));
        let served = status.served();
        assert_eq!((served.read_bytes, served.errors, served.requests), (15, 11, 5));
        assert_eq!((status.waited().in_flight, status.connections()), (19, 1));
    }
}
