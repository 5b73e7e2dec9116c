//! Whose an array is: braid's, or the kernel's.
//!
//! The rule, and there is no other: **an array is braid's if a `NAME.toml` names its identifier**, as the
//! `array` of one of its members; every other array is the kernel's (mdadm's). `up`, `create` and `assemble`
//! write that name, removing the file takes it back. So all get the same answer at any time:
//! udev's rule, `braid incremental`, `braid doctor`.
//!
//! Reading only. Deliberately absent: what members carry.

use crate::failure::Failure;
use crate::places::Places;
use crate::record::Record;

/// A volume, and what is remembered of it.
#[derive(Debug)]
pub struct Owned {
    /// The volume's name.
    pub volume: String,
    /// Its record.
    pub record: Record,
}

impl Owned {
    /// Returns true if it names the array with this identifier.
    pub fn names(&self, array: &str) -> bool {
        self.record.members.iter().any(|known| known.array.as_deref() == Some(array))
    }
}

/// The arrays that all files `NAME.toml` name.
#[derive(Debug, Default)]
pub struct Owners {
    /// By name.
    pub volumes: Vec<Owned>,
    /// Files that cannot be read, and why: arrays that only they name have no owner.
    pub unreadable: Vec<String>,
}

impl Owners {
    /// Reads the folder of configurations; without one nothing is braid's.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn read(places: &Places) -> Result<Owners, Failure> {
        let mut owners = Owners::default();
        for volume in places.configured_names()? {
            match Record::read(&places.config_file(&volume)) {
                Ok(record) => owners.volumes.push(Owned { volume, record }),
                Err(failure) => owners.unreadable.push(failure.text()),
            }
        }
        Ok(owners)
    }

    /// The volume that the array with this identifier belongs to; none if it is the kernel's.
    ///
    /// # Errors
    /// Several name it.
    pub fn of(&self, array: &str) -> Result<Option<&Owned>, Failure> {
        let named: Vec<&Owned> = self.volumes.iter().filter(|one| one.names(array)).collect();
        match named[..] {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [first, second, ..] => Err(Failure::refused(format!(
                "the array {array} is of two volumes: {} and {}",
                first.volume, second.volume
            ))
            .next(format!(
                "forget the one that is not meant: braid forget {}; or braid forget {}",
                first.volume, second.volume
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(volume: &str, array: Option<&str>) -> Owned {
        let member = array.map_or(String::new(), |array| {
            format!(
                "[[member]]\npath = \"/a\"\nidentity = \"x\"\nsize_bytes = 1\narray = {array:?}"
            )
        });
        let text = format!("stack = \"md(/a)\"\n{member}");
        Owned { volume: volume.into(), record: toml::from_str(&text).expect("a record") }
    }

    #[test]
    fn an_array_is_braid_s_if_exactly_one_file_names_it() {
        let volumes = vec![owned("a", Some("1")), owned("b", None), owned("c", Some("2"))];
        let mut owners = Owners { volumes, unreadable: Vec::new() };
        let of = |owners: &Owners, array: &str| {
            owners.of(array).map(|found| found.map(|one| one.volume.clone())).ok()
        };
        assert_eq!(of(&owners, "1"), Some(Some("a".into())));
        assert_eq!(of(&owners, "2"), Some(Some("c".into())));
        assert_eq!(of(&owners, "3"), Some(None));
        owners.volumes.push(owned("d", Some("1")));
        assert_eq!(of(&owners, "1"), None, "no choice is made");
    }
}
