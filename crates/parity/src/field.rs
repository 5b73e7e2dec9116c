//! GF(2^8) as RAID 6 has it: bytes, of which XOR is the sum, and the product is that of
//! polynomials over GF(2) modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11d).
//!
//! g = 2, the polynomial x, generates it: its powers g^0 to g^254 are all the bytes but zero, and
//! g^255 = 1. Products and quotients are sums and differences of exponents, by tables that the
//! compiler makes ([`multiply`], [`divide`]); [`double`] is the definition that they come from.

/// The modulus, without x^8.
pub(crate) const MODULUS: u8 = 0x1d;

/// Number of powers of g: all bytes except zero.
pub(crate) const ORDER: usize = 255;

/// g^index, twice over, so that a sum of two exponents needs no remainder.
static POWERS: [u8; 2 * ORDER] = powers();

/// The exponent of each byte: `POWERS[EXPONENTS[byte]] == byte`. That of zero is not used.
static EXPONENTS: [u8; 256] = exponents();

/// `byte` times g.
#[must_use]
pub(crate) const fn double(byte: u8) -> u8 {
    let carry = if byte & 0x80 == 0 { 0 } else { MODULUS };
    (byte << 1) ^ carry
}

const fn powers() -> [u8; 2 * ORDER] {
    let mut powers = [1; 2 * ORDER];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = double(powers[exponent - 1]);
        exponent += 1;
    }
    powers
}

const fn exponents() -> [u8; 256] {
    let powers = powers();
    let mut exponents = [0; 256];
    let mut exponent = 0;
    while exponent < ORDER {
        exponents[powers[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    exponents
}

/// g to this power.
#[must_use]
pub(crate) fn power(exponent: u8) -> u8 {
    POWERS[usize::from(exponent)]
}

/// The exponent of g, 0 to 254, that gives `byte`; zero has none.
#[must_use]
pub(crate) const fn exponent(byte: u8) -> Option<u8> {
    if byte == 0 { None } else { Some(EXPONENTS[byte as usize]) }
}

/// `a` times `b`.
#[must_use]
pub(crate) const fn multiply(a: u8, b: u8) -> u8 {
    match (exponent(a), exponent(b)) {
        (Some(a), Some(b)) => POWERS[a as usize + b as usize],
        _ => 0,
    }
}

/// `a` over `b`.
///
/// # Panics
///
/// If `b` is zero.
#[must_use]
pub(crate) fn divide(a: u8, b: u8) -> u8 {
    let below = exponent(b).expect("a divisor is not zero");
    match exponent(a) {
        Some(above) => POWERS[usize::from(above) + ORDER - usize::from(below)],
        None => 0,
    }
}

/// The factors that give one of two lost data blocks, of powers `a` and `b`: with p and q the
/// differences that the two make in P and Q,
///
/// ```text
///   p =     da ^     db                da = by_p·p ^ by_q·q
///   q = g^a·da ^ g^b·db                db = p ^ da
/// ```
///
/// hence by_p = g^b / (g^a ^ g^b) and by_q = 1 / (g^a ^ g^b).
///
/// # Panics
///
/// If the powers are the same byte of the field: `a` = `b`, or 0 and 255.
#[must_use]
pub(crate) fn factors_of_two(a: u8, b: u8) -> (u8, u8) {
    let sum = power(a) ^ power(b);
    (divide(power(b), sum), divide(1, sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> impl Iterator<Item = u8> {
        0..=255
    }

    /// The product by the definition: shift, add, and reduce.
    fn by_definition(a: u8, b: u8) -> u8 {
        let mut product: u16 = 0;
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                product ^= u16::from(a) << bit;
            }
        }
        for bit in (8..16).rev() {
            if product >> bit & 1 == 1 {
                product ^= 0x11d << (bit - 8);
            }
        }
        u8::try_from(product).unwrap()
    }

    #[test]
    fn products_are_those_of_polynomials() {
        for a in bytes() {
            assert_eq!(double(a), by_definition(a, 2));
            for b in bytes() {
                assert_eq!(multiply(a, b), by_definition(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn the_product_commutes_and_has_a_one_and_a_zero() {
        for a in bytes() {
            assert_eq!(multiply(a, 1), a);
            assert_eq!(multiply(a, 0), 0);
            for b in bytes() {
                assert_eq!(multiply(a, b), multiply(b, a));
            }
        }
    }

    #[test]
    fn the_product_associates_and_distributes() {
        for a in bytes() {
            for b in bytes() {
                let ab = multiply(a, b);
                for c in bytes() {
                    assert_eq!(multiply(ab, c), multiply(a, multiply(b, c)), "{a} {b} {c}");
                    assert_eq!(multiply(a, b ^ c), ab ^ multiply(a, c), "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn a_quotient_undoes_a_product() {
        for a in bytes() {
            for b in 1..=255 {
                assert_eq!(divide(multiply(a, b), b), a, "{a} {b}");
                assert_eq!(multiply(divide(a, b), b), a, "{a} {b}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "a divisor is not zero")]
    fn nothing_is_divided_by_zero() {
        let _ = divide(1, 0);
    }

    #[test]
    fn g_generates_every_byte_but_zero_once() {
        let mut found = [0; 256];
        let mut byte = 1;
        for exponent_of in 0..255 {
            assert_eq!(power(exponent_of), byte);
            assert_eq!(exponent(byte), Some(exponent_of));
            found[usize::from(byte)] += 1;
            byte = double(byte);
        }
        assert_eq!(byte, 1);
        assert_eq!(power(255), 1);
        assert_eq!(exponent(0), None);
        assert_eq!((found[0], &found[1..]), (0, &[1; 255][..]));
    }

    #[test]
    fn two_lost_bytes_come_back_for_every_pair_of_powers() {
        for a in 0..255 {
            for b in (0..255).filter(|b| *b != a) {
                let (by_p, by_q) = factors_of_two(a, b);
                // By linearity two pairs that span all pairs are enough; a third for good measure.
                for (da, db) in [(1, 0), (0, 1), (0x8e, 0x53)] {
                    let p = da ^ db;
                    let q = multiply(power(a), da) ^ multiply(power(b), db);
                    assert_eq!(multiply(by_p, p) ^ multiply(by_q, q), da, "{a} {b}");
                }
            }
        }
    }
}
