//! Arrays in the form of node_exporter's md metrics, with the same names and HELP texts, and with the meaning
//! of `/proc/mdstat`.
//!
//! Source: node_exporter `collector/mdadm_linux.go` (commit 881d882f67ec) and procfs `mdstat.go`, which read
//! `/proc/mdstat`: `device` is the array's name in `braid mdstat`; blocks are of 1 KiB; exactly one `state` is
//! 1; a waiting resync has synced no block, and without a pass all are synced. In mdstat, a repair is called a
//! resync, and a replacement a recovery, as in the kernel.

use braid_control::{ArrayStatus, Status};

use crate::page::Page;
use crate::told_apart;

/// The values of `state`, in node_exporter's order.
const STATES: [&str; 5] = ["active", "inactive", "recovering", "resync", "check"];

pub(crate) fn add(page: &mut Page, up: &[Status]) {
    let named = |status: &Status| {
        let (name, several) = (status.name.clone(), status.arrays.len() > 1);
        let device = move |index| if several { format!("{name}-{index}") } else { name.clone() };
        (0..status.arrays.len()).map(device).collect::<Vec<_>>()
    };
    let devices: Vec<String> = up.iter().flat_map(named).collect();
    let devices = told_apart(devices.iter().map(String::as_str));
    for (device, array) in devices.iter().zip(up.iter().flat_map(|status| &status.arrays)) {
        add_array(page, device, array);
    }
}

fn add_array(page: &mut Page, device: &str, array: &ArrayStatus) {
    let job = array.job.as_ref();
    let waits = job.is_none() && array.resync_from_bytes.is_some();
    let is = match job.map(|job| job.kind.as_str()) {
        Some("resync" | "repair") => "resync",
        Some("check") => "check",
        Some(_) => "recovering",
        None if waits => "resync",
        None => "active",
    };
    for state in STATES {
        let labels = [("device", device), ("state", state)];
        page.gauge("node_md_state", "Indicates the state of md-device.", &labels, state == is);
    }
    let in_sync = array.in_sync.iter().filter(|one| **one).count();
    let count = |state| array.members.iter().filter(|member| member.state == state).count();
    for (state, disks) in
        [("active", in_sync), ("failed", count("faulty")), ("spare", count("spare"))]
    {
        page.gauge(
            "node_md_disks",
            "Number of active/failed/spare disks of device.",
            &[("device", device), ("state", state)],
            disks,
        );
    }
    let labels = [("device", device)];
    page.gauge(
        "node_md_disks_required",
        "Total number of disks of device.",
        &labels,
        array.raid_disks,
    );
    let blocks = array.size_bytes / 1024;
    page.gauge("node_md_blocks", "Total number of blocks on device.", &labels, blocks);
    let synced = match job {
        Some(job) => job.done_bytes / 1024,
        None if waits => 0,
        None => blocks,
    };
    page.gauge("node_md_blocks_synced", "Number of blocks synced on device.", &labels, synced);
}
