//! SHA-1 (RFC 3174), which mdadm takes to put a host's name into the identifiers of 0.90.
//!
//! For recognising such an identifier only: nothing here is secured by it.

/// The first eight bytes of the digest of `message`: as many as an identifier has room for.
pub(super) fn sha1_head(message: &[u8]) -> [u8; 8] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((message.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        add_block(&mut state, block);
    }
    let mut head = [0; 8];
    head[..4].copy_from_slice(&state[0].to_be_bytes());
    head[4..].copy_from_slice(&state[1].to_be_bytes());
    head
}

/// One block of 64 bytes.
fn add_block(state: &mut [u32; 5], block: &[u8]) {
    let mut words = [0u32; 80];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for index in 16..80 {
        let mixed = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16];
        words[index] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (round, word) in words.into_iter().enumerate() {
        let (mix, constant) = match round {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = [a.rotate_left(5), mix, e, word, constant]
            .into_iter()
            .fold(0u32, |sum, term| sum.wrapping_add(term));
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (word, add) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_of_the_standard() {
        for (message, digest) in [
            (&b"abc"[..], [0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a]),
            (b"", [0xda, 0x39, 0xa3, 0xee, 0x5e, 0x6b, 0x4b, 0x0d]),
            // 56 bytes: the length does not fit into the block of the end mark.
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                [0x84, 0x98, 0x3e, 0x44, 0x1c, 0x3b, 0xd2, 0x6e],
            ),
        ] {
            assert_eq!(sha1_head(message), digest);
        }
    }
}
