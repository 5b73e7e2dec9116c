//! Blocks of a log: written blocks are accepted, and no others.

use braid_block::Span;
use braid_cache::log::format::{
    BLOCK, Effect, Extent, Header, LogInstance, MAX_EXTENTS, OriginId, Rejection, Superblock,
};
use proptest::prelude::*;

const SIZE: u64 = 1 << 30;

fn life() -> LogInstance {
    LogInstance { uuid: [3; 16], generation: 7, origin: OriginId { size: SIZE, digest: [9; 16] } }
}

fn superblock() -> Superblock {
    let text = "raid1(/dev/sdb, /dev/sdc)".to_owned();
    let (written, area, tail, tail_sequence, durable) = (12, 1 << 20, 40960, 5, Some(7));
    Superblock { life: life(), written, area, tail, tail_sequence, durable, is_open: true, text }
}

fn encoded(encode: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut block = vec![0xee; BLOCK as usize];
    encode(&mut block);
    block
}

fn extents() -> impl Strategy<Value = Vec<Extent>> {
    let kind = prop_oneof![Just(Effect::Data), Just(Effect::Zeroes), Just(Effect::Discard)];
    let extent = (0..1000_u64, 1..20_u64, kind).prop_map(|(at, len, kind)| {
        let len = if kind == Effect::Data { len } else { len << 12 };
        Extent { span: Span::new(at * 512, len * 512), kind }
    });
    prop::collection::vec(extent, 1..=MAX_EXTENTS.min(40))
}

proptest! {
    /// A record parses to the same value; with another instance, sequence number or any bit
    /// flipped, it is rejected.
    #[test]
    fn a_record_is_its_own(extents in extents(), sequence in 1..1000_u64, turned in any::<prop::sample::Index>()) {
        let len: u64 = extents.iter().map(Extent::data_len).sum();
        let mut data: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let header = Header::new(life(), sequence, sequence / 2, extents.clone(), &data);
        let mut block = encoded(|block| header.encode_into(block));
        prop_assert_eq!(Header::parse(&block, &life(), sequence), Ok(header.clone()));
        let parts = header.prove(&data).expect("its own data");
        prop_assert_eq!(parts.iter().map(|(extent, _)| *extent).collect::<Vec<_>>(), extents);
        prop_assert_eq!(parts.iter().map(|(_, part)| part.len() as u64).sum::<u64>(), len);

        let others = [
            (LogInstance { uuid: [4; 16], ..life() }, sequence, "log"),
            (LogInstance { generation: 8, ..life() }, sequence, "generation"),
            (LogInstance { generation: 6, ..life() }, sequence, "generation"),
            (LogInstance { origin: OriginId { size: SIZE * 2, ..life().origin }, ..life() }, sequence, "origin"),
            (LogInstance { origin: OriginId { digest: [0; 16], ..life().origin }, ..life() }, sequence, "origin"),
            (life(), sequence + 1, "sequence"),
        ];
        for (life, sequence, what) in others {
            prop_assert_eq!(Header::parse(&block, &life, sequence), Err(Rejection::Other(what)));
        }
        let bit = turned.index(block.len() * 8);
        block[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Header::parse(&block, &life(), sequence).is_err(), "bit {}", bit);
        if !data.is_empty() {
            let bit = turned.index(data.len() * 8);
            data[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(header.prove(&data), Err(Rejection::Checksum));
            prop_assert!(header.prove(&data[1..]).is_err());
        }
    }
}

#[test]
fn no_bit_of_a_superblock_may_turn() {
    let block = encoded(|block| superblock().encode_into(block));
    assert_eq!(Superblock::parse(&block, 1 << 20), Ok(superblock()));
    for bit in 0..block.len() * 8 {
        let mut turned = block.clone();
        turned[bit / 8] ^= 1 << (bit % 8);
        assert!(Superblock::parse(&turned, 1 << 20).is_err(), "bit {bit}");
    }
    assert_eq!(Superblock::parse(&block[..4095], 1 << 20), Err(Rejection::Truncated(4095)));
    let smaller = Superblock::parse(&block, (1 << 20) - 1);
    assert_eq!(smaller, Err(Rejection::Field { what: "area", value: 1 << 20 }));
}

#[test]
fn the_longest_text_and_the_most_extents_fit() {
    let long = Superblock { text: "é".repeat(4000), ..superblock() };
    let block = encoded(|block| long.encode_into(block));
    let read = Superblock::parse(&block, 1 << 20).expect("a superblock");
    assert_eq!(read.text, "é".repeat(512));
    let extents: Vec<Extent> = (0..MAX_EXTENTS as u64)
        .map(|index| Extent { span: Span::new(index * 1024, 512), kind: Effect::Zeroes })
        .collect();
    let header = Header::new(life(), 1, 1, extents, &[]);
    let block = encoded(|block| header.encode_into(block));
    assert_eq!(Header::parse(&block, &life(), 1), Ok(header));
}
