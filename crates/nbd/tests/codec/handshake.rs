//! The server's handshake, option by option, to the byte.

use std::sync::Arc;

use braid_nbd::fuzz::{drive_handshake, sample_exports};
use braid_nbd::handshake::{
    BASE_ALLOCATION_ID, Handshake, HandshakeError, MAX_OPTION_BYTES, MAX_OPTIONS,
    MAX_SKIPPED_BYTES, Policy, StartTls, Step,
};
use braid_nbd::protocol::option::OptionError;
use braid_nbd::protocol::{BlockSize, ExportError, ExportInfo, Exports, ReplyStyle};

use crate::{bytes, is_error, option, option_reply};

const FIXED: [u8; 4] = [0, 0, 0, 1];
const FIXED_NO_ZEROES: [u8; 4] = [0, 0, 0, 3];
const ACK: [u8; 4] = [0, 0, 0, 1];
const INFO: [u8; 4] = [0, 0, 0, 3];
/// has flags, flush, FUA, trim, write zeroes, multi conn, cache, fast zero.
const V0_FLAGS: [u8; 2] = [0x0d, 0x6d];
/// The same, and DF.
const V0_FLAGS_CHUNKED: [u8; 2] = [0x0d, 0xed];
const V0_SIZE: [u8; 8] = [0, 0, 0, 0, 0x40, 0, 0, 0];

fn serve(policy: Policy, flags: [u8; 4], options: &[Vec<u8>]) -> (Vec<u8>, Step) {
    let mut handshake = Handshake::new(sample_exports(), policy);
    let input = bytes(&[&flags, &options.concat()]);
    let (out, _, step) = drive_handshake(&mut handshake, &input, input.len());
    (out, step)
}

fn answer(options: &[Vec<u8>]) -> (Vec<u8>, Step) {
    serve(Policy::default(), FIXED, options)
}

fn go(name: &[u8], items: &[u8]) -> Vec<u8> {
    named(7, name, items)
}

fn named(number: u8, name: &[u8], items: &[u8]) -> Vec<u8> {
    let name_bytes = (name.len() as u32).to_be_bytes();
    let mut data = bytes(&[&name_bytes, name, &[0, items.len() as u8]]);
    items.iter().for_each(|item| data.extend([0, *item]));
    option(number, &data)
}

fn meta(number: u8, name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let name_bytes = (name.len() as u32).to_be_bytes();
    let mut data = bytes(&[&name_bytes, name, &(queries.len() as u32).to_be_bytes()]);
    for query in queries {
        data.extend((query.len() as u32).to_be_bytes());
        data.extend_from_slice(query);
    }
    option(number, &data)
}

fn fatal(step: Step) -> HandshakeError {
    match step {
        Step::Fatal(error) => error,
        other => panic!("not fatal: {other:?}"),
    }
}

const MORE: Step = Step::NeedMore { at_least: 16 };

#[test]
fn greeting() {
    let handshake = Handshake::new(sample_exports(), Policy::default());
    assert_eq!(handshake.greeting(), *b"NBDMAGICIHAVEOPT\x00\x03");
}

#[test]
fn go_enters_transmission_with_export_and_block_size() {
    let (out, step) = answer(&[go(b"v0", &[3])]);
    let expected = [
        option_reply(7, INFO, &bytes(&[&[0, 0], &V0_SIZE, &V0_FLAGS])),
        option_reply(7, INFO, &[0, 3, 0, 0, 2, 0, 0, 0, 0x10, 0, 3, 0, 0, 0]),
        option_reply(7, ACK, &[]),
    ];
    assert_eq!(out, expected.concat());
    let Step::Transmission(negotiated) = step else {
        panic!("{step:?}");
    };
    assert_eq!(negotiated.export_index, 0);
    assert_eq!(negotiated.style, ReplyStyle::Simple);
    assert_eq!(negotiated.transmission_flags, 0x0d6d);
    assert!(negotiated.block_size_promised && !negotiated.no_zeroes);
    assert_eq!(negotiated.base_allocation, None);
}

#[test]
fn info_answers_the_requested_items_and_stays() {
    let (out, step) = answer(&[named(6, b"", &[1, 2, 9])]);
    let expected = [
        option_reply(6, INFO, &bytes(&[&[0, 0], &V0_SIZE, &V0_FLAGS])),
        option_reply(6, INFO, b"\x00\x01v0"),
        option_reply(6, INFO, b"\x00\x02the first"),
        option_reply(6, INFO, &[0, 3, 0, 0, 2, 0, 0, 0, 0x10, 0, 3, 0, 0, 0]),
        option_reply(6, ACK, &[]),
    ];
    assert_eq!(out, expected.concat());
    assert_eq!(step, MORE);
}

#[test]
fn read_only_export_is_described_as_such() {
    let (out, step) = answer(&[go(b"archive", &[])]);
    // has flags, read only, flush, FUA, rotational, multi conn; no trim, no zeroes.
    let flags = [0x01, 0x1f];
    let head = option_reply(7, INFO, &bytes(&[&[0, 0, 0, 0, 0, 0, 0, 0, 0xa0, 0], &flags]));
    assert!(out.starts_with(&head), "{out:x?}");
    assert!(matches!(step, Step::Transmission(n) if n.export_index == 1));
}

#[test]
fn unknown_export_is_refused_and_haggling_goes_on() {
    for number in [6, 7] {
        let (out, step) = answer(&[named(number, b"nope", &[])]);
        assert!(is_error(&out, number, 6), "{out:x?}");
        assert_eq!(step, MORE);
    }
}

#[test]
fn malformed_go_is_invalid() {
    for data in [
        &b""[..],
        b"\x00\x00\x00\x09v0\x00\x00",
        b"\x00\x00\x00\x02v0\x00\x02\x00\x03",
        b"\x00\x00\x00\x02v0\x00\x00\x00",
        b"\x00\x00\x00\x02\xff\xff\x00\x00",
    ] {
        let (out, step) = answer(&[option(7, data)]);
        assert!(is_error(&out, 7, 3), "{data:x?}: {out:x?}");
        assert_eq!(step, MORE);
    }
}

#[test]
fn export_name_with_and_without_zeroes() {
    let head = bytes(&[&V0_SIZE, &V0_FLAGS]);
    let (out, step) = serve(Policy::default(), FIXED, &[option(1, b"v0")]);
    assert_eq!(out, bytes(&[&head, &[0; 124]]));
    assert!(matches!(step, Step::Transmission(n) if !n.no_zeroes));
    let (out, step) = serve(Policy::default(), FIXED_NO_ZEROES, &[option(1, b"")]);
    assert_eq!(out, head);
    assert!(matches!(step, Step::Transmission(n) if n.no_zeroes && !n.block_size_promised));
    // The one option of a client that is not "fixed".
    let (out, step) = serve(Policy::default(), [0; 4], &[option(1, b"v0")]);
    assert_eq!(out.len(), 134);
    assert!(matches!(step, Step::Transmission(_)));
}

#[test]
fn export_name_can_only_hang_up() {
    let (out, step) = answer(&[option(1, b"nope")]);
    let name = "nope".to_owned();
    assert_eq!(fatal(step), HandshakeError::UnknownExport { name });
    assert!(out.is_empty());
    let (_, step) = answer(&[option(1, &[0xff])]);
    assert_eq!(fatal(step), HandshakeError::BadExportName(OptionError::NotText));
    let (_, step) = answer(&[option(11, &[]), option(1, b"v0")]);
    assert_eq!(fatal(step), HandshakeError::ExportNameAfterExtendedHeaders);
    // Too long: known from the header, without waiting for the name.
    let (_, step) = answer(&[option(1, &[b'a'; 4097])[..16].to_vec()]);
    let bytes = 4097;
    let error = HandshakeError::BadExportName(OptionError::StringTooLong { bytes });
    assert_eq!(fatal(step), error);
}

#[test]
fn abort_is_acknowledged_and_ends() {
    let (out, step) = answer(&[option(2, b"bye")]);
    assert_eq!(out, option_reply(2, ACK, &[]));
    assert_eq!(step, Step::Aborted);
}

#[test]
fn list_names_and_describes() {
    let (out, step) = answer(&[option(3, &[])]);
    let expected = [
        option_reply(3, [0, 0, 0, 2], b"\x00\x00\x00\x02v0the first"),
        option_reply(3, [0, 0, 0, 2], b"\x00\x00\x00\x07archive"),
        option_reply(3, ACK, &[]),
    ];
    assert_eq!((out, step), (expected.concat(), MORE));
    let policy = Policy { list: false, ..Policy::default() };
    let (out, _) = serve(policy, FIXED, &[option(3, &[])]);
    assert!(is_error(&out, 3, 2));
}

#[test]
fn options_without_data_refuse_data() {
    for number in [3, 5, 8, 11] {
        let (out, step) = answer(&[option(number, b"x")]);
        assert!(is_error(&out, number, 3), "option {number}");
        assert_eq!(step, MORE);
    }
}

#[test]
fn starttls_is_refused_as_policy_says() {
    let (out, _) = answer(&[option(5, &[])]);
    assert!(is_error(&out, 5, 1));
    let policy = Policy { starttls: StartTls::ForbiddenByPolicy, ..Policy::default() };
    let (out, _) = serve(policy, FIXED, &[option(5, &[])]);
    assert!(is_error(&out, 5, 2));
}

#[test]
fn unknown_option_is_unsupported() {
    for number in [0, 4, 12, 255] {
        let (out, step) = answer(&[option(number, b"whatever")]);
        assert!(is_error(&out, number, 1), "option {number}");
        assert_eq!(step, MORE);
    }
}

#[test]
fn structured_and_extended_headers() {
    let ack = |number| option_reply(number, ACK, &[]);
    let (out, step) = answer(&[option(8, &[]), option(11, &[]), go(b"v0", &[])]);
    assert!(out.starts_with(&[ack(8), ack(11)].concat()));
    // DF is offered now.
    let export = option_reply(7, INFO, &bytes(&[&[0, 0], &V0_SIZE, &V0_FLAGS_CHUNKED]));
    assert!(out[40..].starts_with(&export));
    assert!(matches!(step, Step::Transmission(n) if n.style == ReplyStyle::Extended));

    let (out, _) = answer(&[option(8, &[]), option(8, &[])]);
    assert!(is_error(&out[20..], 8, 3));
    let (out, _) = answer(&[option(11, &[]), option(11, &[])]);
    assert!(is_error(&out[20..], 11, 3));
    let (out, _) = answer(&[option(11, &[]), option(8, &[])]);
    assert!(is_error(&out[20..], 8, 10));

    let policy = Policy { structured: false, extended: false, ..Policy::default() };
    for number in [8, 11] {
        let (out, _) = serve(policy, FIXED, &[option(number, &[])]);
        assert!(is_error(&out, number, 1), "option {number}");
    }
}

#[test]
fn set_meta_context_selects_base_allocation() {
    let set = meta(10, b"v0", &[b"base:allocation", b"qemu:dirty-bitmap:x", b"base:"]);
    let (out, step) = answer(&[option(8, &[]), set.clone(), go(b"v0", &[])]);
    let context = option_reply(10, [0, 0, 0, 4], b"\x00\x00\x00\x01base:allocation");
    let expected = [context, option_reply(10, ACK, &[])].concat();
    assert!(out[20..].starts_with(&expected), "{out:x?}");
    let id = Some(BASE_ALLOCATION_ID);
    assert!(matches!(step, Step::Transmission(n) if n.base_allocation == id));

    // For another export it does not count; the default name is the same export.
    let (_, step) = answer(&[option(8, &[]), set.clone(), go(b"archive", &[])]);
    assert!(matches!(step, Step::Transmission(n) if n.base_allocation.is_none()));
    let (_, step) = answer(&[option(8, &[]), set.clone(), go(b"", &[])]);
    assert!(matches!(step, Step::Transmission(n) if n.base_allocation == id));
    // A later command replaces it, also when it fails.
    for later in [meta(10, b"v0", &[]), meta(10, b"nope", &[]), option(10, b"x")] {
        let (_, step) = answer(&[option(8, &[]), set.clone(), later, go(b"v0", &[])]);
        assert!(matches!(step, Step::Transmission(n) if n.base_allocation.is_none()));
    }
}

#[test]
fn set_meta_context_ignores_wildcard_and_unknown_queries() {
    let set = meta(10, b"v0", &[b"base:", b"base:nope", b"x-y:", b"no colon"]);
    let (out, _) = answer(&[option(8, &[]), set]);
    assert_eq!(out[20..], option_reply(10, ACK, &[]));
}

#[test]
fn list_meta_context_takes_wildcards() {
    let context = option_reply(9, [0, 0, 0, 4], b"\x00\x00\x00\x00base:allocation");
    let all = [context, option_reply(9, ACK, &[])].concat();
    for queries in [&[][..], &[&b"base:"[..]], &[b"base:allocation"]] {
        let (out, step) = answer(&[option(8, &[]), meta(9, b"", queries), go(b"", &[])]);
        assert!(out[20..].starts_with(&all));
        assert!(matches!(step, Step::Transmission(n) if n.base_allocation.is_none()));
    }
    let (out, _) = answer(&[option(8, &[]), meta(9, b"", &[b"qemu:"])]);
    assert_eq!(out[20..], option_reply(9, ACK, &[]));
}

#[test]
fn meta_contexts_are_refused_without_structured_replies_or_export() {
    for number in [9, 10] {
        let (out, _) = answer(&[meta(number, b"v0", &[b"base:allocation"])]);
        assert!(is_error(&out, number, 3));
        let (out, _) = answer(&[option(11, &[]), meta(number, b"nope", &[])]);
        assert!(is_error(&out[20..], number, 6));
        let (out, _) = answer(&[option(11, &[]), option(number, &[0, 0, 0, 1])]);
        assert!(is_error(&out[20..], number, 3));
    }
}

#[test]
fn block_sizes_can_be_required() {
    let policy = Policy { require_block_size: true, ..Policy::default() };
    let (out, step) = serve(policy, FIXED, &[go(b"v0", &[])]);
    // 20 + 12 of EXPORT and 20 + 14 of BLOCK_SIZE come first and save a round trip.
    assert!(is_error(&out[66..], 7, 8), "{out:x?}");
    assert_eq!(step, MORE);
    let (_, step) = serve(policy, FIXED, &[go(b"v0", &[3])]);
    assert!(matches!(step, Step::Transmission(n) if n.block_size_promised));
    let (_, step) = serve(policy, FIXED, &[option(1, b"v0")]);
    assert_eq!(fatal(step), HandshakeError::BlockSizeRequired);
}

#[test]
fn unknown_client_flags_close() {
    let (_, step) = serve(Policy::default(), [0, 0, 0, 5], &[]);
    assert_eq!(fatal(step), HandshakeError::UnknownClientFlags { flags: 5 });
}

#[test]
fn bad_option_magic_closes() {
    let (_, step) = answer(&[b"GET / HTTP/1.1\r\n".to_vec()]);
    let magic = u64::from_be_bytes(*b"GET / HT");
    assert_eq!(fatal(step), HandshakeError::BadOptionMagic { magic });
}

#[test]
fn options_need_fixed_newstyle() {
    let (out, step) = serve(Policy::default(), [0; 4], &[go(b"v0", &[])]);
    assert_eq!(fatal(step), HandshakeError::NotFixedNewstyle { option: 7 });
    assert!(out.is_empty());
}

#[test]
fn oversized_option_is_skipped_and_too_big() {
    let big = option(7, &vec![0; MAX_OPTION_BYTES + 1]);
    let (out, step) = answer(&[big, go(b"v0", &[])]);
    assert!(is_error(&out[..42], 7, 9), "{out:x?}");
    assert!(matches!(step, Step::Transmission(_)));
    // The largest that is read: unknown, so unsupported.
    let (out, _) = answer(&[option(99, &vec![0; MAX_OPTION_BYTES])]);
    assert!(is_error(&out, 99, 1));
}

#[test]
fn hopelessly_oversized_options_close() {
    let length = (MAX_SKIPPED_BYTES + 1) as u32;
    let header = bytes(&[b"IHAVEOPT", &[0, 0, 0, 99], &length.to_be_bytes()]);
    let (_, step) = answer(&[header]);
    assert_eq!(fatal(step), HandshakeError::OptionTooLong { option: 99, length });
    // Sixteen of 65537 bytes are over the sum.
    let big = option(99, &vec![0; MAX_OPTION_BYTES + 1]);
    let (_, step) = answer(&vec![big; 16]);
    let length = MAX_OPTION_BYTES as u32 + 1;
    assert_eq!(fatal(step), HandshakeError::OptionTooLong { option: 99, length });
}

#[test]
fn endless_haggling_closes() {
    let (out, step) = answer(&vec![option(99, &[]); MAX_OPTIONS as usize]);
    assert_eq!(step, MORE);
    assert!(!out.is_empty());
    let (_, step) = answer(&vec![option(99, &[]); MAX_OPTIONS as usize + 1]);
    assert_eq!(fatal(step), HandshakeError::TooManyOptions);
}

#[test]
fn requests_behind_go_are_not_consumed_and_the_end_is_final() {
    let mut handshake = Handshake::new(sample_exports(), Policy::default());
    let mut out = Vec::new();
    let wanted = bytes(&[&FIXED, &go(b"v0", &[])]);
    let input = bytes(&[&wanted, &[0x25, 0x60, 0x95, 0x13]]);
    let progress = handshake.advance(&input, &mut out);
    assert_eq!(progress.consumed, wanted.len());
    let again = handshake.advance(&input, &mut out);
    assert_eq!((again.consumed, again.step), (0, progress.step));
}

#[test]
fn exports_are_checked_once() {
    let with = |change: fn(&mut ExportInfo)| {
        let mut export = ExportInfo::new("v", 1 << 20);
        change(&mut export);
        Exports::new(vec![export]).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(with(|_| ()), Ok(()));
    for (change, text) in [
        (
            (|e| e.name = "a".repeat(4097)) as fn(&mut ExportInfo),
            "the export's name has 4097 bytes; NBD allows 4096",
        ),
        (|e| e.description = "\0".into(), "the export's description contains NUL"),
        (|e| e.block_size.minimum = 3, "minimum block size 3 is not a power of two up to 65536"),
        (
            |e| e.block_size.preferred = 256,
            "preferred block size 256 is not a power of two of at least 512 and the minimum 512",
        ),
        (
            |e| e.block_size.maximum_payload = 1000,
            "maximum payload 1000 is not a multiple of the minimum block between the preferred \
             block 4096 and 50331648",
        ),
        (
            |e| e.size_bytes = 1000,
            "size 1000 is not a multiple of the minimum block size 512: its end could not be \
             reached",
        ),
        (
            |e| e.size_bytes = 1 << 63,
            "9223372036854775808 bytes are more than 2^63 - 1, which clients refuse",
        ),
    ] {
        assert_eq!(with(change), Err(text.to_owned()));
    }
    assert_eq!(Exports::new(Vec::new()), Err(ExportError::NoExports));
    let twins = vec![ExportInfo::new("v", 512), ExportInfo::new("v", 512)];
    let name = "v".to_owned();
    assert_eq!(Exports::new(twins), Err(ExportError::DuplicateName { name }));
    assert_eq!(BlockSize::default().maximum_payload, 48 << 20);
    assert_eq!(Arc::clone(&sample_exports()).find("nope"), None);
}
