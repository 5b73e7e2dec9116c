//! Requests: each command in each layout, and each refusal by name.

use braid_nbd::fuzz::sample_exports;
use braid_nbd::protocol::{
    Command, ExportInfo, HeaderMode, NbdErrno, Negotiated, ParsedHeader, Payload, RawRequest,
    RefusalReason, ReplyStyle, check, parse,
};

use crate::bytes;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn export(index: usize) -> ExportInfo {
    sample_exports().get(index).unwrap().clone()
}

fn negotiated(export: &ExportInfo, style: ReplyStyle) -> Negotiated {
    let mut negotiated = Negotiated::new(0, export, style);
    negotiated.base_allocation = style.is_chunked().then_some(1);
    negotiated
}

/// A refusal as (errno, reason, payload), or the command.
type Verdict = Result<Command, (NbdErrno, RefusalReason, Payload)>;

fn verdict_on(export: &ExportInfo, style: ReplyStyle, raw: RawRequest) -> Verdict {
    match check(&raw, export, &negotiated(export, style)) {
        Ok(request) => {
            assert_eq!((request.to.cookie, request.to.offset), (raw.cookie, raw.offset));
            Ok(request.command)
        }
        Err(refusal) => {
            assert_eq!((refusal.to.cookie, refusal.to.offset), (raw.cookie, raw.offset));
            assert!(!refusal.reason.to_string().is_empty());
            Err((refusal.errno, refusal.reason, refusal.payload))
        }
    }
}

fn raw(mode: HeaderMode, kind: u16, flags: u16, offset: u64, length: u64) -> RawRequest {
    RawRequest { mode, flags, kind, cookie: 0xc0ffee, offset, length }
}

/// The sample export with structured replies and compact headers.
fn compact(kind: u16, flags: u16, offset: u64, length: u64) -> Verdict {
    let raw = raw(HeaderMode::Simple, kind, flags, offset, length);
    verdict_on(&export(0), ReplyStyle::Structured, raw)
}

/// The sample export with extended headers.
fn extended(kind: u16, flags: u16, offset: u64, length: u64) -> Verdict {
    let raw = raw(HeaderMode::Extended, kind, flags, offset, length);
    verdict_on(&export(0), ReplyStyle::Extended, raw)
}

#[test]
fn every_command_to_the_byte() {
    let (offset, at) = (0x1000_u64, [0, 0, 0, 0, 0, 0, 0x10, 0]);
    let length = 0x200;
    for (flags, kind, command) in [
        (0, 0, Command::Read { offset, length, dont_fragment: false }),
        (4, 0, Command::Read { offset, length, dont_fragment: true }),
        (0, 1, Command::Write { offset, length, fua: false }),
        (1, 1, Command::Write { offset, length, fua: true }),
        (1, 4, Command::Trim { offset, length: 512, fua: true }),
        (0, 5, Command::Cache { offset, length: 512 }),
        (
            0x13,
            6,
            Command::WriteZeroes { offset, length: 512, fua: true, no_hole: true, fast_zero: true },
        ),
        (
            0,
            6,
            Command::WriteZeroes {
                offset,
                length: 512,
                fua: false,
                no_hole: false,
                fast_zero: false,
            },
        ),
        (8, 7, Command::BlockStatus { offset, length: 512, one_extent: true }),
        (0, 7, Command::BlockStatus { offset, length: 512, one_extent: false }),
    ] {
        let cookie = *b"\x01COOKIE\x02";
        let compact =
            bytes(&[&[0x25, 0x60, 0x95, 0x13, 0, flags, 0, kind], &cookie, &at, &[0, 0, 2, 0]]);
        // Only the extended write says that it has a payload.
        let flags = if kind == 1 { flags | 0x20 } else { flags };
        let extended = bytes(&[
            &[0x21, 0xe4, 0x1c, 0x71, 0, flags, 0, kind],
            &cookie,
            &at,
            &[0, 0, 0, 0, 0, 0, 2, 0],
        ]);
        for (style, message) in
            [(ReplyStyle::Structured, compact), (ReplyStyle::Extended, extended)]
        {
            let ParsedHeader::Request(raw) = parse(style.header_mode(), &message) else {
                panic!("a header: {message:x?}");
            };
            assert_eq!(raw.cookie, u64::from_be_bytes(cookie));
            assert_eq!(verdict_on(&export(0), style, raw), Ok(command), "{style:?}");
            let payload = if kind == 1 { 512 } else { 0 };
            assert_eq!((raw.payload_bytes(), command.payload_bytes()), (payload, payload as u32));
        }
    }
}

#[test]
fn flush_and_disconnect() {
    assert_eq!(compact(3, 0, 0, 0), Ok(Command::Flush));
    // FUA is valid with every command once it was offered.
    assert_eq!(compact(3, 1, 0, 0), Ok(Command::Flush));
    assert_eq!(extended(3, 0, 0, 0), Ok(Command::Flush));
    for (offset, length) in [(1, 0), (0, 1)] {
        let reason = RefusalReason::FieldsNotZero { offset, length };
        let refusal = Err((NbdErrno::Inval, reason, Payload::Drain(0)));
        assert_eq!(compact(3, 0, offset, length), refusal);
    }
    assert_eq!(compact(2, 0, 0, 0), Ok(Command::Disconnect));
    assert_eq!(compact(2, 0xffff, 7, 7), Ok(Command::Disconnect));
}

#[test]
fn whole_export_in_one_extended_request() {
    let big = ExportInfo::new("big", 1 << 45);
    let raw = raw(HeaderMode::Extended, 6, 0, 0, 1 << 45);
    let Ok(Command::WriteZeroes { length, .. }) = verdict_on(&big, ReplyStyle::Extended, raw)
    else {
        panic!("64-bit lengths are for this");
    };
    assert_eq!(length, 1 << 45);
}

#[test]
fn unknown_command() {
    for kind in [8, 9, 0xffff] {
        let reason = RefusalReason::UnknownCommand { kind };
        let refusal = Err((NbdErrno::Inval, reason, Payload::Drain(0)));
        assert_eq!(compact(kind, 0, 0, 512), refusal);
        // An extended header says whether something follows.
        let refusal = Err((NbdErrno::Inval, reason, Payload::Drain(512)));
        assert_eq!(extended(kind, 0x20, 0, 512), refusal);
    }
}

#[test]
fn flags_that_do_not_belong() {
    // (command, its wrong flags): unknown ones, another command's, payload in compact headers.
    for (kind, flags) in
        [(0, 2), (0, 0x8000), (1, 4), (1, 0x20), (3, 8), (4, 2), (5, 2), (6, 8), (7, 0x10)]
    {
        let drain = Payload::Drain(if kind == 1 { 512 } else { 0 });
        let reason = RefusalReason::FlagsNotAllowed { kind, flags };
        assert_eq!(compact(kind, flags, 0, 512), Err((NbdErrno::Inval, reason, drain)));
    }
}

#[test]
fn flags_that_were_not_offered() {
    let mut modest = ExportInfo::new("v", GIB);
    modest.can_fua = false;
    let check = |style, kind, flags| {
        let mode = ReplyStyle::header_mode(style);
        verdict_on(&modest, style, raw(mode, kind, flags, 0, 512))
    };
    // FUA, fast zero, and DF without chunks.
    for (style, kind, flags) in [
        (ReplyStyle::Structured, 1, 1),
        (ReplyStyle::Structured, 6, 0x10),
        (ReplyStyle::Simple, 0, 4),
    ] {
        let drain = Payload::Drain(if kind == 1 { 512 } else { 0 });
        let reason = RefusalReason::FlagsNotAllowed { kind, flags };
        assert_eq!(check(style, kind, flags), Err((NbdErrno::Inval, reason, drain)));
    }
    assert!(check(ReplyStyle::Structured, 0, 4).is_ok());
}

#[test]
fn payload_on_a_command_that_takes_none_is_drained() {
    let reason = RefusalReason::FlagsNotAllowed { kind: 7, flags: 0x20 };
    let refusal = Err((NbdErrno::Inval, reason, Payload::Drain(24)));
    assert_eq!(extended(7, 0x20, 0, 24), refusal);
    let reason = RefusalReason::FlagsNotAllowed { kind: 0, flags: 0x20 };
    let refusal = Err((NbdErrno::Inval, reason, Payload::Close));
    assert_eq!(extended(0, 0x20, 0, GIB), refusal);
}

#[test]
fn extended_write_without_payload_flag_closes() {
    let reason = RefusalReason::PayloadLenMissing;
    let refusal = Err((NbdErrno::Inval, reason, Payload::Close));
    assert_eq!(extended(1, 0, 0, 512), refusal);
}

#[test]
fn write_to_read_only() {
    let archive = export(1);
    for kind in [1, 4, 6] {
        let raw = raw(HeaderMode::Simple, kind, 0, 0, 4096);
        let drain = Payload::Drain(if kind == 1 { 4096 } else { 0 });
        let refusal = Err((NbdErrno::Perm, RefusalReason::ReadOnly, drain));
        assert_eq!(verdict_on(&archive, ReplyStyle::Simple, raw), refusal);
    }
    let raw = raw(HeaderMode::Simple, 0, 0, 36_864, 4096);
    assert!(verdict_on(&archive, ReplyStyle::Simple, raw).is_ok());
}

#[test]
fn commands_that_were_not_offered() {
    let mut bare = ExportInfo::new("v", GIB);
    (bare.can_flush, bare.can_trim, bare.can_write_zeroes) = (false, false, false);
    for kind in [3, 4, 5, 6] {
        let raw = raw(HeaderMode::Simple, kind, 0, 0, 512);
        let reason = RefusalReason::NotOffered { kind };
        let refusal = Err((NbdErrno::Inval, reason, Payload::Drain(0)));
        assert_eq!(verdict_on(&bare, ReplyStyle::Simple, raw), refusal);
    }
    let raw = raw(HeaderMode::Simple, 7, 0, 0, 512);
    let refusal = Err((NbdErrno::Inval, RefusalReason::NoMetaContext, Payload::Drain(0)));
    assert_eq!(verdict_on(&bare, ReplyStyle::Simple, raw), refusal);
}

#[test]
fn zero_length() {
    for kind in [0, 1, 4, 5, 6, 7] {
        let refusal = Err((NbdErrno::Inval, RefusalReason::ZeroLength, Payload::Drain(0)));
        assert_eq!(compact(kind, 0, 0, 0), refusal, "command {kind}");
    }
}

#[test]
fn out_of_range() {
    for (kind, errno) in [
        (0, NbdErrno::Inval),
        (1, NbdErrno::NoSpc),
        (4, NbdErrno::Inval),
        (5, NbdErrno::Inval),
        (6, NbdErrno::NoSpc),
        (7, NbdErrno::Inval),
    ] {
        for (offset, length) in
            [(GIB, 512), (GIB - 512, 1024), (u64::MAX - 511, 512), (u64::MAX, 1)]
        {
            let drain = Payload::Drain(if kind == 1 { length as u32 } else { 0 });
            let size_bytes = GIB;
            let reason = RefusalReason::OutOfRange { offset, length, size_bytes };
            assert_eq!(compact(kind, 0, offset, length), Err((errno, reason, drain)));
        }
        assert!(compact(kind, 0, GIB - 512, 512).is_ok(), "the last block");
    }
    let (offset, length, size_bytes) = (512, u64::MAX, GIB);
    let reason = RefusalReason::OutOfRange { offset, length, size_bytes };
    let refusal = Err((NbdErrno::NoSpc, reason, Payload::Drain(0)));
    assert_eq!(extended(6, 0, offset, length), refusal);
}

#[test]
fn unaligned() {
    for kind in [0, 1, 4, 5, 6, 7] {
        for (offset, length) in [(1, 512), (0, 511), (256, 256)] {
            let drain = Payload::Drain(if kind == 1 { length as u32 } else { 0 });
            let reason = RefusalReason::Unaligned { offset, length, minimum: 512 };
            assert_eq!(compact(kind, 0, offset, length), Err((NbdErrno::Inval, reason, drain)));
        }
    }
    let mut bytewise = ExportInfo::new("v", 1000);
    (bytewise.block_size.minimum, bytewise.block_size.preferred) = (1, 512);
    let raw = raw(HeaderMode::Simple, 0, 0, 999, 1);
    assert!(verdict_on(&bytewise, ReplyStyle::Simple, raw).is_ok());
}

#[test]
fn oversized_payloads() {
    let mut small = ExportInfo::new("v", GIB);
    small.block_size.maximum_payload = MIB as u32;
    let maximum_payload = MIB as u32;
    let check = |kind, flags, length| {
        verdict_on(&small, ReplyStyle::Structured, raw(HeaderMode::Simple, kind, flags, 0, length))
    };
    for kind in [0, 1] {
        assert!(check(kind, 0, MIB).is_ok());
        let length = MIB + 512;
        let reason = RefusalReason::PayloadTooLong { length, maximum_payload };
        let drain = Payload::Drain(if kind == 1 { length as u32 } else { 0 });
        assert_eq!(check(kind, 0, length), Err((NbdErrno::Inval, reason, drain)));
    }
    // An unfragmented read may say that this is why.
    let length = 2 * MIB;
    let reason = RefusalReason::PayloadTooLong { length, maximum_payload };
    assert_eq!(check(0, 4, length), Err((NbdErrno::Overflow, reason, Payload::Drain(0))));
    // Up to the longest is drained; what is longer closes the connection.
    let refusal = check(1, 0, 64 * MIB).unwrap_err();
    assert_eq!(refusal.2, Payload::Drain(64 << 20));
    let refusal = check(1, 0, 64 * MIB + 512).unwrap_err();
    assert_eq!((refusal.0, refusal.2), (NbdErrno::Inval, Payload::Close));
    // Without a payload the length is bounded by the export only.
    for kind in [4, 6, 7] {
        assert!(check(kind, 0, GIB).is_ok());
    }
}

#[test]
fn errors_that_only_some_commands_may_answer() {
    use NbdErrno::{Inval, Io, NoSpc, NotSup, Overflow};
    let read = |dont_fragment| Command::Read { offset: 0, length: 512, dont_fragment };
    let zeroes = |fast_zero| Command::WriteZeroes {
        offset: 0,
        length: 512,
        fua: false,
        no_hole: false,
        fast_zero,
    };
    assert_eq!(read(true).answerable(Overflow), Overflow);
    assert_eq!(read(false).answerable(Overflow), Io);
    assert_eq!(zeroes(true).answerable(NotSup), NotSup);
    assert_eq!(zeroes(false).answerable(NotSup), Inval);
    assert_eq!(Command::Flush.answerable(NoSpc), NoSpc);
}
