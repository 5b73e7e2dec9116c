//! The period of validity of a certificate (RFC 5280, section 4.1), which no library here tells.
//!
//! ```text
//!   Certificate { TBSCertificate { [0] version, serial, signature, issuer, Validity { from, until }, … }, … }
//! ```
//!
//! Invariant: no bytes make it panic. Absent on purpose: everything else of a certificate, and every check of it.

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The period in which a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub from: i64,
    /// The last second.
    pub until: i64,
}

impl Validity {
    /// Returns the period of a certificate in DER, if it can be read.
    pub fn of(certificate: &[u8]) -> Option<Validity> {
        let (body, _) = take(certificate, SEQUENCE)?;
        let (mut fields, _) = take(body, SEQUENCE)?;
        if let Some((_, rest)) = take(fields, VERSION) {
            fields = rest;
        }
        // The serial number, the signature's algorithm, the issuer.
        for _ in 0..3 {
            fields = element(fields)?.2;
        }
        let (period, _) = take(fields, SEQUENCE)?;
        let (tag, from, rest) = element(period)?;
        let from = seconds(tag, from)?;
        let (tag, until, _) = element(rest)?;
        Some(Validity { from, until: seconds(tag, until)? })
    }
}

/// Returns the first element of `bytes`: its tag, its contents, and the bytes behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, short], rest) = bytes.split_first_chunk()?;
    let (len, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x83 => {
            let (len, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            (len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(len)?;
    Some((tag, contents, rest))
}

fn take(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(tag, ..)| *tag == wanted).map(|(_, contents, rest)| (contents, rest))
}

/// Reads `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn seconds(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number =
        |digits: &[u8]| digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let (year, rest) = digits.split_at(2);
            // RFC 5280: 50 to 99 are of the 20th century.
            let year = number(year);
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (GENERALIZED_TIME, 14) => {
            let (year, rest) = digits.split_at(4);
            (number(year), rest)
        }
        _ => return None,
    };
    let mut parts = rest.chunks(2).map(number);
    let mut next = || parts.next();
    let (month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years start in March, so that the leap day is the
/// last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let since_march = (month + 9) % 12;
    let day_of_year = (153 * since_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000301000000Z", Some(951_868_800)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "20500101000000Z", None),
            (UTC_TIME, "701301000000Z", None),
            (UTC_TIME, "7001010000000", None),
            (UTC_TIME, "70010100000xZ", None),
        ] {
            assert_eq!(seconds(tag, text.as_bytes()), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = Validity::of(&bytes);
            let _ = seconds(UTC_TIME, &bytes);
        }
    }
}
