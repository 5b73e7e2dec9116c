//! md's identifiers.

use std::fmt;
use std::str::FromStr;

/// 16 bytes that identify an array, or a member of one, in the order in which mdadm prints them:
/// `8c3d…:…:…:…`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Returns true if all bytes are zero, which stands for none.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Uuid {
    /// As mdadm prints it: four groups of eight hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(35);
        for (index, byte) in self.0.iter().enumerate() {
            if index > 0 && index % 4 == 0 {
                text.push(':');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = String;

    /// 32 hexadecimal digits, with or without `:`, `-`, `.` or spaces between them.
    fn from_str(text: &str) -> Result<Uuid, String> {
        let digits: Vec<u32> = text
            .chars()
            .filter(|char| !matches!(char, ':' | '-' | '.' | ' '))
            .map(|char| char.to_digit(16))
            .collect::<Option<_>>()
            .filter(|digits: &Vec<u32>| digits.len() == 32)
            .ok_or_else(|| format!("{text:?} is no UUID: it has 32 hexadecimal digits"))?;
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        Ok(Uuid(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_again() {
        let uuid = Uuid(std::array::from_fn(|index| (index * 17) as u8));
        assert_eq!(uuid.to_string(), "00112233:44556677:8899aabb:ccddeeff");
        assert_eq!(uuid.to_string().parse(), Ok(uuid));
        assert_eq!("00112233-4455-6677-8899-aabbccddeeff".parse(), Ok(uuid));
        for bad in ["", "0011", "zz112233:44556677:8899aabb:ccddeeff"] {
            assert!(bad.parse::<Uuid>().is_err(), "{bad}");
        }
    }
}
