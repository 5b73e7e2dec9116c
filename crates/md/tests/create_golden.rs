//! Plans equal the metadata that mdadm wrote for the same command line.
//!
//! Differences, on purpose: raid0 over equal members records its layout (mdadm 4.2 did so only
//! over unequal ones, later ones always do). raid4, raid5: mdadm makes the last member a spare
//! with a number of its own. Not compared: what changes while an array runs (events, times,
//! roles, whether it is clean) and what is drawn (device UUIDs).

use braid_golden::{Golden, all};
use braid_md::create::{BitmapChoice, Consistency, Device, Place, Request, plan};
use braid_md::superblock::Contents;
use braid_md::{Features, Level, Superblock, Timestamp, Uuid, Version};

/// Returns the request to mdadm; `None` if mdadm was not used, or for arrays that braid does not make.
fn request(golden: &Golden) -> Option<Request> {
    let mut words = golden.create.split_whitespace();
    if words.next() != Some("mdadm") {
        return None;
    }
    let mut request = Request {
        level: golden.level.parse().expect("a level"),
        layout: None,
        version: Version::V1_2,
        chunk: None,
        members: Vec::new(),
        spares: Vec::new(),
        size: None,
        data_offset: None,
        bitmap: BitmapChoice::None,
        consistency: Some(Consistency::Resync),
        write_behind: 0,
        assume_clean: false,
        array_uuid: golden.uuid.parse().expect("a UUID"),
        name: "v".to_owned(),
        homehost: Some("klab".to_owned()),
        created: Timestamp::default(),
    };
    let mut devices = Vec::new();
    let mut write_mostly = false;
    while let Some(word) = words.next() {
        let kib = |text: &str| text.trim_end_matches('K').parse::<u64>().expect("KiB") * 1024;
        if let Some(index) = word.strip_prefix("/dev/klab/") {
            let index: usize = index.parse().expect("a number");
            let size = golden.members[index].bytes;
            let (label, uuid) = (index.to_string(), Uuid([index as u8 + 1; 16]));
            devices.push(Place::Device(Device { label, size, uuid, write_mostly }));
        } else if word == "missing" {
            devices.push(Place::Missing);
        } else if word == "--write-mostly" {
            write_mostly = true;
        } else if word == "-e" {
            request.version = words.next()?.parse().expect("a version");
        } else if word == "-p" {
            request.layout = Some(words.next()?.to_owned());
        } else if let Some(layout) =
            word.strip_prefix("--layout=").or_else(|| word.strip_prefix("-p"))
        {
            request.layout = Some(layout.to_owned());
        } else if let Some(chunk) = word.strip_prefix("-c") {
            request.chunk = Some(kib(chunk));
        } else if let Some(chunk) = word.strip_prefix("--bitmap-chunk=") {
            request.bitmap = BitmapChoice::Internal { chunk: Some(kib(chunk)) };
            request.consistency = Some(Consistency::Bitmap);
        } else if let Some(policy) = word.strip_prefix("--consistency-policy=") {
            request.consistency = Some(policy.parse().expect("a policy"));
        } else if word == "-l" {
            words.next();
        } else {
            let known = ["--", "-l", "-n", "-x", "/dev/md0"];
            assert!(known.iter().any(|known| word.starts_with(known)), "{}: {word}", golden.name);
        }
    }
    let spares = devices.split_off(golden.raid_disks as usize);
    request.members = devices;
    request.spares = spares
        .into_iter()
        .filter_map(|place| match place {
            Place::Device(device) => Some(device),
            Place::Missing => None,
        })
        .collect();
    Some(request)
}

fn superblock(golden: &Golden, index: usize) -> Superblock {
    let image = golden.expand_member(index);
    let version: Version = golden.metadata.parse().expect("a version");
    let offset = version.superblock_offset(image.len() as u64).expect("large enough");
    Superblock::parse(version, offset, image.len() as u64, &image[offset as usize..])
        .unwrap_or_else(|rejection| panic!("{} m{index}: {rejection}", golden.name))
}

#[test]
fn places_sizes_and_shapes_are_those_of_mdadm() {
    let mut compared = 0;
    for golden in all() {
        let Some(request) = request(&golden) else { continue };
        let plan = plan(&request).unwrap_or_else(|error| panic!("{}: {error}", golden.name));
        assert_eq!(plan.array_size, golden.array_bytes, "{}", golden.name);
        for planned in &plan.members {
            let index: usize = planned.label.parse().expect("a number");
            if !golden.members[index].present() {
                continue;
            }
            let (ours, theirs) = (&planned.superblock, superblock(&golden, index));
            let equal_raid0 = ours.level == Level::Raid0 && theirs.layout == 0;
            let changing = Features::BAD_BLOCKS
                .union(Features::RECOVERY_OFFSET)
                .union(if equal_raid0 { Features::RAID0_LAYOUT } else { Features::default() });
            let facts = |superblock: &Superblock| Contents {
                layout: if equal_raid0 { 0 } else { superblock.layout },
                features: superblock.features.without(changing),
                // What the running array changes, or what is drawn.
                created: Timestamp::default(),
                updated: Timestamp::default(),
                events: 0,
                resync: braid_md::Resync::Clean,
                roles: Vec::new(),
                device_number: 0,
                device_uuid: Uuid::default(),
                recovery_offset: None,
                old: None,
                raw: Vec::new(),
                ..superblock.clone().into_contents()
            };
            assert_eq!(facts(ours), facts(&theirs), "{} m{index}", golden.name);
            assert_eq!(ours.encode().len(), theirs.encode().len(), "{}", golden.name);
            compared += 1;
        }
    }
    assert!(compared > 130, "{compared}");
}
