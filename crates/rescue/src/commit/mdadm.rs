//! The `mdadm --create` that makes the same array.
//!
//! Source: mdadm(8): `--data-offset=variable` takes `NAME:OFFSET` for each member; sizes are in KiB.

use braid_level::{Level, Raid10Layout, layout};
use braid_md::Version;
use braid_shell::{shell_path, shell_word};

use super::Unfit;
use super::plan::{Plan, Planned};

const K: u64 = 1024;

impl Plan {
    /// Returns the command, one line. `path` names the file or device of a member.
    ///
    /// # Errors
    /// [`Unfit::NotByMdadm`]: mdadm would place the data elsewhere, or use more of a member.
    pub fn mdadm(&self, device: &str, path: &dyn Fn(&Planned) -> String) -> Result<String, Unfit> {
        let array = self.array();
        let (level, version) = (array.level, array.version);
        let mut words = vec![
            format!("mdadm --create {} --assume-clean", shell_path(device)),
            format!("--metadata={version} --level={level} --raid-devices={}", array.raid_disks),
        ];
        let name = match level {
            Level::Raid10 => Raid10Layout::from_number(array.layout)
                .ok()
                .filter(|layout| layout.has_one_kind())
                .map(|layout| layout.to_string())
                .ok_or(Unfit::NotByMdadm(
                    "it makes near, far or offset copies, one kind at a time",
                ))?,
            _ => layout::name_of(level, array.layout),
        };
        if !name.is_empty() {
            words.push(format!("--layout={name}"));
        }
        if array.chunk > 0 {
            words.push(format!("--chunk={}K", in_k(array.chunk)?));
        }
        match level.is_redundant() {
            true => words.push(format!("--size={}K --bitmap=none", in_k(array.component_size)?)),
            false => self.check_uses_all()?,
        }
        words.push(format!("--uuid={}", array.array_uuid));
        if !array.name.is_empty() {
            let (host, name) = array.name.split_once(':').unwrap_or(("<none>", &array.name));
            words.push(format!("--homehost={} --name={}", shell_word(host), shell_word(name)));
        }
        let offsets: Vec<u64> = self.members.iter().map(|one| one.superblock.data_offset).collect();
        let is_equal = offsets.iter().all(|one| *one == offsets[0]);
        match (version.is_at_end(), is_equal) {
            (true, _) if offsets.iter().any(|one| *one > 0) => {
                let why = "with metadata at the end of the members their data begin at byte 0";
                return Err(Unfit::NotByMdadm(why));
            }
            (true, _) => {}
            (false, true) => words.push(format!("--data-offset={}K", in_k(offsets[0])?)),
            (false, false) => words.push("--data-offset=variable".to_owned()),
        }
        for role in 0..array.raid_disks as usize {
            let member = self.members.iter().find(|one| one.role == role);
            words.push(match member {
                None => "missing".to_owned(),
                Some(one) if is_equal => shell_path(path(one)),
                Some(one) => {
                    let offset = in_k(one.superblock.data_offset)?;
                    shell_path(format!("{}:{offset}K", path(one)))
                }
            });
        }
        Ok(words.join(" "))
    }

    /// Checks that a level without redundancy uses all of each member, as mdadm has it.
    fn check_uses_all(&self) -> Result<(), Unfit> {
        let chunk = self.shape.chunk.max(512);
        let uses_all = |one: &Planned| {
            let end = match one.superblock.version {
                Version::V0_90 | Version::V1_0 => one.superblock.super_offset,
                Version::V1_1 | Version::V1_2 => one.place.length,
            };
            let room = end.saturating_sub(one.superblock.data_offset);
            room / chunk == one.superblock.data_size / chunk
        };
        let is_last =
            |one: &Planned| self.shape.level == Level::Linear && one.role + 1 == self.members.len();
        match self.members.iter().all(|one| uses_all(one) || is_last(one)) {
            true => Ok(()),
            false => Err(Unfit::NotByMdadm("it would use more of the members than the array does")),
        }
    }
}

fn in_k(bytes: u64) -> Result<u64, Unfit> {
    match bytes % K {
        0 => Ok(bytes / K),
        _ => Err(Unfit::NotByMdadm("it counts in KiB, and a size or offset is no whole number")),
    }
}
