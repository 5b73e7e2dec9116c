//! Images of volumes: the content as one LZ4 frame with a checksum over all of it, which `lz4 -d`
//! reads and `lz4` writes.
//!
//! ```text
//!   save      content ──▶ frame ──▶ new file beside ── fsync ── rename ── fsync of the folder
//!   restore   open ──▶ verify: decode all, count, compare the checksum ──▶ decode again, write
//! ```
//!
//! Invariants
//! * What is at an image's path is whole: the old image, or the new one.
//! * Before the first byte of a volume is changed, all of the image was decoded, has the volume's size,
//!   and its checksum is right.
//! * A frame that ends before its end mark is damaged, also where a decoder takes that for its end.
//!
//! Source: "LZ4 Frame Format Description" 1.6.4.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use braid_stack::ByteSize;
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use crate::beside::{Beside, may_replace};
use crate::control::ErrorCode;
use crate::failure::{Failure, FailureKind};

/// Bytes that are read from, or written to, a volume at a time.
pub(super) const PIECE: usize = 1 << 20;

/// The first bytes of an LZ4 frame.
const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();

/// Why there is no image, or no content of it.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{path} exists already")]
    Exists { path: PathBuf },
    #[error("the image cannot be written to {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("the image {path} cannot be read: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is no image: {why}")]
    NoImage { path: PathBuf, why: &'static str },
    #[error("the image {path} is damaged: {why}")]
    Damaged { path: PathBuf, why: String },
    #[error("the image {path} has {image}, the volume has {volume}")]
    Size { path: PathBuf, image: String, volume: String },
    #[error("the volume cannot be read: {0}")]
    ReadVolume(io::Error),
    #[error("the volume cannot be written: {0}")]
    WriteVolume(io::Error),
}

impl ImageError {
    /// The failure that says so.
    pub(super) fn failure(&self) -> Failure {
        let (kind, code) = match self {
            ImageError::Exists { .. } => (FailureKind::Refused, ErrorCode::FileExists),
            ImageError::NoImage { .. } => (FailureKind::Refused, ErrorCode::NoImage),
            ImageError::Damaged { .. } => (FailureKind::Refused, ErrorCode::ImageDamaged),
            ImageError::Size { .. } => (FailureKind::Refused, ErrorCode::ImageSize),
            _ => (FailureKind::Failed, ErrorCode::Failed),
        };
        kind.because(self).code(code)
    }
}

/// Returns the path at which an image that is saved at `path` is written: that to which a link leads. A file there is
/// replaced only if `replace` is set, and only if it is an image: not a member that was named by mistake.
pub(super) fn place_of(path: &Path, replace: bool) -> Result<PathBuf, ImageError> {
    let path = match path.symlink_metadata() {
        Ok(_) if !replace => return Err(ImageError::Exists { path: path.to_owned() }),
        // In a folder of another user, a link may lead to anything.
        Ok(there) if there.is_symlink() && !is_own(&there) => {
            return Err(ImageError::NoImage {
                path: path.to_owned(),
                why: "it is a link of another user",
            });
        }
        // Of a link, what it leads to is replaced.
        Ok(_) => std::fs::canonicalize(path)
            .map_err(|source| ImageError::Write { path: path.to_owned(), source })?,
        Err(_) => path.to_owned(),
    };
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return Err(ImageError::NoImage { path, why: "it is no file" });
    }
    match may_replace(&path, &MAGIC) {
        Ok(true) => Ok(path),
        Ok(false) => {
            let why = "it holds something else, and an image replaces images only";
            Err(ImageError::NoImage { path, why })
        }
        Err(source) => Err(ImageError::Write { path, source }),
    }
}

/// Writes an image of `size` bytes to `path` ([`place_of`]). Returns its length. `read` returns the bytes from an
/// offset on, or `None` for zeroes.
pub(super) fn save(
    path: &Path,
    replace: bool,
    size: u64,
    mut read: impl FnMut(u64, usize) -> io::Result<Option<Vec<u8>>>,
) -> Result<u64, ImageError> {
    let path = &*place_of(path, replace)?;
    let failed = |source| ImageError::Write { path: path.to_owned(), source };
    let new = Beside::create(path).map_err(failed)?;
    let info = FrameInfo::new()
        .content_size(Some(size))
        .content_checksum(true)
        .block_size(BlockSize::Max1MB)
        .block_mode(BlockMode::Independent);
    let writer = BufWriter::with_capacity(PIECE, new.file());
    let mut frame = FrameEncoder::with_frame_info(info, writer);
    let zeroes = vec![0; PIECE];
    let mut offset = 0;
    while offset < size {
        let len = piece_len(size - offset);
        let bytes = read(offset, len).map_err(ImageError::ReadVolume)?;
        frame.write_all(bytes.as_deref().unwrap_or(&zeroes[..len])).map_err(failed)?;
        offset += len as u64;
    }
    let mut writer = frame.finish().map_err(|error| failed(error.into()))?;
    writer.flush().map_err(failed)?;
    drop(writer);
    new.into_place(path, replace).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ImageError::Exists { path: path.to_owned() },
        _ => failed(error),
    })
}

/// Returns true if this user or root owns the file.
fn is_own(there: &std::fs::Metadata) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&there.uid())
}

fn piece_len(left: u64) -> usize {
    usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))
}

/// An image that was verified.
#[derive(Debug)]
pub(super) struct Image {
    path: PathBuf,
    file: File,
    size: u64,
}

impl Image {
    /// Opens the image at `path`, and decodes all of it.
    pub(super) fn verify(path: &Path, size: u64) -> Result<Image, ImageError> {
        let mut image = Image::open(path, size)?;
        image.decode(|_, _| Ok(()))?;
        Ok(image)
    }

    /// Opens the image at `path`, whose header must not contradict `size` bytes of content.
    pub(super) fn open(path: &Path, size: u64) -> Result<Image, ImageError> {
        let failed = |source| ImageError::Read { path: path.to_owned(), source };
        // A pipe may never get a writer.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(ImageError::NoImage { path: path.to_owned(), why: "it is no file" });
        }
        let mut image = Image { path: path.to_owned(), file, size };
        image.check_header()?;
        Ok(image)
    }

    /// Gives every piece of its content, with its offset, to `write`. It fails where `write` does, or
    /// where the file was changed since it was verified.
    pub(super) fn restore(
        mut self,
        write: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<(), ImageError> {
        self.decode(write)
    }

    fn no_image(&self, why: &'static str) -> ImageError {
        ImageError::NoImage { path: self.path.clone(), why }
    }

    fn damaged(&self, why: impl ToString) -> ImageError {
        ImageError::Damaged { path: self.path.clone(), why: why.to_string() }
    }

    /// Checks the header of the frame: it has a checksum, and its size fits if it has one.
    fn check_header(&mut self) -> Result<(), ImageError> {
        const HAS_SIZE: u8 = 1 << 3;
        const HAS_CHECKSUM: u8 = 1 << 2;
        let mut header = Vec::new();
        let read = (&self.file).take(14).read_to_end(&mut header);
        read.map_err(|source| ImageError::Read { path: self.path.clone(), source })?;
        if header.get(..4) != Some(&MAGIC) {
            return Err(self.no_image("it does not begin as an LZ4 frame does"));
        }
        let flags = header.get(4).copied().unwrap_or_default();
        if flags & HAS_CHECKSUM == 0 {
            return Err(self.no_image("it is an LZ4 frame without a checksum of its content"));
        }
        match header.get(6..14).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes) {
            Some(size) if flags & HAS_SIZE != 0 && size != self.size => {
                Err(self.other_size(format!("{:#} ({size} bytes)", ByteSize(size))))
            }
            _ => Ok(()),
        }
    }

    fn other_size(&self, image: String) -> ImageError {
        let volume = format!("{:#} ({} bytes)", ByteSize(self.size), self.size);
        ImageError::Size { path: self.path.clone(), image, volume }
    }

    /// Decodes all of it, from its beginning.
    fn decode(
        &mut self,
        mut take: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<(), ImageError> {
        let failed = |source| ImageError::Read { path: self.path.clone(), source };
        (&self.file).rewind().map_err(failed)?;
        let reader = BufReader::with_capacity(PIECE, &self.file);
        let mut frame = FrameDecoder::new(UpToEnd { reader, has_ended: false });
        let mut piece = vec![0; PIECE];
        let (mut offset, mut is_over) = (0, false);
        // Once its frame is over, a decoder would look for another one.
        while !is_over {
            // One byte more than there may be tells an image that is too long.
            let wanted = piece_len((self.size - offset).max(1));
            let mut filled = 0;
            while filled < wanted {
                match frame.read(&mut piece[filled..wanted]) {
                    Ok(0) => {
                        is_over = true;
                        break;
                    }
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.raw_os_error().is_some() => return Err(failed(error)),
                    Err(error) => return Err(self.damaged(error)),
                }
            }
            if offset == self.size && filled > 0 {
                return Err(self.other_size("more".to_owned()));
            }
            if filled > 0 {
                take(offset, &piece[..filled]).map_err(ImageError::WriteVolume)?;
                offset += filled as u64;
            }
        }
        let mut rest = frame.into_inner();
        if rest.has_ended {
            return Err(self.damaged("it ends before its frame does"));
        }
        if offset < self.size {
            return Err(self.other_size(format!("{:#} ({offset} bytes)", ByteSize(offset))));
        }
        match rest.read(&mut [0]).map_err(failed)? {
            0 => Ok(()),
            _ => Err(self.damaged("something lies behind its frame")),
        }
    }
}

/// A reader that knows whether it was asked for more than there is.
struct UpToEnd<R> {
    reader: R,
    has_ended: bool,
}

impl<R: Read> Read for UpToEnd<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buf)?;
        self.has_ended |= count == 0 && !buf.is_empty();
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Content that is no multiple of a piece, with a hole, and one piece that does not compress.
    fn content() -> Vec<u8> {
        let mut bytes = vec![0u8; 3 * PIECE + 512];
        let mut random = braid_seed::Rng::new(1);
        bytes[..PIECE].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
        bytes[3 * PIECE..].fill(7);
        bytes
    }

    fn save_to(path: &Path, bytes: &[u8], replace: bool) -> Result<u64, ImageError> {
        save(path, replace, bytes.len() as u64, |offset, len| {
            let piece = &bytes[offset as usize..][..len];
            Ok(piece.iter().any(|byte| *byte != 0).then(|| piece.to_vec()))
        })
    }

    fn restored(path: &Path, size: usize) -> Result<Vec<u8>, ImageError> {
        let mut bytes = vec![1; size];
        Image::verify(path, size as u64)?.restore(|offset, piece| {
            bytes[offset as usize..][..piece.len()].copy_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    #[test]
    fn what_was_saved_is_restored_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.lz4");
        let bytes = content();
        let len = save_to(&path, &bytes, false).unwrap();
        assert_eq!(len, path.metadata().unwrap().len());
        assert!(restored(&path, bytes.len()).unwrap() == bytes);
        let again = save_to(&path, &bytes[512..], false);
        assert!(matches!(again, Err(ImageError::Exists { .. })));
        assert!(restored(&path, bytes.len()).unwrap() == bytes);
        save_to(&path, &bytes[512..], true).unwrap();
        assert!(restored(&path, bytes.len() - 512).unwrap() == bytes[512..]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing lies beside it");
    }

    #[test]
    fn only_files_are_replaced_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("v.lz4"), folder.path().join("link"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(save_to(&link, &[1; 512], false), Err(ImageError::Exists { .. })));
        save_to(&path, &[1; 512], false).unwrap();
        save_to(&link, &[2; 512], true).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert!(restored(&path, 512).unwrap() == [2; 512]);
        assert!(matches!(save_to(folder.path(), &[3; 512], true), Err(ImageError::NoImage { .. })));
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(matches!(save_to(&pipe, &[3; 512], true), Err(ImageError::NoImage { .. })));
        assert!(matches!(restored(&pipe, 512), Err(ImageError::NoImage { .. })));
        // A member, of which nothing may be lost.
        let member = folder.path().join("a.img");
        std::fs::write(&member, [7; 8192]).unwrap();
        assert!(matches!(save_to(&member, &[3; 512], true), Err(ImageError::NoImage { .. })));
        assert_eq!(std::fs::read(&member).unwrap(), [7; 8192]);
        std::fs::write(&member, []).unwrap();
        save_to(&member, &[3; 512], true).unwrap();
    }

    #[test]
    fn a_save_that_fails_leaves_the_old_image_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.lz4");
        save_to(&path, &[5; 4096], false).unwrap();
        let failed = save(&path, true, 1 << 30, |offset, len| match offset {
            0 => Ok(Some(vec![3; len])),
            _ => Err(io::ErrorKind::Other.into()),
        });
        assert!(matches!(failed, Err(ImageError::ReadVolume(_))));
        assert!(restored(&path, 4096).unwrap() == [5; 4096]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Every byte changed, and the file cut at every length: never restored as if it were well.
    #[test]
    fn no_damage_passes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.lz4");
        let mut bytes = vec![9; 5000];
        bytes[..100].copy_from_slice(&content()[..100]);
        save_to(&path, &bytes, false).unwrap();
        let image = std::fs::read(&path).unwrap();
        for at in 0..image.len() {
            for changed in [image[at] ^ 1, image[at] ^ 0x80, !image[at]] {
                let mut damaged = image.clone();
                damaged[at] = changed;
                std::fs::write(&path, &damaged).unwrap();
                // Some changes leave the content as it is; then it is what was saved.
                if let Ok(read) = restored(&path, bytes.len()) {
                    assert!(read == bytes, "byte {at} is {changed:#x}");
                }
            }
            std::fs::write(&path, &image[..at]).unwrap();
            assert!(restored(&path, bytes.len()).is_err(), "cut at {at}");
        }
        std::fs::write(&path, [&image[..], &[0]].concat()).unwrap();
        assert!(matches!(restored(&path, bytes.len()), Err(ImageError::Damaged { .. })));
        for size in [4999, 5001, 1, 1 << 30] {
            std::fs::write(&path, &image).unwrap();
            assert!(matches!(restored(&path, size), Err(ImageError::Size { .. })), "{size}");
        }
    }

    /// Frames of all kinds that others write, with bytes changed at random behind a good header.
    #[test]
    fn hostile_bytes_are_an_error_or_what_was_saved() {
        let seed = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into();
        println!("seed {seed}");
        let mut random = braid_seed::Rng::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.lz4");
        // Several blocks of 64 KiB, of which the later ones repeat the earlier ones.
        let mut bytes = content()[..150_000].to_vec();
        bytes.copy_within(..60_000, 70_000);
        for round in 0..400 {
            let mode = if random.percent(50) { BlockMode::Linked } else { BlockMode::Independent };
            let info = FrameInfo::new()
                .content_checksum(true)
                .block_checksums(random.percent(30))
                .block_size(BlockSize::Max64KB)
                .block_mode(mode);
            let mut frame = FrameEncoder::with_frame_info(info, Vec::new());
            frame.write_all(&bytes).unwrap();
            let mut image = frame.finish().unwrap();
            for _ in 0..random.below(4) {
                let at = 7 + random.index(image.len() - 7);
                image[at] = random.below(256) as u8;
            }
            std::fs::write(&path, &image).unwrap();
            if let Ok(read) = restored(&path, bytes.len()) {
                assert!(read == bytes, "round {round}");
            }
        }
    }

    #[test]
    fn a_frame_without_size_is_measured_and_one_without_checksum_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.lz4");
        let write = |info: FrameInfo| {
            let file = File::create(&path).unwrap();
            let mut frame = FrameEncoder::with_frame_info(info, file);
            frame.write_all(&[6; 4096]).unwrap();
            frame.finish().unwrap();
        };
        write(FrameInfo::new().content_checksum(true));
        assert!(restored(&path, 4096).unwrap() == [6; 4096]);
        assert!(matches!(restored(&path, 8192), Err(ImageError::Size { .. })));
        assert!(matches!(restored(&path, 512), Err(ImageError::Size { .. })));
        write(FrameInfo::new().content_size(Some(4096)));
        assert!(matches!(restored(&path, 4096), Err(ImageError::NoImage { .. })));
        assert!(matches!(Image::verify(folder.path(), 1), Err(ImageError::NoImage { .. })));
    }
}
