//! The content of a volume as a whole: erased, saved to an image, restored from one.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use braid_shell::shell_path;
use braid_stack::ByteSize;

use super::{Live, broken};
use crate::control::Answer;
use crate::failure::Failure;
use crate::volume::image::{self, Image, ImageError};
use crate::volume::to_shard::Orders;
use crate::why::Why;

/// Pieces in which an image is written or left as a hole, in bytes.
const GRAIN: usize = 64 << 10;

/// A volume that was saved: no client writes to it until this value is dropped, or until the end of the volume.
pub(in crate::volume) struct Sealed<'a> {
    live: &'a Live,
    was_locked: bool,
}

impl Sealed<'_> {
    /// Keeps writes out until the end of the volume.
    pub(in crate::volume) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Sealed<'_> {
    fn drop(&mut self) {
        self.live.locked.store(self.was_locked, Ordering::Relaxed);
        self.live.shards.set_locked(self.was_locked);
    }
}

impl Live {
    pub(super) fn erase(&self, force: bool, orders: &Orders) -> Answer {
        let name = &self.spec.name;
        let Some(ram) = self.media.ram() else {
            return Err(Why::NotErased { volume: name.clone() }.into());
        };
        self.refuse_locked()?;
        self.refuse_users(Some("erase"), force)?;
        orders.begin()?;
        let quiet = self.quiet()?;
        let used = ram.used_bytes();
        ram.erase();
        drop(quiet);
        Ok(format!("{name} is erased: {:#} of data are gone", ByteSize(used)))
    }

    pub(super) fn save(&self, file: &Path, force: bool, orders: &Orders) -> Answer {
        let name = &self.spec.name;
        let users = self.users()?;
        if !users.is_empty() && !self.is_locked() && !self.limits.read_only {
            return Err(Why::UsedWhileSaved { volume: name.clone(), users }.into());
        }
        let not_saved = |error: ImageError| match error {
            ImageError::NoImage { .. } => error.failure().next("another FILE"),
            error => self.with_next(error, file),
        };
        image::place_of(file, force).map_err(not_saved)?;
        orders.begin()?;
        let len = self.save_to(file, force).map_err(not_saved)?;
        Ok(format!(
            "{name} is saved: {:#} of content in {:#}, {}",
            ByteSize(self.limits().size),
            ByteSize(len),
            file.display()
        ))
    }

    pub(super) fn restore(&self, file: &Path, force: bool, orders: &Orders) -> Answer {
        let name = &self.spec.name;
        if self.limits.read_only {
            return Err(Why::ReadOnly { volume: name.clone() }.into());
        }
        self.refuse_locked()?;
        self.refuse_users(Some("restore"), force)?;
        let keep_data = || match !force && self.has_data()? {
            true => {
                Err(Failure::from(Why::HasData { volume: name.clone(), file: shell_path(file) }))
            }
            false => Ok(()),
        };
        keep_data()?;
        // The whole image is verified once it is begun: that may take long.
        Image::open(file, self.limits().size).map_err(|error| self.with_next(error, file))?;
        orders.begin()?;
        let quiet = self.quiet()?;
        keep_data()?;
        self.restore_from(file).map_err(|error| self.with_next(error, file))?;
        drop(quiet);
        Ok(format!("{name} is restored from {}", file.display()))
    }

    fn with_next(&self, error: ImageError, file: &Path) -> Failure {
        let name = &self.spec.name;
        let next = match &error {
            ImageError::Exists { .. } => {
                format!("another FILE; or `braid save {name} {} --force`", shell_path(file))
            }
            ImageError::Size { .. } if self.media.ram().is_some() => {
                format!("`braid resize {name} SIZE` gives it the image's size")
            }
            ImageError::WriteVolume(_) => {
                format!("a part of it may be written: `braid erase {name}`, or restore it again")
            }
            ImageError::Damaged { .. } | ImageError::NoImage { .. } => {
                format!("another image; `lz4 --test {}` looks at this one", shell_path(file))
            }
            _ => return error.failure(),
        };
        error.failure().next(next)
    }

    /// Saves the content as an image, while no client writes. Returns the length of the image.
    pub(in crate::volume) fn save_to(&self, file: &Path, replace: bool) -> Result<u64, ImageError> {
        let _quiet = self
            .quiet()
            .map_err(|failure| ImageError::ReadVolume(io::Error::other(failure.text())))?;
        let size = self.limits().size;
        image::save(file, replace, size, |offset, len| {
            self.long_orders.reached("save", offset, size);
            self.shards.read(offset, len)
        })
    }

    /// The content of an image, which is verified before. The caller keeps clients from writing.
    pub(in crate::volume) fn restore_from(&self, file: &Path) -> Result<(), ImageError> {
        let size = self.limits().size;
        Image::verify(file, size)?.restore(|offset, bytes| {
            self.long_orders.reached("restore", offset, size);
            let mut pieces = Vec::new();
            for (index, grain) in bytes.chunks(GRAIN).enumerate() {
                let at = offset + (index * GRAIN) as u64;
                let is_hole = grain.iter().all(|byte| *byte == 0);
                pieces.push((at, grain.len(), (!is_hole).then(|| grain.to_vec())));
            }
            self.shards.write(pieces)
        })?;
        self.shards.flush().map_err(ImageError::WriteVolume)
    }

    /// Replaces the content with that of its image, if it has one that is there.
    pub(in crate::volume) fn restore_image_if_any(&self) -> Result<(), ImageError> {
        match self.image().filter(|image| image.symlink_metadata().is_ok()) {
            Some(image) => self.restore_from(image),
            None => Ok(()),
        }
    }

    /// Saves the content to its image, and lets clients write no more: what they wrote after that would
    /// be lost. Without an image nothing is done.
    pub(in crate::volume) fn save_image(&self) -> Result<Option<Sealed<'_>>, ImageError> {
        let Some(image) = self.image().filter(|_| !self.spec.read_only) else { return Ok(None) };
        let sealed = Sealed { live: self, was_locked: self.locked.swap(true, Ordering::Relaxed) };
        self.save_to(image, true)?;
        Ok(Some(sealed))
    }

    /// Returns true if any byte is not in a hole.
    fn has_data(&self) -> Result<bool, Failure> {
        match self.media.ram() {
            Some(ram) => Ok(ram.used_bytes() > 0),
            None => self.shards.has_data(self.limits().size).map_err(broken),
        }
    }
}
