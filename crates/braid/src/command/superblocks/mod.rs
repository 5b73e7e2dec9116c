//! `braid superblocks`: copies of superblocks, and superblocks written back.
//!
//! Invariant: `save`, `list` and `show` open members for reading only.

mod restore;

use std::path::{Path, PathBuf};

use braid_level::layout;
use braid_md::{Resync, Role, Uuid};
use braid_shell::shown;
use braid_stack::ByteSize;

use super::given;
use super::local_time::utc_offset;
use crate::cli::{Superblocks, SuperblocksList, SuperblocksSave, SuperblocksShow};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_service::metadata::{Carries, Copies, Kept, KeptMember};
use braid_service::places::{Places, check_name};
use braid_service::record::Record;

pub(super) fn superblocks(what: &Superblocks) -> Result<(), Failure> {
    match what {
        Superblocks::Save(options) => save(options),
        Superblocks::List(options) => list(options),
        Superblocks::Show(options) => show(options),
        Superblocks::Restore(options) => restore::restore(options),
    }
}

fn copies() -> Copies {
    Copies::own()
}

/// The copy of a number, or of a file.
fn copy_of(text: &str) -> Result<Kept, Failure> {
    match text.parse() {
        Ok(number) if !Path::new(text).exists() => copies().get(number),
        Err(_) if !Path::new(text).exists() => {
            let problem = format!("{} is neither a copy's number nor a file", shown(text));
            Err(Failure::failed(problem).next("`braid superblocks list`"))
        }
        _ => Kept::read_file(Path::new(text)),
    }
}

fn save(options: &SuperblocksSave) -> Result<(), Failure> {
    let paths = members_of(&options.what)?;
    let all = Kept::read("save", &paths)?;
    if let Some(path) = paths.iter().find(|path| !all.iter().any(|kept| kept.has(path))) {
        return Err(Failure::failed(format!(
            "{} has no md superblock that could be kept",
            shown(&path.display().to_string())
        ))
        .next("`braid examine` shows what it is"));
    }
    let mut numbers = Vec::new();
    match (&options.to, &all[..]) {
        (Some(file), [kept]) => {
            kept.write(file, false).context(format_args!("cannot write {}", file.display()))?;
        }
        (Some(_), _) => {
            return Err(Failure::usage("a file holds one array").next("name the members of one"));
        }
        (None, all) => {
            let copies = copies();
            for kept in all {
                numbers.push(copies.keep(kept).map_err(|error| copies.not_kept(&error))?);
            }
        }
    }
    if options.json {
        let json = serde_json::json!({
            "output_version": OUTPUT_VERSION, "numbers": numbers, "file": options.to,
        });
        println!("{json}");
        return Ok(());
    }
    let mut numbers = numbers.iter();
    for kept in &all {
        let to = match (&options.to, numbers.next()) {
            (Some(file), _) => shown(&file.display().to_string()).into_owned(),
            (None, number) => number.map_or(String::new(), ToString::to_string),
        };
        println!("{to}: {}", describe(kept));
    }
    Ok(())
}

/// The members that are meant: of a volume, or as they are named.
fn members_of(what: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if let [one] = what
        && !one.exists()
        && let Some(name) = one.to_str().filter(|name| check_name(name).is_ok())
    {
        let file = Places::from_environment().config_file(name);
        if file.exists() {
            let record = Record::read(&file)?;
            let names = record.stack.member_names().into_iter().map(|(path, _)| path.to_owned());
            let remotes = record.stack.remotes().into_iter();
            return Ok(names.chain(remotes.filter_map(|(one, _)| one.member_name())).collect());
        }
    }
    given::absolute(what)
}

fn list(options: &SuperblocksList) -> Result<(), Failure> {
    let is_meant = |kept: &Kept| {
        options.array.as_deref().is_none_or(|text| {
            let is_name = |one: &Carries| {
                let name = &one.superblock.name;
                name == text || name.rsplit(':').next() == Some(text)
            };
            let is_it = text.parse::<Uuid>().is_ok_and(|uuid| uuid.to_string() == kept.array);
            is_it
                || kept
                    .members
                    .first()
                    .and_then(|one| one.carried().ok())
                    .is_some_and(|one| is_name(&one))
        })
    };
    let all: Vec<Kept> = copies().list().into_iter().filter(is_meant).collect();
    if options.json {
        let copies: Vec<_> = all.iter().map(as_json).collect();
        println!("{}", serde_json::json!({ "output_version": OUTPUT_VERSION, "copies": copies }));
        return Ok(());
    }
    let ahead = utc_offset();
    for kept in &all {
        let when = braid_md_text::examine::ctime(kept.time_s, ahead(kept.time_s));
        println!("{}  {when}  {}: {}", kept.number, shown(&kept.why), describe(kept));
    }
    Ok(())
}

/// `home, raid5 of 3 members, 7f3bb22f:…, 12 events`
fn describe(kept: &Kept) -> String {
    match freshest(kept) {
        None => format!("{}: nothing of it can be understood", shown(&kept.array)),
        Some(one) => {
            let array = &one.superblock;
            let name = if array.name.is_empty() { "(no name)" } else { &array.name };
            format!(
                "{}, {} of {} members, {} here, {} events, {}",
                shown(name),
                array.level,
                array.raid_disks,
                kept.members.len(),
                array.events,
                array.array_uuid
            )
        }
    }
}

/// The superblock with the most events.
fn freshest(kept: &Kept) -> Option<Carries> {
    let all = kept.members.iter().filter_map(|one| one.carried().ok());
    all.max_by_key(|one| one.superblock.events)
}

fn show(options: &SuperblocksShow) -> Result<(), Failure> {
    let kept = copy_of(&options.copy)?;
    if options.json {
        let mut json = as_json(&kept);
        json["output_version"] = OUTPUT_VERSION.into();
        println!("{json}");
        return Ok(());
    }
    println!("{}", describe(&kept));
    let ahead = utc_offset();
    let ctime = |seconds: u64| braid_md_text::examine::ctime(seconds, ahead(seconds));
    println!("  kept     {}, for: {}", ctime(kept.time_s), shown(&kept.why));
    if let Some(one) = freshest(&kept) {
        let array = &one.superblock;
        let mut what = vec![format!("metadata {}", array.version)];
        what.extend(
            Some(layout::name_of(array.level, array.layout)).filter(|name| !name.is_empty()),
        );
        what.extend((array.chunk > 0).then(|| format!("chunk {:#}", ByteSize(array.chunk))));
        what.extend(array.bitmap_offset.map(|_| "with a write-intent bitmap".to_owned()));
        what.extend(array.ppl.map(|_| "with a partial parity log".to_owned()));
        println!("  array    {}", what.join(", "));
        println!("  created  {}", ctime(array.created.seconds));
        println!("  updated  {}, {}", ctime(array.updated.seconds), resync_in_words(array.resync));
    }
    println!("  ID  ROLE     DATA FROM    DEVICE UUID                          SIZE        MEMBER");
    for member in &kept.members {
        let path = member.known.path.display().to_string();
        match member.carried() {
            Err(why) => println!("  ?   {why}: {}", shown(&path)),
            Ok(one) => println!(
                "  {:<3} {:<8} {:<12} {:<36} {:<11} {}",
                one.superblock.device_number,
                role_in_words(one.superblock.role()),
                one.superblock.data_offset,
                one.superblock.device_uuid.to_string(),
                format!("{:#}", ByteSize(member.known.size_bytes)),
                shown(&path)
            ),
        }
    }
    println!("  next: `braid superblocks restore {} --plan`", shown(&options.copy));
    Ok(())
}

fn resync_in_words(resync: Resync) -> String {
    match resync {
        Resync::Clean => "clean".to_owned(),
        Resync::From(from) => format!("in sync below {from} bytes"),
    }
}

pub(super) fn role_in_words(role: Role) -> String {
    match role {
        Role::Active(role) => format!("role {role}"),
        Role::Spare => "spare".to_owned(),
        Role::Faulty => "faulty".to_owned(),
        Role::Journal => "journal".to_owned(),
    }
}

fn as_json(kept: &Kept) -> serde_json::Value {
    let member = |member: &KeptMember| {
        let mut json = serde_json::json!({
            "path": member.known.path,
            "identity": member.known.identity,
            "size_bytes": member.known.size_bytes,
        });
        if let Ok(one) = member.carried() {
            let superblock = &one.superblock;
            json["id"] = superblock.device_number.into();
            json["role"] = role_in_words(superblock.role()).into();
            json["device_uuid"] = superblock.device_uuid.to_string().into();
            json["events"] = superblock.events.into();
            json["data_offset_bytes"] = superblock.data_offset.into();
        }
        json
    };
    let array = freshest(kept).map(|one| {
        serde_json::json!({
            "name": one.superblock.name,
            "metadata_version": one.superblock.version.to_string(),
            "level": one.superblock.level.to_string(),
            "layout_number": one.superblock.layout,
            "chunk_bytes": one.superblock.chunk,
            "raid_disks": one.superblock.raid_disks,
            "events": one.superblock.events,
            "clean": one.superblock.is_clean(),
        })
    });
    serde_json::json!({
        "number": kept.number,
        "time_s": kept.time_s,
        "why": kept.why,
        "uuid": kept.array,
        "array": array,
        "members": kept.members.iter().map(member).collect::<Vec<_>>(),
    })
}
