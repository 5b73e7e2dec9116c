//! The annotated superblock as a whole, the rules one by one, and bytes of all kinds.
//!
//! `BLESS=1 cargo test -p braid-md-text --test examine_explain` writes the expected texts anew.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use braid_golden::Golden;
use braid_md::Version;
use braid_md::superblock::checksum;
use braid_md_text::examine::{self, Refusal, Surroundings, Who, Written, bitmap_text, refusals};
use proptest::prelude::*;

/// The superblock of an array's first member.
#[derive(Clone)]
struct Sample {
    version: Version,
    device_size: u64,
    bytes: Vec<u8>,
}

impl Sample {
    fn of(array: &str) -> Sample {
        let array: Golden = braid_golden::named(array);
        let member = &array.members[0];
        let at = member.super_offset_bytes.expect("a superblock") as usize;
        let bytes = array.expand_member(0)[at..][..4096].to_vec();
        let version = array.metadata.parse().expect("a version");
        Sample { version, device_size: member.bytes, bytes }
    }

    /// With bytes overwritten, and the checksum made right again.
    fn with(mut self, patches: &[(usize, &[u8])]) -> Sample {
        for (offset, bytes) in patches {
            self.bytes[*offset..][..bytes.len()].copy_from_slice(bytes);
        }
        let at = if self.version == Version::V0_90 { 152 } else { 216 };
        if let Some((_, expected)) = checksum(self.version, &self.bytes) {
            self.bytes[at..at + 4].copy_from_slice(&expected.to_le_bytes());
        }
        self
    }

    fn written(&self) -> Written<'_> {
        Written::new(self.version, &self.bytes)
    }

    fn around(&self) -> Surroundings<'static> {
        Surroundings::unknown(self.device_size)
    }

    fn refusals(&self) -> Vec<Refusal> {
        refusals(&self.written(), &self.around())
    }
}

fn check_snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examine").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{} differs (BLESS=1 takes it over)", path.display());
}

#[test]
fn a_superblock_is_explained() {
    let sample = Sample::of("raid1-2");
    check_snapshot("raid1.txt", &examine::explain(&sample.written(), &sample.around()));
}

#[test]
fn an_old_superblock_is_explained() {
    let sample = Sample::of("raid5-3-v0.90");
    check_snapshot("raid5-v0.90.txt", &examine::explain(&sample.written(), &sample.around()));
}

#[test]
fn a_damaged_superblock_is_explained() {
    let mut sample = Sample::of("raid1-2");
    for (offset, byte) in [(9, 0xa0), (137, 0xff), (225, 2), (240, 7), (257, 9), (1000, 1)] {
        sample.bytes[offset] = byte;
    }
    check_snapshot("raid1-damaged.txt", &examine::explain(&sample.written(), &sample.around()));
}

#[test]
fn facts_are_json() {
    let sample = Sample::of("raid5-3-ppl");
    let facts = examine::facts(&sample.written(), &sample.around());
    assert_eq!(facts.rejected, None);
    let text = serde_json::to_string_pretty(&facts).expect("json") + "\n";
    check_snapshot("raid5-ppl.json", &text);
}

#[test]
fn facts_say_why_a_superblock_is_rejected() {
    let mut sample = Sample::of("raid1-2");
    sample.bytes[64] ^= 1;
    let facts = examine::facts(&sample.written(), &sample.around());
    assert!(facts.rejected.is_some_and(|why| why.contains("checksum")));
    assert_eq!(facts.refused_by[0].rule, "checksum");
    assert_ne!(facts.checksum, facts.checksum_expected);
}

/// Linux 6.1 assembled all of them: no rule may say that every kernel refuses one.
#[test]
fn nothing_that_the_kernel_made_is_refused_by_all() {
    for array in braid_golden::all() {
        for member in array.present() {
            let at = member.super_offset_bytes.expect("a superblock") as usize;
            let image = array.expand_member(member.index);
            let version = array.metadata.parse().expect("a version");
            let around = Surroundings {
                bitmap: member.bitmap_offset_bytes.map(|offset| &image[offset as usize..]),
                ..Surroundings::unknown(member.bytes)
            };
            for refusal in refusals(&Written::new(version, &image[at..]), &around) {
                assert!(!refusal.who.is_every_release(), "{}: {refusal:?}", array.name);
                let of_another_release = match refusal.who {
                    Who::LinuxBefore(release) => release != "6.19",
                    Who::LinuxBetween(..) => array.level == "linear",
                    Who::LinuxFrom(_) => array.level == "raid0",
                    _ => true,
                };
                assert!(of_another_release, "{}: {refusal:?}", array.name);
            }
        }
    }
}

/// A superblock with these bytes breaks the rule.
type Broken = (&'static str, &'static str, &'static [(usize, &'static [u8])]);

const BROKEN: &[Broken] = &[
    ("raid1-2", "magic", &[(0, &[0])]),
    ("raid1-2", "major_version", &[(4, &[2])]),
    ("raid1-2", "max_dev", &[(220, &[0x81, 7])]),
    ("raid1-2", "super_offset", &[(144, &[16])]),
    ("raid1-2", "unknown_features", &[(9, &[0x20])]),
    ("raid1-2", "padding", &[(12, &[1])]),
    ("raid1-2", "padding", &[(255, &[1])]),
    ("raid1-2", "logical_block_size", &[(225, &[2])]),
    ("raid1-2", "data_size", &[(136, &[9, 0])]),
    ("raid1-2", "device_too_small", &[(136, &[1, 0x78])]),
    ("raid1-2-v1.0", "device_too_small", &[(136, &[0xff, 0xff])]),
    ("raid1-2", "data_offset", &[(128, &[8, 0])]),
    ("raid1-2", "data_alignment", &[(128, &[1, 7])]),
    ("raid1-2", "level", &[(72, &[7])]),
    ("linear-2", "linear", &[]),
    ("raid0-2", "raid0_layout", &[]),
    ("raid0-2-v0.90", "raid0_layout", &[]),
    ("raid1-2", "raid0_layout_bit", &[(9, &[0x10])]),
    ("raid5-3", "layout", &[(76, &[6])]),
    ("raid6-4", "layout", &[(76, &[7])]),
    ("raid10-4-n2", "layout", &[(76, &[5])]),
    ("raid5-3", "chunk", &[(88, &[4, 0])]),
    ("raid5-3-v0.90", "chunk", &[(260, &[1])]),
    ("raid6-4", "raid_disks", &[(92, &[3])]),
    ("raid1-2-v0.90", "raid_disks", &[(40, &[28])]),
    ("raid5-3-ppl", "ppl_alone", &[(8, &[1])]),
    ("raid5-3-ppl", "ppl_alone", &[(9, &[12])]),
    ("raid1-2", "journal_role", &[(256, &[0xfd, 0xff])]),
    ("raid1-2", "bad_block_log", &[(8, &[8]), (186, &[9])]),
    ("raid1-2", "feature", &[(8, &[16])]),
    ("raid1-2", "braid", &[(160, &[200])]),
    ("raid1-2-v0.90", "minor_version", &[(8, &[92])]),
    ("raid1-2-v0.90", "device_too_small", &[(32, &[0xff, 0xff])]),
    ("raid1-2-v0.90", "above_2_tib", &[(32, &[0xff, 0xff, 0xff, 0xff])]),
];

#[test]
fn each_rule_finds_what_it_is_for() {
    for (array, rule, patches) in BROKEN {
        let sample = Sample::of(array).with(patches);
        let refusals = sample.refusals();
        let found = refusals.iter().find(|refusal| refusal.rule == *rule);
        assert!(found.is_some(), "{array} {patches:?} does not break {rule}: {refusals:?}");
        let whole = Sample::of(array).refusals();
        let was_whole = patches.is_empty() || whole.iter().all(|refusal| refusal.rule != *rule);
        assert!(was_whole || *rule == "feature", "{array} breaks {rule} as it is");
        let text = examine::explain(&sample.written(), &sample.around());
        let why = &found.expect("a refusal").why;
        let times = if *rule == "braid" { 1 } else { 2 };
        assert!(text.matches(why.as_str()).count() >= times, "{rule}: {why}\n{text}");
    }
}

#[test]
fn a_wrong_checksum_is_refused_by_everyone() {
    let mut sample = Sample::of("raid1-2");
    sample.bytes[64] ^= 1;
    let refusals = sample.refusals();
    assert_eq!((refusals[0].rule, refusals[0].who), ("checksum", Who::Everyone));
    assert!(refusals.iter().all(|refusal| refusal.who != Who::Braid), "said once is enough");
}

#[test]
fn a_bitmap_that_is_none_is_refused() {
    let array = braid_golden::named("raid1-2-bitmap");
    let member = &array.members[0];
    let sample = Sample::of("raid1-2-bitmap");
    let at = member.bitmap_offset_bytes.expect("a bitmap") as usize;
    let whole = array.expand_member(0)[at..][..4096].to_vec();
    for (offset, byte, rule) in [
        (0, 0, Some("bitmap")),
        (4, 7, Some("bitmap")),
        (4, 6, Some("lockless")),
        (4, 5, Some("clustered")),
        (52, 1, Some("bitmap")),
        (4, 4, None),
    ] {
        let mut bitmap = whole.clone();
        bitmap[offset] = byte;
        let around = Surroundings { bitmap: Some(&bitmap), ..sample.around() };
        let refusals = refusals(&sample.written(), &around);
        assert_eq!(refusals.first().map(|refusal| refusal.rule), rule, "{offset} {byte}");
    }
}

#[test]
fn the_other_byte_order_is_told() {
    let mut sample = Sample::of("raid5-3-v0.90");
    let text = examine::text(&sample.written(), &sample.around());
    sample.bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    // Counts of events lie as two halves, which change places, too.
    for at in [156, 164] {
        sample.bytes[at..at + 8].rotate_left(4);
    }
    assert!(sample.written().is_big_endian());
    assert_eq!(examine::text(&sample.written(), &sample.around()), text);
    assert_eq!(sample.refusals()[0].rule, "byte_order");
}

/// All that there is to print.
fn print_all(version: Version, device_size: u64, bytes: &[u8], bitmap: &[u8]) -> usize {
    let around = Surroundings {
        bitmap: Some(bitmap),
        host: Some("h"),
        ..Surroundings::unknown(device_size)
    };
    let sb = Written::new(version, bytes);
    let json = serde_json::to_string(&examine::facts(&sb, &around)).expect("json");
    let texts = [
        examine::text(&sb, &around),
        examine::export(&sb),
        examine::explain(&sb, &around),
        bitmap_text("m0", version, bitmap).unwrap_or_default(),
        json,
    ];
    texts.iter().map(String::len).sum()
}

/// Samples of several levels and versions; expanded once.
static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let arrays = ["raid1-2-bitmap", "raid10-3-f2", "raid5-3-ppl", "raid1-2-v1.0", "raid5-3-v0.90"];
    arrays.map(Sample::of).to_vec()
});

fn any_version() -> impl Strategy<Value = Version> {
    proptest::sample::select(Version::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes_can_be_shown(
        version in any_version(),
        device_size in any::<u64>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..5000),
        bitmap in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        prop_assert!(print_all(version, device_size, &bytes, &bitmap) < 1 << 20);
    }

    #[test]
    fn extremes_in_a_true_superblock_can_be_shown(
        sample in 0..SAMPLES.len(),
        patches in proptest::collection::vec(
            (0usize..64, proptest::sample::select(vec![0u32, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX])),
            1..12,
        ),
    ) {
        let mut sample = SAMPLES[sample].clone();
        for (word, value) in patches.into_iter().filter(|(word, _)| *word > 0) {
            sample.bytes[word * 4..][..4].copy_from_slice(&value.to_le_bytes());
        }
        let mut bitmap = vec![0xff; 300];
        bitmap[..8].copy_from_slice(b"bitm\x04\0\0\0");
        prop_assert!(print_all(sample.version, sample.device_size, &sample.bytes, &bitmap) < 1 << 20);
        let written = sample.written();
        if let Some((_, expected)) = checksum(sample.version, &sample.bytes) {
            let facts = examine::facts(&written, &sample.around());
            prop_assert_eq!(facts.checksum_expected, format!("{expected:08x}"));
        }
    }
}
