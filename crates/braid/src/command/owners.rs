//! Owners of this machine's md arrays: braid, the kernel, or none; and conflicts between both.
//!
//! Reads only. The judgement is pure; the rule of ownership is in `ownership`.

use std::path::{Path, PathBuf};

use braid_md::assembly::{Set, group};
use braid_md_text::mdadm_conf::{MdadmConf, fence};
use braid_probe::{Holder, find_users};
use braid_shell::shell_path;

use braid_service::failure::Failure;
use braid_service::metadata::{Metadata, block_devices};
use braid_service::ownership::Owners;
use braid_service::places::Places;

/// Possible paths of mdadm's configuration.
const MDADM_CONF: [&str; 2] = ["/etc/mdadm/mdadm.conf", "/etc/mdadm.conf"];
/// Possible paths of braid's udev rule.
const RULES: [&str; 4] = [
    "/usr/local/lib/udev/rules.d/64-braid-assembly.rules",
    "/etc/udev/rules.d/64-braid-assembly.rules",
    "/usr/lib/udev/rules.d/64-braid-assembly.rules",
    "/lib/udev/rules.d/64-braid-assembly.rules",
];

/// An array that was found.
#[derive(Debug)]
struct Facts {
    /// Its name and identifier.
    title: String,
    members: Vec<String>,
    /// The volume whose NAME.toml names it, or why that cannot be told.
    owner: Result<Option<String>, String>,
    /// The kernel's array on its members, such as `md127`.
    kernel: Option<String>,
    /// mdadm is installed, and might take it.
    has_mdadm: bool,
    /// mdadm.conf tells mdadm to leave it alone.
    is_fenced: bool,
    /// braid's udev rule is there.
    has_rule: bool,
    /// The line that fences.
    fence: String,
}

/// Ownership of an array.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Owned {
    /// Both sides have it or would take it.
    pub(super) is_conflict: bool,
    pub(super) found: String,
    pub(super) advice: Option<String>,
}

impl Facts {
    fn judge(&self) -> Owned {
        let Facts { title, fence, .. } = self;
        let of = format!("{title} on {}", self.members.join(", "));
        let owned = |is_conflict, whose: &str, advice: Option<String>| Owned {
            is_conflict,
            found: format!("{of}: {whose}"),
            advice,
        };
        match (&self.owner, &self.kernel) {
            (Err(why), _) => {
                owned(true, why, Some("remove the NAME.toml that is not meant".into()))
            }
            (Ok(Some(volume)), Some(md)) => owned(
                true,
                &format!(
                    "the kernel has it as /dev/{md}, and {volume}.toml says that it is braid's"
                ),
                Some(format!(
                    "mdadm --stop /dev/{md}; `{fence}` in mdadm.conf, and update-initramfs -u; then `braid \
                     up {volume}`; or, to leave it to the kernel, remove {volume}.toml"
                )),
            ),
            (Ok(Some(volume)), None) if self.has_mdadm && !self.is_fenced => owned(
                true,
                &format!("braid's ({volume}.toml), and mdadm would take it in the initramfs"),
                Some(format!("`{fence}` in mdadm.conf, and update-initramfs -u")),
            ),
            (Ok(Some(volume)), None) if !self.has_rule => owned(
                false,
                &format!("braid's ({volume}.toml); nothing starts it when its members come"),
                Some("install 64-braid-assembly.rules, or systemctl enable braid@NAME".to_owned()),
            ),
            (Ok(Some(volume)), None) => owned(false, &format!("braid's ({volume}.toml)"), None),
            (Ok(None), Some(md)) => owned(false, &format!("the kernel's (/dev/{md})"), None),
            (Ok(None), None) => owned(
                false,
                "unassigned: no NAME.toml names it, and the kernel has not started it",
                None,
            ),
        }
    }
}

/// All arrays on block devices, and what is wrong with files that could name some.
///
/// # Errors
/// The block devices cannot be listed.
pub(super) fn owners(places: &Places) -> Result<Vec<Owned>, Failure> {
    let owners = Owners::read(places)?;
    let conf = MDADM_CONF.iter().find_map(|path| std::fs::read_to_string(path).ok());
    let conf = conf.map(|text| MdadmConf::parse(&text));
    let paths = block_devices()?;
    let found: Vec<Metadata> = paths.iter().filter_map(|path| Metadata::look(path).ok()).collect();
    let unreadable = owners.unreadable.iter().map(|why| Owned {
        is_conflict: true,
        found: format!("a NAME.toml cannot be read, so its arrays are unassigned: {why}"),
        advice: Some("repair it, or remove it".to_owned()),
    });
    let mut all: Vec<Owned> = unreadable.collect();
    if let Some(Err(error)) = &conf {
        all.push(Owned {
            is_conflict: false,
            found: format!("mdadm.conf: {error}"),
            advice: Some("what it fences cannot be told: repair that line".to_owned()),
        });
    }
    let conf = conf.and_then(Result::ok).unwrap_or_default();
    let sets = group(found.iter().map(Metadata::candidate).collect());
    all.extend(sets.iter().map(|set| facts(set, &owners, &conf).judge()));
    Ok(all)
}

fn facts(set: &Set, owners: &Owners, conf: &MdadmConf) -> Facts {
    let uuid = set.uuid;
    let members: Vec<PathBuf> =
        set.candidates().iter().map(|one| PathBuf::from(&one.label)).collect();
    let owner = owners.of(&uuid.to_string()).map_err(|failure| failure.text());
    Facts {
        title: match set.short_name() {
            "" => uuid.to_string(),
            name => format!("{} ({uuid})", name.escape_debug()),
        },
        kernel: members.iter().find_map(|path| md_on(path)),
        members: members.iter().map(shell_path).collect(),
        owner: owner.map(|owned| owned.map(|owned| owned.volume.clone())),
        has_mdadm: ["/sbin/mdadm", "/usr/sbin/mdadm"].iter().any(|path| Path::new(path).exists()),
        is_fenced: conf.arrays.iter().any(|line| line.is_ignored && line.uuid == Some(uuid)),
        has_rule: RULES.iter().any(|path| Path::new(path).exists()),
        fence: fence(uuid),
    }
}

/// The kernel's array that a device is a member of.
fn md_on(path: &Path) -> Option<String> {
    let holders = find_users(path).ok()?.holders;
    holders.into_iter().find_map(|holder| match holder {
        Holder::Device { name } if name.starts_with("md") => Some(name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_owns_what_and_where_both_would() {
        let home = || Ok(Some("home".to_owned()));
        let facts = |owner, kernel: Option<&str>, is_fenced| Facts {
            title: "home (1)".into(),
            members: vec!["/dev/sda".into()],
            kernel: kernel.map(str::to_owned),
            owner,
            is_fenced,
            has_mdadm: true,
            has_rule: true,
            fence: "ARRAY <ignore> UUID=1".into(),
        };
        for (facts, is_conflict, found, advice) in [
            (facts(home(), None, true), false, "braid's (home.toml)", ""),
            (
                facts(home(), None, false),
                true,
                "would take it in the initramfs",
                "ARRAY <ignore> UUID=1",
            ),
            (
                facts(home(), Some("md7"), true),
                true,
                "the kernel has it as /dev/md7",
                "mdadm --stop /dev/md7",
            ),
            (facts(Ok(None), Some("md7"), false), false, "the kernel's (/dev/md7)", ""),
            (facts(Ok(None), None, false), false, "unassigned", ""),
            (facts(Err("of two volumes".into()), None, false), true, "of two volumes", "remove"),
            (
                Facts { has_mdadm: false, ..facts(home(), None, false) },
                false,
                "braid's (home.toml)",
                "",
            ),
            (
                Facts { has_rule: false, ..facts(home(), None, true) },
                false,
                "nothing starts it",
                "install",
            ),
        ] {
            let judged = facts.judge();
            assert_eq!(judged.is_conflict, is_conflict, "{facts:?}");
            assert!(judged.found.starts_with("home (1) on /dev/sda: "), "{judged:?}");
            assert!(judged.found.contains(found), "{judged:?}");
            let told = judged.advice.clone().unwrap_or_default();
            assert!(told.contains(advice) && advice.is_empty() == told.is_empty(), "{judged:?}");
        }
    }
}
