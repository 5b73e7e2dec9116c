//! Expressions that parse, what they mean, and their canonical text.

use braid_level::{ParityLayout, ParityLevel, Raid0Layout, Raid10Layout};
use braid_stack::{
    ByteSize, File, Latency, Linear, Md, Missing, Model, ModelOverrides, Node, Parity, Raid0,
    Raid1, Raid10, Ram, Rate, Stack,
};

/// (source, canonical); an empty canonical text means "the source itself".
const GOOD: &[(&str, &str)] = &[
    ("ram(1G)", ""),
    (" ram ( 1024MiB ) ", "ram(1G)"),
    ("ram(1G, lock)", ""),
    (
        "ram(1G, image=\"/srv/my image\", overcommit, lock, logical_block=4096, huge, preallocate)",
        "ram(1G, preallocate, huge, lock, overcommit, logical_block=4K, image=\"/srv/my image\")",
    ),
    ("ram(1G, logical_block=512)", "ram(1G)"),
    ("/dev/sdb", ""),
    ("./a.img", ""),
    ("../a", ""),
    ("~/a", ""),
    ("a.img", ""),
    ("images/a", ""),
    ("/dev/disk/by-id/usb-SanDisk_Ultra:0=0", ""),
    ("\"sdb\"", ""),
    ("\"a.img\"", "a.img"),
    ("\"/srv/my disk (1), old.img\"", ""),
    ("\"/srv/\\\"x\\\"\\\\y\\n\\t\\u{1}.img\"", ""),
    ("/srv/Größe.img", ""),
    ("\"usb=1.img\"", ""),
    ("file(/srv/a.img)", "/srv/a.img"),
    ("file(sdb)", "\"sdb\""),
    ("file(a.img, offset=0)", "a.img"),
    ("file(a.img, offset=1M, length=1G)", ""),
    ("file(length=1G, a.img)", "file(a.img, length=1G)"),
    ("linear(a.img)", ""),
    ("linear(a.img,b.img)", "linear(a.img, b.img)"),
    ("linear(\n  a.img,\n  b.img\n)", "linear(a.img, b.img)"),
    ("raid0(a.img, b.img)", "raid0(chunk=512K, a.img, b.img)"),
    ("raid0(a.img, b.img, chunk=128K)", "raid0(chunk=128K, a.img, b.img)"),
    ("raid0(chunk=12K, layout=original, a.img, b.img)", ""),
    ("raid0(chunk=64M, layout=alternate, a.img)", "raid0(chunk=64M, a.img)"),
    ("linear(ram(1G), raid0(a.img, b.img))", "linear(ram(1G), raid0(chunk=512K, a.img, b.img))"),
    (
        "model(usb-flash, size=2G, bus=usb2:0, read=30MB/s, write=8M/s, latency=1.5ms, bus_rate=35M/s)",
        "model(usb-flash, size=2G, bus=usb2:0, read=30MB/s, write=8M/s, latency=1500us, bus_rate=35M/s)",
    ),
    ("model(hdd7200, size=2T)", ""),
    ("model(mine.toml, size=2T)", ""),
    ("model(\"my disks/one\", size=2T, bus=a)", ""),
    ("model(\"./mine\", size=2T)", "model(./mine, size=2T)"),
    ("cache(a.img, size=1G)", "cache(size=1G, mode=write-through, a.img)"),
    (
        "cache(size=64M, mode=write-around, block=64K, policy=lru, cutoff=4M, raid0(chunk=4K, a.img))",
        "",
    ),
    ("cache(size=1G, policy=s3-fifo, ram(2G))", "cache(size=1G, mode=write-through, ram(2G))"),
    ("slice(a.img)", ""),
    (
        "slice(length=1G, offset=1M, raid1(a.img, missing))",
        "slice(raid1(a.img, missing), offset=1M, length=1G)",
    ),
    ("holes(a.img, map=a.map)", ""),
    ("rbd(rbd/disk)", ""),
    (
        "rbd(pool/tenant/disk@monday, deadline=10s, id=backup, conf=/etc/ceph/b.conf)",
        "rbd(pool/tenant/disk@monday, conf=/etc/ceph/b.conf, id=backup, deadline=10s)",
    ),
    ("rbd(\"rbd/my disk\", deadline=30s)", "rbd(\"rbd/my disk\")"),
    ("md(a.img, rbd(rbd/disk))", ""),
    (
        "holes(map=\"my map\", slice(a.img, length=512))",
        "holes(slice(a.img, length=512), map=\"my map\")",
    ),
    ("cow(holes(a.img, map=a.map), store=\"a.cow\")", "cow(holes(a.img, map=a.map), store=a.cow)"),
    // What is only read may be read in several places.
    ("linear(cow(slice(a.img, length=1M), store=a), cow(slice(a.img, length=2M), store=b))", ""),
    ("cache(size=1G, mode=write-back, volatile=yes, a.img)", ""),
    (
        "cache(size=1G, saved=data, warm=\"/srv/my cache\", a.img)",
        "cache(size=1G, mode=write-through, warm=\"/srv/my cache\", saved=data, a.img)",
    ),
    ("cache(size=1G, mode=write-through, warm=/srv/c, a.img)", ""),
    (
        "cache(a.img, log=/dev/nvme0n1p4, drain=20MB/s, size=1G, age=5s, mode=write-back, dirty=256M, volatile=no)",
        "cache(size=1G, mode=write-back, log=/dev/nvme0n1p4, dirty=256M, age=5s, drain=20MB/s, a.img)",
    ),
    ("cache(size=8M, mode=write-back, log=raid1(l.img, m.img), raid1(a.img, b.img))", ""),
    ("raid1(a.img)", ""),
    ("raid1( a.img,missing )", "raid1(a.img, missing)"),
    ("raid1(missing, a.img, missing)", ""),
    // In quotes it is a path.
    ("raid1(\"missing\", missing)", ""),
    ("raid1(raid0(chunk=64K, a.img, b.img), ram(1G))", ""),
    ("raid10(a.img, b.img)", "raid10(chunk=512K, layout=n2, a.img, b.img)"),
    (
        "raid10(layout=f3, a.img, missing, b.img, chunk=4K)",
        "raid10(chunk=4K, layout=f3, a.img, missing, b.img)",
    ),
    ("raid10(chunk=64M, layout=o2, a.img, b.img, c.img)", ""),
    ("raid4(a.img, b.img)", "raid4(chunk=512K, a.img, b.img)"),
    ("raid4(a.img, missing, chunk=4K)", "raid4(chunk=4K, a.img, missing)"),
    ("raid5(a.img, b.img)", "raid5(chunk=512K, layout=left-symmetric, a.img, b.img)"),
    (
        "raid5(layout=ra, missing, b.img, chunk=64K, ram(1G))",
        "raid5(chunk=64K, layout=right-asymmetric, missing, b.img, ram(1G))",
    ),
    (
        "raid6(a.img, missing, c.img, missing)",
        "raid6(chunk=512K, layout=left-symmetric, a.img, missing, c.img, missing)",
    ),
    ("raid6(chunk=64M, layout=left-symmetric-6, a.img, b.img, c.img, d.img, e.img)", ""),
    ("md(a.img)", ""),
    ("md(/dev/sdb,file(b.img, offset=1M), \"c\")", "md(/dev/sdb, file(b.img, offset=1M), \"c\")"),
    ("linear(md(a.img, b.img), ram(1M))", ""),
    // Two parts of one file that share no byte.
    (
        "linear(file(a.img, offset=0, length=1M), file(./a.img, offset=1M))",
        "linear(file(a.img, length=1M), file(./a.img, offset=1M))",
    ),
];

#[test]
fn good_expressions_have_a_canonical_form() {
    for (source, canonical) in GOOD {
        let stack = Stack::parse(source).unwrap_or_else(|error| panic!("{}", error.render(source)));
        let expected = if canonical.is_empty() { source } else { canonical };
        assert_eq!(&stack.to_string(), expected);
        assert_eq!(Stack::parse(expected).as_ref(), Ok(&stack));
    }
}

#[test]
fn every_value_arrives() {
    let source = "linear(ram(1G), raid0(chunk=64K, layout=original, file(/a, offset=512, length=1K), b.img), \
                  model(hdd, size=1T, bus=sata:1, read=150MB/s, latency=4ms))";
    let file = |path: &str, offset, length: Option<u64>| {
        Stack::from(Node::from(File {
            offset: ByteSize(offset),
            length: length.map(ByteSize),
            ..File::whole_at(path.to_owned())
        }))
    };
    let expected = Linear {
        members: vec![
            Node::Ram(Ram::new(ByteSize::gib(1))).into(),
            Node::Raid0(Raid0 {
                chunk: ByteSize::kib(64),
                layout: Raid0Layout::Original,
                members: vec![file("/a", 512, Some(1024)), file("b.img", 0, None)],
            })
            .into(),
            Node::Model(Model {
                profile: "hdd".to_owned(),
                size: ByteSize(1 << 40),
                bus: Some("sata:1".to_owned()),
                overrides: ModelOverrides {
                    read: Some(Rate(150_000_000)),
                    latency: Some(Latency(4_000_000)),
                    ..ModelOverrides::default()
                },
            })
            .into(),
        ],
    };
    assert_eq!(Stack::parse(source), Ok(Node::Linear(expected).into()));
}

#[test]
fn every_value_of_the_levels_with_copies_arrives() {
    let source = "raid1(md(b.img), missing, raid10(chunk=64K, layout=o3, ./a, missing, ram(1G)))";
    let file = |path: &str| Stack::from(Node::File(File::whole_at(path.to_owned())));
    let raid10 = Raid10 {
        chunk: ByteSize::kib(64),
        layout: Raid10Layout::from_name("o3").unwrap(),
        members: vec![
            file("./a"),
            Node::Missing(Missing).into(),
            Node::Ram(Ram::new(ByteSize::gib(1))).into(),
        ],
    };
    let expected = Raid1 {
        members: vec![
            Node::Md(Md { layout: None, members: vec![file("b.img")] }).into(),
            Node::Missing(Missing).into(),
            Node::Raid10(raid10).into(),
        ],
    };
    assert_eq!(Stack::parse(source), Ok(Node::Raid1(expected).into()));
}

#[test]
fn every_value_of_the_levels_with_parity_arrives() {
    let source = "raid4(chunk=4K, raid5(chunk=8K, layout=la, ./a, ./b), missing, \
                  raid6(layout=ddf-N-continue, missing, ./c, missing, ./d))";
    let file = |path: &str| Stack::from(Node::File(File::whole_at(path.to_owned())));
    let missing = || Stack::from(Node::Missing(Missing));
    let layout =
        |number| ParityLayout::of(ParityLevel::Raid6).find(|one| one.number() == number).unwrap();
    let raid5 = Parity {
        level: ParityLevel::Raid5,
        chunk: ByteSize::kib(8),
        layout: layout(0),
        members: vec![file("./a"), file("./b")],
    };
    let raid6 = Parity {
        level: ParityLevel::Raid6,
        chunk: ByteSize::kib(512),
        layout: layout(10),
        members: vec![missing(), file("./c"), missing(), file("./d")],
    };
    let expected = Parity {
        level: ParityLevel::Raid4,
        chunk: ByteSize::kib(4),
        layout: ParityLayout::ParityLast,
        members: vec![Node::Parity(raid5).into(), missing(), Node::Parity(raid6).into()],
    };
    assert_eq!(Stack::parse(source), Ok(Node::Parity(expected).into()));
}

#[test]
fn every_layout_of_parity_is_read_as_it_is_printed() {
    for (level, layouts) in [
        ("raid5", ParityLayout::of(ParityLevel::Raid5).collect::<Vec<_>>()),
        ("raid6", ParityLayout::of(ParityLevel::Raid6).collect()),
    ] {
        for layout in layouts {
            let source = format!("{level}(chunk=4K, layout={layout}, ./a, ./b, ./c, ./d)");
            assert_eq!(Stack::parse(&source).unwrap().to_string(), source);
        }
    }
}

#[test]
fn what_is_missing_is_a_member_and_no_leaf() {
    let source = "raid1(a.img, missing, linear(raid10(missing, b.img), ram(1M)))";
    let mut stack = Stack::parse(source).unwrap();
    assert_eq!(stack.members().len(), 3);
    assert!(stack.members()[1].is_missing());
    assert_eq!(stack.members()[1].span.start, 13);
    let leaves: Vec<String> = stack.leaves().iter().map(ToString::to_string).collect();
    assert_eq!(leaves, ["a.img", "b.img", "ram(1M)"]);
    let paths: Vec<&str> = stack.member_paths().iter().filter_map(|path| path.to_str()).collect();
    assert_eq!(paths, ["a.img", "b.img"]);
    for member in stack.members_mut() {
        *member = Node::Missing(Missing).into();
    }
    assert_eq!(stack.to_string(), "raid1(missing, missing, missing)");
    assert!(stack.leaves().is_empty());
}

#[test]
fn what_is_only_read_may_be_named_twice() {
    let shared =
        "linear(slice(raid0(a.img, b.img), length=1M), slice(linear(a.img, b.img), offset=1M))";
    assert!(Stack::parse(shared).is_err());
    assert_eq!(Stack::parse_to_read(shared).unwrap().files().len(), 4);
    // Two members with one superblock are no array, even to read.
    assert!(Stack::parse_to_read("md(a.img, ./a.img)").is_err());
    let stack = Stack::parse("linear(a.img, cow(b.img, store=b.cow))").unwrap();
    let written: Vec<bool> = stack.files().iter().map(|used| used.is_written).collect();
    assert_eq!(written, [true, false]);
}

#[test]
fn holes_cannot_be_written_but_in_front_of_them_can_be_a_store() {
    let part =
        |source: &str| Stack::parse(source).unwrap().unwritable_part().map(ToString::to_string);
    let holes = "holes(a.img, map=a.map)";
    assert_eq!(part(&format!("raid1(b.img, slice({holes}))")).as_deref(), Some(holes));
    assert_eq!(part(&format!("raid1(b.img, cow({holes}, store=a.cow))")), None);
    assert_eq!(part("raid1(b.img, missing)"), None);
}

#[test]
fn every_path_can_be_changed() {
    let source = "linear(cow(holes(a, map=./b), store=./c), ram(1M, image=./d), model(./e, size=1M), cache(size=1M, warm=./f, /g))";
    let mut stack = Stack::parse(&source.replace("(a,", "(./a,")).unwrap();
    fn visit(stack: &mut Stack, all: &mut Vec<String>) {
        assert_eq!(stack.own_path().cloned(), stack.own_path_mut().cloned());
        all.extend(stack.own_path_mut().cloned());
        stack.members_mut().iter_mut().for_each(|member| visit(member, all));
    }
    let mut all = Vec::new();
    visit(&mut stack, &mut all);
    assert_eq!(all, ["./c", "./b", "./a", "./d", "./e", "./f", "/g"]);
}

#[test]
fn leaves_know_their_place() {
    let source = "linear(ram(1G), raid0(a.img, \"ü b.img\"), model(hdd, size=1T))";
    let stack = Stack::parse(source).unwrap();
    let texts: Vec<&str> =
        stack.leaves().iter().map(|leaf| &source[leaf.span.start..leaf.span.end]).collect();
    assert_eq!(texts, ["ram(1G)", "a.img", "\"ü b.img\"", "model(hdd, size=1T)"]);
    let paths: Vec<&str> = stack.member_paths().iter().filter_map(|path| path.to_str()).collect();
    assert_eq!(paths, ["a.img", "ü b.img"]);
    let names: Vec<&str> = stack.leaves().iter().map(|leaf| leaf.node.name()).collect();
    assert_eq!(names, ["ram", "file", "file", "model"]);
}

#[test]
fn serde_is_the_text() {
    let stack: Stack = serde_json::from_str("\"raid0( a.img,b.img )\"").unwrap();
    assert_eq!(serde_json::to_string(&stack).unwrap(), "\"raid0(chunk=512K, a.img, b.img)\"");
    let error = serde_json::from_str::<Stack>("\"raid0()\"").unwrap_err().to_string();
    assert!(error.contains("column 1: `raid0` needs at least one member"), "{error}");
}

#[test]
fn limits_are_inclusive() {
    let members = vec!["ram(1M)"; braid_stack::MAX_MEMBERS].join(", ");
    assert!(Stack::parse(&format!("linear({members})")).is_ok());
    let depth = braid_stack::MAX_DEPTH;
    // `depth` levels of linear around a path.
    let deep = format!("{}a.img{}", "linear(".repeat(depth), ")".repeat(depth));
    assert_eq!(Stack::parse(&deep).unwrap().to_string(), deep);
}

#[test]
fn a_partition_is_a_file_by_its_number() {
    let stack = Stack::parse("md(part(./d1.img, 3), part(\"a b.img\", 5))").expect("a stack");
    assert_eq!(stack.to_string(), "md(part(./d1.img, 3), part(\"a b.img\", 5))");
    let names: Vec<_> = stack.member_names().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[0].to_str(), Some("part(./d1.img, 3)"));
    let called = File::called("part(/d1.img, 3)");
    assert_eq!((called.path.as_str(), called.partition), ("/d1.img", Some(3)));
    assert_eq!(File::called("/odd/part(x.img, 3)").path, "/odd/part(x.img, 3)", "a path");
    for (bad, why) in [
        ("part(d1.img)", "needs"),
        ("part(d1.img, 0)", "1 to 1024"),
        ("part(d1.img, x.y)", "1 to 1024"),
        ("part(d1.img, 1, 2)", "does not take this argument"),
        ("md(part(d1.img, 3), part(d1.img, 3))", "d1.img"),
        ("md(part(d1.img, 3), d1.img)", "d1.img"),
    ] {
        let error = Stack::parse(bad).expect_err(bad).to_string();
        assert!(error.contains(why), "{bad}: {error}");
    }
    assert!(Stack::parse("linear(part(d1.img, 3), part(d1.img, 4))").is_ok());
}

#[test]
fn an_image_of_a_cluster_is_known_by_its_name() {
    let one = Stack::remote_called("rbd(rbd/disk@s, id=a)".as_ref()).expect("an image");
    let other = Stack::parse("rbd(rbd/disk@s, deadline=5s)").unwrap();
    assert_eq!(one.remote_identity(), other.remote_identity());
    assert!(Stack::remote_called("./rbd(rbd/disk)".as_ref()).is_none());
    assert!(Stack::parse("linear(rbd(rbd/a), rbd(rbd/a, deadline=9s))").is_err());
    assert!(Stack::parse("linear(rbd(rbd/a), rbd(rbd/a, conf=/other))").is_ok());
}
