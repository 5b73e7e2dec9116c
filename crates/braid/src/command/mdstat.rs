//! `braid mdstat`: the arrays of the volumes that are up, as `/proc/mdstat` shows md's.

use std::io::Write;

use braid_md_text::mdstat::{
    Access, Action, Array, Bitmap, Member, Metadata, Progress, Running, Work, mdstat,
};

use braid_service::control::{self, ArrayMember, ArrayStatus, JobStatus, Status};
use braid_service::failure::{Context, Failure};
use braid_service::places::Places;

/// Levels that braid serves.
const PERSONALITIES: &[&str] = &["linear", "raid0", "raid1", "raid10", "raid6", "raid5", "raid4"];

/// The bitmap's counters are kept in memory as they are on the members: a page holds the bits of
/// so many chunks.
const PAGE: u64 = 4096;

pub(super) fn print() -> Result<(), Failure> {
    let places = Places::from_environment();
    let mut arrays = Vec::new();
    let mut silent = Vec::new();
    let names = places.running_names()?;
    let sockets: Vec<_> = names.iter().map(|name| places.control(name)).collect();
    for (name, status) in names.into_iter().zip(control::get_statuses(&sockets)) {
        let status = match status {
            Ok(status) => status,
            Err(error) => {
                silent.push(format!("{name}: {error}"));
                continue;
            }
        };
        arrays.extend(arrays_of(&name, &status)?);
    }
    let text = mdstat(PERSONALITIES, &arrays);
    std::io::stdout().write_all(text.as_bytes()).context("standard output")?;
    if silent.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(silent.join("\n")).next("`braid status` says more of each"))
}

/// Formats one volume.
#[cfg(test)]
pub(crate) fn render(status: &Status) -> Result<String, Failure> {
    Ok(mdstat(PERSONALITIES, &arrays_of(&status.name, status)?))
}

fn arrays_of(name: &str, status: &Status) -> Result<Vec<Array>, Failure> {
    let several = status.arrays.len() > 1;
    let named = |index| if several { format!("{name}-{index}") } else { name.to_owned() };
    status.arrays.iter().enumerate().map(|(index, array)| array_of(named(index), array)).collect()
}

fn array_of(name: String, array: &ArrayStatus) -> Result<Array, Failure> {
    let level = array.level.parse().map_err(Failure::failed)?;
    let metadata = match &array.metadata {
        Some(version) => Metadata::Internal(version.parse().map_err(Failure::failed)?),
        None => Metadata::NonPersistent,
    };
    let read_only = array.state == "readonly";
    let running = Running {
        access: if read_only { Access::ReadOnly } else { Access::ReadWrite },
        level,
        layout: array.layout_number,
        chunk: array.chunk_bytes.unwrap_or(0),
        in_sync: array.in_sync.clone(),
        action: match &array.job {
            Some(job) => Action::Working(progress_of(job)),
            None if array.resync_from_bytes.is_some() => Action::Pending,
            None => Action::Idle,
        },
    };
    let bitmap = array.bitmap_chunk_bytes.zip(array.bitmap_chunks).map(|(chunk, chunks)| {
        let pages = chunks.div_ceil(PAGE * 8).max(1);
        let used_pages = array.bitmap_chunks_set.unwrap_or(0).min(pages);
        Bitmap { used_pages, pages, page_size: PAGE, chunk }
    });
    Ok(Array {
        name,
        running: Some(running),
        metadata,
        members: array.members.iter().map(member_of).collect(),
        size: array.size_bytes,
        bitmap,
    })
}

fn member_of(member: &ArrayMember) -> Member {
    let name = member.member.rsplit('/').next().unwrap_or(&member.member);
    Member {
        // A line of it is a line of the kernel's: a name never begins another.
        name: braid_shell::shown(name).into_owned(),
        number: member.number,
        write_mostly: member.write_mostly,
        journal: false,
        faulty: member.state == "faulty",
        spare: member.state == "spare",
        replacement: member.replacement,
    }
}

fn progress_of(job: &JobStatus) -> Progress {
    let work = match job.kind.as_str() {
        "resync" | "repair" => Work::Resync,
        "check" => Work::Check,
        _ => Work::Recovery,
    };
    Progress {
        work,
        done: job.done_bytes,
        total: job.total_bytes,
        recent: job.bytes_per_second,
        window_s: 1,
    }
}
