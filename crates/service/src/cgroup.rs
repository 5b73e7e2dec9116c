//! Limit of the memory that this process and the others of its cgroup may use.
//!
//! ```text
//!   /proc/self/cgroup    4:memory:/a/b        (version 1)      0::/a/b        (version 2)
//!   limits of            /sys/fs/cgroup/memory/a/b, a, …       /sys/fs/cgroup/a/b, a, …
//! ```
//!
//! Source: cgroups(7); the kernel's documents `cgroup-v1/memory.rst` and `cgroup-v2.rst`.

use std::fs;
use std::path::Path;

/// The lowest limit on memory of this process's cgroup and of those around it, in bytes; `None` if
/// there is none that can be seen.
pub fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of(&groups, &|file| fs::read_to_string(file).ok())
}

fn limit_of(groups: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (roots, file): (&[&str], _) = match controllers {
            "" => (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "memory.max"),
            some if some.split(',').any(|one| one == "memory") => {
                (&["/sys/fs/cgroup/memory"], "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let of_root = |root: &&str| {
            let folder = Path::new(root).join(path.trim_start_matches('/'));
            let around = folder.ancestors().take_while(|one| one.starts_with(root));
            around.filter_map(|one| number(&read(&one.join(file))?)).min()
        };
        roots.iter().filter_map(of_root).min()
    });
    limits.min()
}

/// A limit; none for "max", and for the most that version 1 knows.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|limit| *limit < 1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_all_limits_around_counts() {
        let files = |file: &Path| {
            let text = match file.to_str()? {
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "9223372036854771712\n",
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes" => "1048576\n",
                "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes" => "4194304\n",
                "/sys/fs/cgroup/x/memory.max" => "max\n",
                "/sys/fs/cgroup/x/y/memory.max" => "8192\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(limit_of("5:cpu:/a/b\n4:memory:/a/b\n0::/\n", &files), Some(1 << 20));
        assert_eq!(limit_of("4:hugetlb,memory:/\n", &files), None);
        assert_eq!(limit_of("0::/x/y\n", &files), Some(8192));
        assert_eq!(limit_of("0::/x\n", &files), None);
        assert_eq!(limit_of("no line of the kernel's\n", &files), None);
    }
}
