use flate2::{Compress, Compression, FlushCompress};

use braid_stack::Stack;

use super::*;

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 1024);
    let mut deflater = Compress::new(Compression::fast(), false);
    deflater.compress_vec(content, &mut out, FlushCompress::Finish).expect("there is room");
    out
}

fn text() -> Vec<u8> {
    (0..4000_u32)
        .flat_map(|line| format!("line {}\n", line.wrapping_mul(2_654_435_761)).into_bytes())
        .collect()
}

fn gzipped() -> Vec<u8> {
    let text = text();
    let mut file = b"\x1f\x8b\x08\x08\0\0\0\0\0\x03name\0".to_vec();
    file.extend(deflated(&text));
    file.extend(crc32fast::hash(&text).to_le_bytes());
    file.extend(u32::try_from(text.len()).expect("short").to_le_bytes());
    file
}

fn png() -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, length) in [(b"IHDR", 13), (b"IDAT", 5000), (b"IDAT", 800), (b"IEND", 0)] {
        let mut chunk = name.to_vec();
        chunk.extend((0..length).map(|at: u32| at.to_le_bytes()[0]));
        file.extend(length.to_be_bytes());
        let crc = crc32fast::hash(&chunk);
        file.extend(chunk);
        file.extend(crc.to_be_bytes());
    }
    file
}

/// An archive of two members, one stored and one deflated.
fn zipped() -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    let text = text();
    for (name, method) in [("stored", 0_u16), ("packed", 8)] {
        let data = if method == 0 { text.clone() } else { deflated(&text) };
        let local = u32::try_from(file.len()).expect("short");
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("short").to_le_bytes();
        let mut common = vec![20, 0, 0, 0];
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        common.extend(crc32fast::hash(&text).to_le_bytes());
        common.extend(length(&data));
        common.extend(length(&text));
        common.extend([6, 0, 0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(name.as_bytes());
        file.extend(data);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(common);
        directory.extend([0; 10]);
        directory.extend(local.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let start = u32::try_from(file.len()).expect("short");
    let size = u32::try_from(directory.len()).expect("short");
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0\x02\0\x02\0");
    file.extend(size.to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0; 2]);
    file
}

#[test]
fn a_change_of_any_byte_under_a_checksum_is_noticed_where_it_is() {
    for (file, format, covered) in [
        (gzipped(), Format::Gzip, 16..gzipped().len()),
        (png(), Format::Png, 16..png().len()),
        (zipped(), Format::Zip, 40..45_000),
    ] {
        assert_eq!(Format::of(&file), Some(format));
        assert_eq!(format.check(&file), Finding::Good, "{format:?}");
        let mut padded = file.clone();
        padded.resize(file.len() + 3000, 0);
        assert_eq!(format.check(&padded), Finding::Good, "{format:?}, padded");
        for at in covered.step_by(97) {
            let mut broken = file.clone();
            broken[at] ^= 0x10;
            let Finding::Bad(faults) = format.check(&broken) else { panic!("{format:?}: {at}") };
            let is_there = faults.iter().any(|fault| fault.range.contains(&at));
            assert!(is_there, "{format:?}: {at} is not in {faults:?}");
        }
        let half = format.check(&file[..file.len() / 2]);
        assert!(matches!(half, Finding::Bad(_)), "{format:?}, half of it");
    }
}

#[test]
fn structures_are_followed_to_their_end() {
    let mut tar = vec![0; 512];
    tar[..4].copy_from_slice(b"name");
    tar[124..135].copy_from_slice(b"00000001000");
    tar[257..262].copy_from_slice(b"ustar");
    let sum: u32 = tar.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 256;
    tar[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    tar.resize(512 + 512 + 1024, 0);
    let mut jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xda\0\x02".to_vec();
    jpeg.extend([1, 0xff, 0, 2, 0xff, 0xd0, 3, 0xff, 0xd9]);
    let pdf = b"%PDF-1.4\nxref\n0 1\nstartxref\n9\n%%EOF\n".to_vec();
    for (file, format, at) in
        [(tar, Format::Tar, 3), (jpeg, Format::Jpeg, 14), (pdf, Format::Pdf, 10)]
    {
        assert_eq!(Format::of(&file), Some(format));
        assert_eq!(format.check(&file), Finding::Good, "{format:?}");
        let mut broken = file.clone();
        broken[at] = 7;
        assert!(matches!(format.check(&broken), Finding::Bad(_)), "{format:?}");
        fuzz_samples(&broken);
    }
    assert_eq!(Format::of(b"PK"), None);
}

#[test]
fn a_share_has_the_bounds_of_wilson() {
    let near = |one: (f64, f64), other: (f64, f64)| {
        (one.0 - other.0).abs() < 0.001 && (one.1 - other.1).abs() < 0.001
    };
    assert!(wilson(10, 0).is_some_and(|bounds| near(bounds, (0.722, 1.0))));
    assert!(wilson(81, 182).is_some_and(|bounds| near(bounds, (0.255, 0.366))));
    assert_eq!(wilson(0, 0), None);
}

#[test]
fn the_member_that_bad_files_share_is_suspected() {
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let bad = [of(&["a", "c"]), of(&["b", "c"])];
    assert_eq!(suspect(&bad, &[]), Some("c".to_owned()));
    assert_eq!(suspect(&bad[..1], &[]), None, "one file proves nothing");
    let long = [of(&["a", "b", "c"]), of(&["b", "c"])];
    assert_eq!(suspect(&long, &[]), None);
    assert_eq!(suspect(&long, &[of(&["a", "b"])]), Some("c".to_owned()));
}

#[test]
fn bytes_are_traced_to_their_members() {
    let stack = "raid5(chunk=64K, layout=left-symmetric, file(/a, length=1M), \
                 slice(holes(/b, map=/b.map), offset=2M, length=1M), missing)";
    let places =
        |text: &str| Places::of(&Stack::parse_to_read(text).expect("a stack")).expect("places");
    let of = |range: Range<u64>| places(stack).members(&range).into_iter().collect::<Vec<_>>();
    assert_eq!(of(0..4096), ["/a"]);
    assert_eq!(of(60_000..70_000), ["/a", "/b"]);
    // Row 1 has its data on roles 2 and 0; role 2 is computed from the others.
    assert_eq!(of(131_072..131_073), ["/a", "/b"]);
    let part = format!("slice({stack}, offset=64K, length=64K)");
    assert_eq!(places(&part).members(&(0..512)).into_iter().collect::<Vec<_>>(), ["/b"]);
    assert!(Places::of(&Stack::parse_to_read("ram(1M)").expect("a stack")).is_none());
}
