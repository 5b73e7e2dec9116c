//! braid's texts about the golden arrays' members are those of mdadm and the kernel.

use braid_golden::{Golden, Member, Role};
use braid_md::{Superblock, Version};
use braid_md_text::examine::{self, Surroundings, Written};
use braid_md_text::mdstat::{
    self, Access, Action, Array, Bitmap, Metadata, Progress, Running, Work, mdstat,
};

/// A member's image, and where things lie on it.
struct Image {
    version: Version,
    bytes: Vec<u8>,
    super_offset: usize,
}

impl Image {
    fn of(array: &Golden, member: &Member) -> Image {
        let bytes = array.expand_member(member.index);
        let super_offset = member.super_offset_bytes.expect("a superblock") as usize;
        Image { version: array.metadata.parse().expect("a version"), bytes, super_offset }
    }

    fn written(&self) -> Written<'_> {
        Written::new(self.version, &self.bytes[self.super_offset..])
    }

    fn bitmap(&self, member: &Member) -> Option<&[u8]> {
        let offset = member.bitmap_offset_bytes? as usize;
        Some(&self.bytes[offset..])
    }
}

/// Calls `check` for all members of all golden arrays, and says how many there were.
fn each_member(mut check: impl FnMut(&Golden, &Member, &Image)) -> usize {
    let mut count = 0;
    for array in braid_golden::all() {
        for member in array.present() {
            check(&array, member, &Image::of(&array, member));
            count += 1;
        }
    }
    count
}

#[test]
fn examine_is_mdadms_text() {
    let count = each_member(|array, member, image| {
        let around =
            Surroundings { bitmap: image.bitmap(member), ..Surroundings::unknown(member.bytes) };
        let expected = member.examine.as_deref().expect("mdadm's text");
        let (title, expected) = expected.split_once('\n').expect("several lines");
        assert_eq!(title, format!("m{}.img:", member.index));
        let text = examine::text(&image.written(), &around);
        assert_eq!(text, expected, "{} member {}", array.name, member.index);
    });
    assert!(count > 100, "only {count} members");
}

#[test]
fn examine_bitmap_is_mdadms_text() {
    let mut bitmaps = 0;
    each_member(|array, member, image| {
        let Some(expected) = &member.examine_bitmap else { return };
        bitmaps += 1;
        let bitmap = image.bitmap(member).expect("the bitmap's place");
        let text = examine::bitmap_text("bitmap", image.version, bitmap).expect("a bitmap");
        assert_eq!(&text, expected, "{} member {}", array.name, member.index);
    });
    assert!(bitmaps > 5, "only {bitmaps} bitmaps");
}

#[test]
fn facts_are_those_of_the_checked_superblock() {
    each_member(|array, member, image| {
        let name = format!("{} member {}", array.name, member.index);
        let at = image.super_offset as u64;
        let sb = Superblock::parse(image.version, at, member.bytes, &image.bytes[at as usize..]);
        let sb = sb.unwrap_or_else(|why| panic!("{name}: {why}"));
        let facts = examine::facts(&image.written(), &Surroundings::unknown(member.bytes));
        assert_eq!(facts.rejected, None, "{name}");
        assert_eq!(facts.array_uuid, sb.array_uuid.to_string(), "{name}");
        assert_eq!(facts.name.unwrap_or_default(), sb.name, "{name}");
        assert_eq!((facts.created_s, facts.updated_s), (sb.created.seconds, sb.updated.seconds));
        assert_eq!((facts.events, facts.raid_disks), (sb.events, sb.raid_disks), "{name}");
        assert_eq!(
            (facts.level_number, facts.chunk_bytes),
            (sb.level.number(), sb.chunk),
            "{name}"
        );
        assert_eq!(
            (facts.data_offset_bytes, facts.device_number),
            (sb.data_offset, sb.device_number)
        );
        assert_eq!(facts.clean, sb.is_clean(), "{name}");
        assert_eq!(facts.write_mostly, sb.write_mostly, "{name}");
        assert_eq!(facts.recovery_offset_bytes, sb.recovery_offset, "{name}");
        let (role, role_number) = match sb.role() {
            braid_md::Role::Active(number) if sb.is_replacement() => ("replacement", Some(number)),
            braid_md::Role::Active(number) => ("active", Some(number)),
            braid_md::Role::Spare => ("spare", None),
            braid_md::Role::Faulty => ("faulty", None),
            braid_md::Role::Journal => ("journal", None),
        };
        assert_eq!((facts.role, facts.role_number), (role, role_number.map(u32::from)), "{name}");
    });
}

#[test]
fn names_are_local_to_the_host_that_gave_them() {
    let array = braid_golden::named("raid1-2");
    let member = &array.members[0];
    let image = Image::of(&array, member);
    let name_line = |host| {
        let around = Surroundings { host, ..Surroundings::unknown(member.bytes) };
        let text = examine::text(&image.written(), &around);
        text.lines().find(|line| line.contains("Name :")).expect("the name").to_owned()
    };
    assert_eq!(name_line(Some("klab")), "           Name : klab:v  (local to host klab)");
    for other in [None, Some(""), Some("kla"), Some("klab:"), Some("klab:v")] {
        assert_eq!(name_line(other), "           Name : klab:v");
    }
}

/// The device's number, of which the manifest does not tell.
fn number(image: &Image) -> u32 {
    let at = match image.version {
        Version::V0_90 => image.super_offset + 992 * 4,
        _ => image.super_offset + 160,
    };
    u32::from_le_bytes(image.bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The kernel's knowledge of the array, from the manifest and the superblocks. Only momentary values are taken
/// from the kernel's own text: the bitmap's pages in use, and a recovery's speed.
fn running(array: &Golden) -> Array {
    let disk = if array.made_with.engine.starts_with("uml") { "ubd" } else { "vd" };
    let mut in_sync = vec![false; array.raid_disks as usize];
    let mut members = Vec::new();
    let mut recovered = None;
    for member in array.present().filter(|member| !member.state.contains("stale")) {
        let is = |flag: &str| member.state.split(',').any(|found| found == flag);
        members.push(mdstat::Member {
            name: format!("{disk}{}", char::from(b'a' + member.index as u8)),
            number: number(&Image::of(array, member)),
            write_mostly: is("write_mostly"),
            spare: member.role == Role::Spare,
            replacement: is("replacement"),
            ..mdstat::Member::default()
        });
        match member.role {
            Role::Slot(slot) if is("in_sync") => in_sync[slot as usize] = true,
            _ => {}
        }
        if is("recovering") {
            recovered = member.recovery_offset_sectors.map(|sectors| sectors * 512);
        }
    }
    let total = array.sysfs["component_size"].parse::<u64>().map_or(0, |kib| kib * 1024);
    let action = recovered.map_or(Action::Idle, |done| {
        let speed = number_after(&array.mdstat, "speed=") * 1024;
        Action::Working(Progress {
            work: Work::Recovery,
            done,
            total,
            recent: done,
            window_s: done / speed,
        })
    });
    let bitmap = (array.sysfs["bitmap/location"] != "none").then(|| Bitmap {
        used_pages: number_after(&array.mdstat, "bitmap: "),
        pages: 1,
        page_size: 4096,
        chunk: array.sysfs["bitmap/chunksize"].parse().expect("a chunk"),
    });
    Array {
        name: "md0".to_owned(),
        running: Some(Running {
            access: Access::ReadWrite,
            level: array.level.parse().expect("a level"),
            layout: array.layout_number.max(0) as u32,
            chunk: array.chunk_bytes,
            in_sync,
            action,
        }),
        metadata: Metadata::Internal(array.metadata.parse().expect("a version")),
        members,
        size: array.array_bytes,
        bitmap,
    }
}

fn number_after(text: &str, start: &str) -> u64 {
    let (_, rest) = text.split_once(start).expect(start);
    let end = rest.find(|char: char| !char.is_ascii_digit()).expect("an end");
    rest[..end].parse().expect("a number")
}

#[test]
fn mdstat_is_the_kernels_text() {
    let personalities = ["raid0", "raid1", "raid10", "raid6", "raid5", "raid4", "linear"];
    let arrays = braid_golden::all();
    assert!(arrays.len() > 40, "only {} arrays", arrays.len());
    for array in arrays {
        // Linear is not in the newer of the two kernels.
        let count = if array.made_with.kernel.starts_with("6.1.") { 7 } else { 6 };
        let text = mdstat(&personalities[..count], &[running(&array)]);
        assert_eq!(text, array.mdstat, "{}", array.name);
    }
}
