//! What braid prints of the golden arrays' members is what mdadm and the kernel printed.

use braid_golden::{Golden, Member, Role};
use braid_md::examine::{self, Surroundings, Written};
use braid_md::mdstat::{self, Access, Action, Array, Bitmap, Metadata, Running, mdstat};
use braid_md::{Level, Version};

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

fn running(array: &Golden) -> Array {
    let level: Level = array.level.parse().expect("a level");
    let mut in_sync = vec![false; array.raid_disks as usize];
    let mut members = Vec::new();
    for member in array.present().filter(|member| !member.state.contains("stale")) {
        members.push(mdstat::Member {
            name: format!("ubd{}", char::from(b'a' + member.index as u8)),
            number: number(&Image::of(array, member)),
            write_mostly: member.state.contains("write_mostly"),
            spare: member.role == Role::Spare,
            ..mdstat::Member::default()
        });
        if let Role::Slot(slot) = member.role {
            in_sync[slot as usize] = true;
        }
    }
    let bitmap_chunk = array.sysfs["bitmap/chunksize"].parse().unwrap_or(0);
    let has_bitmap = array.sysfs["bitmap/location"] != "none";
    Array {
        name: "md0".to_owned(),
        running: Some(Running {
            access: Access::ReadWrite,
            level,
            layout: array.layout_number.max(0) as u32,
            chunk: array.chunk_bytes,
            in_sync,
            action: Action::Idle,
        }),
        metadata: Metadata::Internal(array.metadata.parse().expect("a version")),
        members,
        size: array.array_bytes,
        bitmap: has_bitmap.then_some(Bitmap {
            used_pages: 1,
            pages: 1,
            page_size: 4096,
            chunk: bitmap_chunk,
        }),
    }
}

#[test]
fn mdstat_is_the_kernels_text() {
    let personalities = ["raid0", "raid1", "raid10", "raid6", "raid5", "raid4", "linear"];
    let arrays = braid_golden::all();
    assert!(arrays.len() > 40, "only {} arrays", arrays.len());
    for array in arrays {
        let text = mdstat(&personalities, &[running(&array)]);
        assert_eq!(text, array.mdstat, "{}", array.name);
    }
}
