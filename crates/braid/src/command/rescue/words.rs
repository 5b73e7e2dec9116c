//! Words of `braid rescue` for people.

use braid_level::{Level, layout};
use braid_md::Superblock;
use braid_rescue::assemble::{Claimant, Doubt, LeftOut, Ranges, Seat, Standing, WhyLeftOut};
use braid_rescue::{Array, Examined, Reason};
use braid_shell::shown;
use braid_stack::ByteSize;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time in seconds since 1970, as the clock on the wall shows it.
pub(super) fn time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok());
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    time.map_or_else(
        || "unknown".to_owned(),
        |time| time.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// A size for people.
pub(super) fn size(bytes: u64) -> String {
    format!("{:#}", ByteSize(bytes))
}

/// An array in one line: `nas:0: raid5 of 6, left-symmetric, chunk 64 KiB`.
pub(super) fn array(array: &Array, superblock: &Superblock) -> String {
    let (level, disks) = (superblock.level, superblock.raid_disks);
    let mut text = format!("{}: {level} of {disks}", shown(&array.label()));
    let name = layout::name_of(level, superblock.layout);
    if !name.is_empty() && level != Level::Raid0 {
        text += &format!(", {name}");
    }
    if superblock.chunk > 0 {
        text += &format!(", chunk {}", size(superblock.chunk));
    }
    text
}

/// The second line about an array: its UUID, metadata and age.
pub(super) fn identity(superblock: &Superblock) -> String {
    let (uuid, version) = (superblock.array_uuid, superblock.version);
    format!("UUID {uuid}, metadata {version}, made {}", time(superblock.created.seconds))
}

/// The reason for which a member is used.
pub(super) fn standing(seat: &Seat) -> String {
    let text = match seat.standing {
        Standing::Last => "in the array's last state",
        Standing::LeftLast => "left when the array failed: nothing was written after it",
        Standing::ByBitmap => {
            "stale; what was written since is known by the bitmap, and not read from it"
        }
        Standing::Stale => "STALE, but needed: old where something was written since",
        Standing::Guessed => "NO SUPERBLOCK: its role is the only one that is left",
        Standing::Ambiguous => "ANOTHER MEMBER claims this role with as many events",
    };
    match seat.holes.iter().map(|hole| hole.end - hole.start).sum::<u64>() {
        0 => text.to_owned(),
        bytes => format!("{text}; {} not read", size(bytes)),
    }
}

/// A line of the table of members.
pub(super) struct Line {
    pub(super) role: String,
    pub(super) member: String,
    pub(super) events: String,
    pub(super) written: String,
    pub(super) how: String,
}

/// The table of an array's members: those that are used by role, then the others.
pub(super) fn table(
    claimants: &[Claimant],
    seats: &[Option<Seat>],
    left_out: &[LeftOut],
) -> Vec<Line> {
    let of = |index: usize, role: String, how: String| {
        let one = &claimants[index];
        Line {
            role,
            member: shown(&one.label).into_owned(),
            events: if one.is_guessed { String::new() } else { one.superblock.events.to_string() },
            written: match one.is_guessed {
                true => String::new(),
                false => time(one.superblock.updated.seconds),
            },
            how,
        }
    };
    let seated = seats.iter().enumerate().map(|(role, seat)| match seat {
        Some(seat) => of(seat.claimant, role.to_string(), standing(seat)),
        None => {
            let how = "no member that can be used".to_owned();
            let (member, events) = ("-".to_owned(), String::new());
            Line { role: role.to_string(), member, events, written: String::new(), how }
        }
    });
    let others = left_out.iter().map(|one| {
        let role = match (&one.why, claimants[one.claimant].superblock.role()) {
            (WhyLeftOut::OtherShape { .. }, _) => "-".to_owned(),
            (_, braid_md::Role::Active(role)) => format!("({role})"),
            _ => "-".to_owned(),
        };
        of(one.claimant, role, format!("not used: {}", one.why))
    });
    seated.chain(others).collect()
}

pub(super) fn print_table(lines: &[Line]) {
    let width = |of: fn(&Line) -> &String, least: usize| {
        lines.iter().map(|line| of(line).chars().count()).fold(least, usize::max)
    };
    let (member, events) = (width(|line| &line.member, 6), width(|line| &line.events, 6));
    println!(
        "  {:>4}  {:member$}  {:>events$}  {:19}  how it stands",
        "role", "member", "events", "last written"
    );
    for Line { role, member: name, events: count, written, how } in lines {
        println!("  {role:>4}  {name:member$}  {count:>events$}  {written:19}  {how}");
    }
}

/// A doubt in one sentence.
pub(super) fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::Lost { ranges } => {
            format!("{} cannot be read: no member has them: {}", total(ranges), spans(ranges))
        }
        Doubt::Contradicted { roles } => format!(
            "blocks of the file system on {} of the members say that they belong elsewhere: these superblocks are not \
             those of the data, as after `mdadm --create`. `braid rescue solve` finds the geometry of the data",
            roles.len()
        ),
        Doubt::NoTable { start } => format!(
            "a file system begins at byte {start}, as in a partition, and no table names one: the table is lost, or the \
             array was created anew with another data offset. `braid rescue solve` reads the file system as it lies there"
        ),
        Doubt::Broken { why } => format!(
            "{}. It is damaged, or the array was created anew, and its order, chunk or offset are others than those of the \
             data. `braid rescue solve` finds the geometry of the data",
            shown(why)
        ),
        Doubt::Recreated { at, made } => {
            let why = match made {
                Some(made) => format!("its file system is older: of {}", time(*made)),
                None => "its members have superblocks of another array, too".to_owned(),
            };
            format!(
                "the array was created at {}, and {why}. Its order, chunk or offset may be others than those of the data, \
                 and a resync may have overwritten a member. `braid rescue solve` finds the geometry of the data",
                time(*at)
            )
        }
        Doubt::Stale { label, role, at } => format!(
            "{} (role {role}) is needed, and stale: whatever was written after {} may be old or mixed, anywhere",
            shown(label),
            time(*at)
        ),
        Doubt::Guessed { label, role } => format!(
            "{} has no superblock; role {role} is the only one left for it. Verify what is read",
            shown(label)
        ),
        Doubt::Ambiguous { label, role } => format!(
            "two members claim role {role} with as many events and other contents; {} is used",
            shown(label)
        ),
        Doubt::Evidence { why, ranges: None } => shown(why).into_owned(),
        Doubt::Evidence { why, ranges: Some(ranges) } => {
            format!("{}: {} may be wrong: {}", shown(why), total(ranges), spans(ranges))
        }
        Doubt::Critical { ranges } => format!(
            "the reshape overwrites what it has not moved yet: {} may be old, new or mixed: {}. mdadm's backup file has \
             them (--backup), and `braid rescue solve` finds from the content how far it came",
            total(ranges),
            spans(ranges)
        ),
        Doubt::Journal => {
            "the array has a write journal: the last writes may be in it, and nowhere else"
                .to_owned()
        }
        Doubt::Torn { at, ranges: None } => format!(
            "writes were under way at {}: what they touched may be wrong. There is no bitmap that says where",
            time(*at)
        ),
        Doubt::Torn { at, ranges: Some(ranges) } => format!(
            "writes were under way at {}: {} may be wrong: {}",
            time(*at),
            total(ranges),
            spans(ranges)
        ),
    }
}

/// The size of ranges together.
fn total(ranges: &Ranges) -> String {
    size(ranges.iter().map(|range| range.end - range.start).sum())
}

/// The first ranges, as `braid files` takes them.
fn spans(ranges: &Ranges) -> String {
    const MOST: usize = 8;
    let span =
        |range: &std::ops::Range<u64>| format!("{}+{}", range.start, range.end - range.start);
    let mut text = ranges.iter().take(MOST).map(span).collect::<Vec<_>>().join(", ");
    if ranges.len() > MOST {
        text += &format!(" and {} more", ranges.len() - MOST);
    }
    text
}

/// The reason for which a member has no role in a hypothesis.
pub(super) fn reason(reason: Reason, members: &[Examined]) -> String {
    match reason {
        Reason::NoEvidence => "it carries no evidence of this array".to_owned(),
        Reason::CloneOf(other) => format!("it is a copy of {}", shown(&members[other].label)),
        Reason::Stale => "its superblock says that the array went on without it".to_owned(),
        Reason::Contradicts => {
            "it contradicts the others: stale, overwritten, or of another array".to_owned()
        }
    }
}
