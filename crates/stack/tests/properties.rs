//! Properties of all stacks and all texts.

use braid_level::{CacheMode, CachePolicy, ParityLayout, ParityLevel, Raid0Layout, Raid10Layout};
use braid_stack::{
    ByteSize, Cache, Cow, File, Holes, Latency, Linear, Md, Missing, Model, ModelOverrides, Node,
    Parity, Raid0, Raid1, Raid10, Ram, Rate, Slice, Stack, Warm, WriteBack, parse_expr,
};
use proptest::option;
use proptest::prelude::*;

fn size() -> impl Strategy<Value = ByteSize> {
    prop_oneof![1_u64..1 << 20, (0_u32..40).prop_map(|shift| 1 << shift)]
        .prop_map(|sectors| ByteSize(sectors * 512))
}

/// Paths of any text but NUL; the number makes each of them different.
fn file() -> impl Strategy<Value = Node> {
    let path = prop_oneof!["[^\\x00]{0,12}", "/dev/[a-z=:(), \"\\\\-]{0,12}", "[a-z~./=-]{0,9}"];
    let part = option::of(1_u32..1024);
    (path, any::<u64>(), size(), option::of(size()), any::<bool>(), part).prop_map(
        |(path, unique, offset, length, from_start, partition)| {
            let whole = File::whole_at(format!("{path}{unique:016x}"));
            let offset = if from_start { ByteSize(0) } else { offset };
            Node::File(match partition {
                Some(_) => File { partition, ..whole },
                None => File { offset, length, ..whole },
            })
        },
    )
}

fn model() -> impl Strategy<Value = Node> {
    let name = "[A-Za-z0-9._:-]{1,9}";
    let profile = prop_oneof![name, "[^\\x00]{0,9}/[^\\x00]{0,9}", "[^\\x00]{0,9}[.]toml"];
    let rate = || option::of((1_u64..).prop_map(Rate));
    let latency = option::of(any::<u64>().prop_map(Latency));
    (profile, size(), option::of(name), rate(), rate(), latency, rate()).prop_map(
        |(profile, size, bus, read, write, latency, bus_rate)| {
            let overrides = ModelOverrides { read, write, latency, bus_rate };
            Node::Model(Model { profile, size, bus, overrides })
        },
    )
}

fn ram() -> impl Strategy<Value = Node> {
    let words = any::<[bool; 4]>();
    let image = option::of("[^\\x00]{1,9}");
    (size(), words, 0u32..4, image).prop_map(|(size, words, shift, image)| {
        let logical_block = ByteSize(512 << shift);
        let size = ByteSize(size.bytes().next_multiple_of(logical_block.bytes()));
        let [preallocate, huge, lock, overcommit] = words;
        Node::Ram(Ram { size, preallocate, huge, lock, overcommit, logical_block, image })
    })
}

fn md() -> impl Strategy<Value = Node> {
    let members = prop::collection::vec(file().prop_map(Stack::from), 1..4);
    let layout = prop_oneof![Just(None), Just(Some(Raid0Layout::Original))];
    (layout, members).prop_map(|(layout, members)| Node::Md(Md { layout, members }))
}

/// A layout of raid10 over `members`: with at most as many copies.
fn raid10_layout(members: usize) -> impl Strategy<Value = Raid10Layout> {
    let kind = prop_oneof![Just('n'), Just('f'), Just('o')];
    (kind, 2..=members)
        .prop_map(|(kind, copies)| Raid10Layout::from_name(&format!("{kind}{copies}")).unwrap())
}

/// At least `least` members, of which the first is there.
fn some_missing(
    least: usize,
    member: impl Strategy<Value = Stack> + Clone,
) -> impl Strategy<Value = Vec<Stack>> {
    let other = prop_oneof![3 => member.clone(), 1 => Just(Node::Missing(Missing).into())];
    (member, prop::collection::vec(other, least - 1..5)).prop_map(|(first, mut members)| {
        members.insert(0, first);
        members
    })
}

fn one_of<T: Clone + std::fmt::Debug + 'static>(
    choices: impl IntoIterator<Item = T>,
) -> impl Strategy<Value = T> {
    prop::sample::select(choices.into_iter().collect::<Vec<_>>())
}

/// Members of a level with parity: at least `least`, of which up to `parities` are missing.
fn with_parity(
    least: usize,
    parities: usize,
    member: impl Strategy<Value = Stack>,
) -> impl Strategy<Value = Vec<Stack>> {
    let members = prop::collection::vec(member, least..least + 3);
    (members, prop::collection::vec(any::<prop::sample::Index>(), 0..=parities)).prop_map(
        |(mut members, missing)| {
            for index in missing {
                *index.get_mut(&mut members) = Node::Missing(Missing).into();
            }
            members
        },
    )
}

fn parity(level: ParityLevel, member: BoxedStrategy<Stack>) -> impl Strategy<Value = Stack> {
    let members = with_parity(level.least_members(), level.parities(), member);
    (12_u32..=26, one_of(ParityLayout::of(level)), members).prop_map(
        move |(shift, layout, members)| {
            Node::Parity(Parity { level, chunk: ByteSize(1 << shift), layout, members }).into()
        },
    )
}

fn stack() -> impl Strategy<Value = Stack> {
    let leaf = prop_oneof![ram(), file(), model(), md()];
    leaf.prop_map(Stack::from).prop_recursive(4, 40, 5, |member| {
        let members = || prop::collection::vec(member.clone(), 1..5);
        let layout = prop_oneof![Just(Raid0Layout::Original), Just(Raid0Layout::Alternate)];
        prop_oneof![
            members().prop_map(|members| Node::Linear(Linear { members }).into()),
            (member.clone().prop_map(Box::new), size(), option::of(size()), 0..3, "[^\\x00]{1,9}")
                .prop_map(|(origin, offset, length, kind, path)| {
                    let node = match kind {
                        0 => Node::Slice(Slice { origin, offset, length }),
                        1 => Node::Holes(Holes { origin, map: path }),
                        _ => Node::Cow(Cow { origin, store: path }),
                    };
                    node.into()
                }),
            (
                12_u32..=16,
                one_of(CacheMode::ALL),
                one_of(CachePolicy::ALL),
                option::of(("[^\\x00]{1,9}", any::<bool>())),
                prop::collection::vec(member.clone(), 1..=2)
            )
                .prop_map(|(shift, mode, policy, warm, mut devices)| {
                    let warm = warm.map(|(path, has_data)| Warm { path, has_data });
                    let block = ByteSize(1 << shift);
                    let (size, cutoff) = (ByteSize(1 << (shift + 3)), Some(ByteSize::mib(4)));
                    let cutoff = cutoff.filter(|_| shift % 2 == 0);
                    let is_write_back = mode == CacheMode::WriteBack;
                    devices.truncate(if is_write_back { 2 } else { 1 });
                    let dirty = Some(ByteSize(1 << (shift + 2))).filter(|_| shift % 3 == 0);
                    let age = Some(Latency(5_000_000)).filter(|_| shift % 2 == 0);
                    let drain = Some(Rate(3_000_000)).filter(|_| shift % 3 == 1);
                    let write_back = is_write_back.then_some(WriteBack { dirty, age, drain });
                    Node::Cache(Cache {
                        size,
                        block,
                        mode,
                        policy,
                        cutoff,
                        write_back,
                        warm,
                        devices,
                    })
                    .into()
                }),
            (1_u64..=16384, layout, members()).prop_map(|(chunk, layout, members)| {
                Node::Raid0(Raid0 { chunk: ByteSize::kib(4 * chunk), layout, members }).into()
            }),
            some_missing(1, member.clone())
                .prop_map(|members| Node::Raid1(Raid1 { members }).into()),
            some_missing(2, member.clone())
                .prop_flat_map(|members| (12_u32..=26, raid10_layout(members.len()), Just(members)))
                .prop_map(|(shift, layout, members)| {
                    Node::Raid10(Raid10 { chunk: ByteSize(1 << shift), layout, members }).into()
                }),
            parity(ParityLevel::Raid4, member.clone()),
            parity(ParityLevel::Raid5, member.clone()),
            parity(ParityLevel::Raid6, member.clone()),
        ]
    })
}

/// Pieces of the language in any order: nearly right, so it reaches deep into the checks.
fn scramble() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "linear(",
        "raid0(",
        "ram(",
        "file(",
        "model(",
        "raid1(",
        "raid10(",
        "raid4(",
        "raid5(",
        "raid6(",
        "layout=ls",
        "md(",
        "slice(",
        "holes(",
        "cow(",
        "map=m",
        "store=s",
        "missing",
        "n2",
        "foo(",
        "(",
        ")",
        ")",
        ",",
        ", ",
        "=",
        "chunk=",
        "size=",
        "layout=",
        "offset=",
        "1G",
        "64K",
        "0",
        "a.img",
        "./b",
        "\"",
        "\"x y\"",
        "\\u{41}",
        "usb-flash",
        "original",
        "ü",
        "\u{0}",
        "\n",
        " ",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn display_parses_back(stack in stack()) {
        let text = stack.to_string();
        let parsed = match Stack::parse(&text) {
            Ok(parsed) => parsed,
            Err(error) => return Err(TestCaseError::fail(error.render(&text))),
        };
        prop_assert_eq!(parsed.to_string(), text);
        prop_assert_eq!(parsed, stack);
    }

    #[test]
    fn no_text_panics(text in prop_oneof!["\\PC*", any::<String>(), scramble()]) {
        let _ = parse_expr(&text);
        if let Err(error) = Stack::parse(&text) {
            prop_assert!(error.column() <= text.chars().count() + 1);
            prop_assert!(!error.render(&text).is_empty());
            // The caret can also be drawn under a text that the error does not come from.
            let _ = error.render("");
        }
    }
}
