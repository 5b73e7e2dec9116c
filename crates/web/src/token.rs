//! The secret that lets a program or a page in: 256 random bits, in a file of its owner's.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};

/// Shorter ones could be guessed.
const LEAST: usize = 32;
/// No file is read for longer.
const MOST: u64 = 1024;

/// A secret. It is not printed by mistake: [`Token::secret`] gives it away.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why there is no token.
#[derive(Debug)]
pub enum TokenError {
    /// The file cannot be read or made.
    Io(PathBuf, io::Error),
    /// Other users may read it, or own it.
    Open(PathBuf, u32),
    /// It holds no token.
    Malformed(PathBuf),
    /// It holds no list of tokens, and why.
    List(PathBuf, String),
}

impl std::fmt::Display for TokenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TokenError::Io(path, error) => write!(f, "the token in {}: {error}", path.display()),
            TokenError::Open(path, mode) => write!(
                f,
                "the token in {} may be known to others: it has the mode {mode:o}, or another owner",
                path.display()
            ),
            TokenError::Malformed(path) => write!(
                f,
                "{} holds no token: one line of {LEAST} letters and digits or more, with - and _",
                path.display()
            ),
            TokenError::List(path, why) => {
                write!(f, "{} holds no list of tokens: {why}", path.display())
            }
        }
    }
}

impl std::error::Error for TokenError {}

/// Returns the text of a file that only this user may read: at most `most` bytes of it.
///
/// # Errors
/// It cannot be read, or others may read it.
pub(crate) fn read_private(path: &Path, most: u64) -> Result<String, TokenError> {
    let failed = |error| TokenError::Io(path.to_owned(), error);
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(no_link).open(path);
    let file = file.map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.mode() & 0o077 != 0 || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(TokenError::Open(path.to_owned(), found.mode() & 0o7777));
    }
    let mut text = String::new();
    file.take(most).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// Returns true if two secrets, or digests of them, are equal. The time does not depend on the place of a difference.
pub(crate) fn same(own: &str, sent: &str) -> bool {
    let (own, sent) = (own.as_bytes(), sent.as_bytes());
    let differ = |other: u8, (one, two): (&u8, &u8)| black_box(other | (one ^ two));
    own.len() == sent.len() && own.iter().zip(sent).fold(0, differ) == 0
}

impl Token {
    /// The token in a file, which only this user may read.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it holds no token.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let text = read_private(path, MOST)?;
        Token::parse(text.trim()).ok_or_else(|| TokenError::Malformed(path.to_owned()))
    }

    /// The token in a file, which is made with a new one if it is not there.
    ///
    /// # Errors
    /// As [`Token::read`], or it cannot be made.
    pub fn read_or_make(path: &Path) -> Result<Token, TokenError> {
        let failed = |error| TokenError::Io(path.to_owned(), error);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => {
                let token = Token::random().map_err(failed)?;
                writeln!(file, "{}", token.0).map_err(failed)?;
                Ok(token)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Token::read(path),
            Err(error) => Err(failed(error)),
        }
    }

    /// 256 bits of the kernel's randomness.
    pub(crate) fn random() -> io::Result<Token> {
        let mut bytes = [0_u8; 32];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
        }
        let mut text = String::new();
        for byte in bytes {
            write!(text, "{byte:02x}").map_err(io::Error::other)?;
        }
        Ok(Token(text))
    }

    fn parse(text: &str) -> Option<Token> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (text.len() >= LEAST && text.bytes().all(is_plain)).then(|| Token(text.to_owned()))
    }

    /// Returns the token that has to be sent.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Returns true if `sent` is the token, in a time that does not depend on the place of a difference.
    pub(crate) fn is(&self, sent: &str) -> bool {
        same(&self.0, sent)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_is_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::read_or_make(&path).unwrap();
        assert_eq!(made.secret().len(), 64);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(Token::read_or_make(&path).unwrap(), made);
        assert_ne!(Token::random().unwrap(), made);
        assert_eq!(format!("{made:?}"), "Token(…)");

        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(matches!(Token::read(&path), Err(TokenError::Open(_, 0o640))));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(Token::read(&link), Err(TokenError::Io(..))), "a link");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        for bad in ["", "short", &"a b".repeat(20), "é".repeat(32).as_str()] {
            std::fs::write(&path, bad).unwrap();
            assert!(matches!(Token::read(&path), Err(TokenError::Malformed(_))), "{bad}");
        }
    }

    #[test]
    fn only_the_whole_token_is_it() {
        let token = Token::random().unwrap();
        let own = token.secret().to_owned();
        assert!(token.is(&own));
        for place in 0..own.len() {
            assert!(!token.is(&own[..place]), "a beginning");
            let mut other = own.clone().into_bytes();
            other[place] ^= 1;
            assert!(!token.is(&String::from_utf8(other).unwrap()), "one bit, at {place}");
        }
        assert!(!token.is(&format!("{own}0")));
    }
}
