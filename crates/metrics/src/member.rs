//! Members: what they were asked for, how long that took, what went wrong.

use braid_control::{DiskStatus, SmartStatus, Status};

use crate::page::Of;
use crate::told_apart;

pub(crate) fn add(of: &mut Of<'_>, status: &Status) {
    let names = told_apart(status.members.iter().map(|member| member.member.as_str()));
    for (name, member) in names.iter().zip(&status.members) {
        let mut of = of.part("member", name);
        let io = &member.io;
        of.figures("", member);
        of.figures("", io);
        for (op, latencies) in [("read", &io.reads), ("write", &io.writes), ("flush", &io.flushes)]
        {
            of.part("op", op).histogram(
                "braid_member_request_seconds",
                "How long the member took for a request; writes are with discards.",
                latencies,
            );
        }
        of.gauge(
            "braid_member_slow",
            "Whether it is an outlier among its siblings.",
            member.slow.is_some(),
        );
        of.gauge(
            "braid_member_flush_lost",
            "Whether a flush failed: what was written before may not be on it.",
            member.lost.is_some(),
        );
        of.gauge(
            "braid_member_gone",
            "Whether its file was deleted or replaced under the volume.",
            member.gone.is_some(),
        );
        if let Some(remote) = &member.remote {
            of.figures("", remote);
        }
        if let Some(disk) = &member.disk {
            add_disk(&mut of, disk);
        }
    }
}

/// Values of the disk below; a disk that does not say something has no sample of it.
fn add_disk(of: &mut Of<'_>, disk: &DiskStatus) {
    for (name, help, count) in [
        (
            "braid_member_disk_kernel_errors",
            "Commands to the disk that the kernel counts as ended with an error; SCSI has harmless ones too.",
            disk.kernel_errors,
        ),
        (
            "braid_member_disk_kernel_timeouts",
            "Commands to the disk that the kernel counts as not answered in time.",
            disk.kernel_timeouts,
        ),
    ] {
        count.into_iter().for_each(|count| of.gauge(name, help, count));
    }
    let Some(smart) = &disk.smart else { return };
    let SmartStatus { failing, warnings, .. } = smart;
    of.gauge(
        "braid_member_smart_failing",
        "Whether the disk says that it fails.",
        !failing.is_empty(),
    );
    of.gauge(
        "braid_member_smart_warnings",
        "Things that the disk says that are worth a warning.",
        warnings.len(),
    );
    of.gauge(
        "braid_member_smart_seen_timestamp_seconds",
        "When the monitor had this from the disk, since 1970.",
        smart.seen,
    );
    for (name, help, value) in [
        (
            "braid_member_smart_reallocated_sectors",
            "Sectors that the disk reallocated; of SCSI, grown defects.",
            smart.reallocated_sectors,
        ),
        (
            "braid_member_smart_pending_sectors",
            "Sectors that the disk cannot read, and has not reallocated.",
            smart.pending_sectors,
        ),
        (
            "braid_member_smart_uncorrectable",
            "Errors that the disk could not correct.",
            smart.uncorrectable,
        ),
        ("braid_member_smart_media_errors", "Media errors of an NVMe disk.", smart.media_errors),
    ] {
        value.into_iter().for_each(|value| of.gauge(name, help, value));
    }
    if let Some(used) = smart.percentage_used {
        let help = "How much of its endurance is used, of 1; may be more.";
        of.gauge("braid_member_smart_used_ratio", help, used as f64 / 100.0);
    }
    for (name, help, celsius) in [
        (
            "braid_member_smart_temperature_celsius",
            "The temperature of the disk.",
            smart.temperature_celsius,
        ),
        (
            "braid_member_smart_temperature_limit_celsius",
            "The temperature that the disk should stay below.",
            smart.temperature_limit_celsius,
        ),
    ] {
        celsius.into_iter().for_each(|celsius| of.gauge(name, help, celsius as f64));
    }
}
