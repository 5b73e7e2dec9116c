//! The arrays that are handed to and fro.

/// The properties of an array. Its name contains all of them: `raid10-5-n3-1.2-32K`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) level: &'static str,
    /// As mdadm's `--layout`; empty for the level's own.
    pub(crate) layout: &'static str,
    pub(crate) metadata: &'static str,
    /// Sizes of the members in MiB.
    pub(crate) members: &'static [u64],
    /// In KiB; 0 for the default.
    pub(crate) chunk: u64,
    pub(crate) bitmap: bool,
    /// True if raid5 has md's partial parity log.
    pub(crate) ppl: bool,
    pub(crate) spare: bool,
    /// The roles without a member.
    pub(crate) missing: &'static [usize],
    pub(crate) write_mostly: Option<usize>,
    /// True if it is among the few that every run of the tests includes.
    pub(crate) quick: bool,
}

const fn of(level: &'static str, layout: &'static str, members: &'static [u64]) -> Shape {
    Shape {
        level,
        layout,
        metadata: "1.2",
        members,
        chunk: 0,
        bitmap: false,
        ppl: false,
        spare: false,
        missing: &[],
        write_mostly: None,
        quick: false,
    }
}

impl Shape {
    const fn v(self, metadata: &'static str) -> Shape {
        Shape { metadata, ..self }
    }
    const fn chunk(self, chunk: u64) -> Shape {
        Shape { chunk, ..self }
    }
    const fn bitmap(self) -> Shape {
        Shape { bitmap: true, ..self }
    }
    const fn ppl(self) -> Shape {
        Shape { ppl: true, ..self }
    }
    const fn spare(self) -> Shape {
        Shape { spare: true, ..self }
    }
    const fn missing(self, roles: &'static [usize]) -> Shape {
        Shape { missing: roles, ..self }
    }
    const fn write_mostly(self, role: usize) -> Shape {
        Shape { write_mostly: Some(role), ..self }
    }
    const fn quick(self) -> Shape {
        Shape { quick: true, ..self }
    }
}

const EQUAL: [u64; 5] = [8; 5];
const TWO: &[u64] = EQUAL.split_at(2).0;
const THREE: &[u64] = EQUAL.split_at(3).0;
const FOUR: &[u64] = EQUAL.split_at(4).0;
const FIVE: &[u64] = &EQUAL;

/// Every level, every version of the metadata, and a few shapes of each.
pub(crate) const SHAPES: &[Shape] = &[
    of("linear", "", TWO).v("0.90"),
    of("linear", "", TWO).v("1.0"),
    of("linear", "", &[8, 13]).v("1.1"),
    of("linear", "", &[8, 13, 6]),
    of("raid0", "", TWO).v("0.90").chunk(64),
    of("raid0", "", TWO).v("1.0").chunk(64),
    of("raid0", "", THREE).v("1.1").chunk(128),
    of("raid0", "", FOUR),
    of("raid0", "alternate", &[6, 13, 8]).chunk(64).quick(),
    of("raid0", "original", &[6, 13, 8]).v("1.0").chunk(64),
    of("raid1", "", TWO).v("0.90"),
    of("raid1", "", TWO).v("1.0").bitmap(),
    of("raid1", "", &[8, 13]).v("1.1"),
    of("raid1", "", TWO).bitmap().quick(),
    of("raid1", "", THREE).write_mostly(2),
    of("raid1", "", TWO).v("0.90").bitmap(),
    of("raid1", "", TWO).spare(),
    of("raid1", "", THREE).missing(&[1]).bitmap(),
    of("raid10", "n2", FOUR).v("0.90").chunk(64),
    of("raid10", "n2", FOUR).v("1.0").chunk(64).bitmap(),
    of("raid10", "n2", &[8, 13, 8]).v("1.1").chunk(128),
    of("raid10", "n2", FIVE).spare(),
    of("raid10", "n3", FIVE).chunk(32),
    of("raid10", "n2", FOUR).missing(&[2]).chunk(64),
    of("raid10", "f2", TWO).v("0.90").chunk(64),
    of("raid10", "f2", THREE).v("1.0").bitmap(),
    of("raid10", "f2", FOUR).v("1.1").chunk(64),
    of("raid10", "f2", FIVE).chunk(4).quick(),
    of("raid10", "f3", FOUR).chunk(64),
    of("raid10", "o2", TWO).v("0.90").chunk(64),
    of("raid10", "o2", FOUR).v("1.0").chunk(64),
    of("raid10", "o2", THREE).v("1.1").chunk(32).bitmap(),
    of("raid10", "o2", FIVE).chunk(64).missing(&[0]).quick(),
    of("raid10", "o3", FOUR).chunk(64),
    of("raid4", "", THREE).chunk(64).quick(),
    of("raid4", "", FOUR).v("1.1").missing(&[3]),
    of("raid4", "", THREE).v("1.0").chunk(64).bitmap(),
    of("raid5", "ls", THREE).v("0.90").chunk(64),
    of("raid5", "ls", FOUR).v("1.0").chunk(64),
    of("raid5", "ls", &[8, 13, 8]).v("1.1").chunk(64),
    of("raid5", "", THREE),
    of("raid5", "", FOUR).chunk(4).bitmap(),
    of("raid5", "ls", FOUR).chunk(64).ppl().quick(),
    of("raid5", "ra", THREE).v("1.0").chunk(64).ppl(),
    of("raid5", "la", FOUR).chunk(64),
    of("raid5", "ra", FOUR).chunk(64),
    of("raid5", "rs", FOUR).chunk(64),
    of("raid5", "parity-first", FOUR).chunk(64),
    of("raid5", "parity-last", FOUR).chunk(64),
    of("raid5", "", FOUR).chunk(64).missing(&[2]),
    of("raid5", "", THREE).chunk(64).spare(),
    of("raid6", "ls", FOUR).v("0.90").chunk(64),
    of("raid6", "ls", FIVE).v("1.0").chunk(64).bitmap(),
    of("raid6", "ls", FIVE),
    of("raid6", "la", FIVE).chunk(64),
    of("raid6", "ra", FIVE).v("1.1").chunk(64),
    of("raid6", "rs", FIVE).chunk(4),
    of("raid6", "rs", FIVE).chunk(64).missing(&[0]),
    of("raid6", "rs", FIVE).chunk(64).missing(&[1, 3]).quick(),
    of("raid6", "parity-first", FIVE).chunk(64),
    of("raid6", "parity-last", FOUR).chunk(64),
    of("raid6", "ddf-zero-restart", FIVE).chunk(64),
    of("raid6", "ddf-N-restart", FIVE).chunk(64),
    of("raid6", "ddf-N-continue", FIVE).chunk(64),
    of("raid6", "left-asymmetric-6", FIVE),
    of("raid6", "right-asymmetric-6", FIVE),
    of("raid6", "left-symmetric-6", FIVE),
    of("raid6", "right-symmetric-6", FIVE),
    of("raid6", "parity-first-6", FIVE),
];

impl Shape {
    /// At most 32 bytes: it is the array's name too.
    pub(crate) fn name(&self) -> String {
        let mut name = format!("{}-{}", self.level, self.members.len());
        if !self.layout.is_empty() {
            name += &format!("-{}", self.layout);
        }
        name += &format!("-{}", self.metadata);
        if self.chunk != 0 {
            name += &format!("-{}K", self.chunk);
        }
        for (is_so, word) in [
            (self.members.iter().any(|size| *size != self.members[0]), "uneq"),
            (self.bitmap, "bitmap"),
            (self.ppl, "ppl"),
            (self.spare, "spare"),
            (self.missing.len() == 1, "missing"),
            (self.missing.len() == 2, "2missing"),
            (self.write_mostly.is_some(), "writemostly"),
        ] {
            if is_so {
                name += &format!("-{word}");
            }
        }
        name
    }

    /// True if there are copies, or parity, to compare.
    pub(crate) fn is_redundant(&self) -> bool {
        !matches!(self.level, "linear" | "raid0")
    }

    /// True if so many members are missing that nothing can be compared.
    pub(crate) fn has_nothing_to_compare(&self) -> bool {
        let spare_copies = match self.level {
            "raid4" | "raid5" => 1,
            "raid6" => 2,
            _ => usize::MAX,
        };
        !self.is_redundant() || self.missing.len() >= spare_copies
    }

    /// True if so many members are missing that some chunks have one copy, which a scrub cannot compare.
    pub(crate) fn leaves_copies_alone(&self) -> bool {
        let copies = match (self.level, self.layout.as_bytes()) {
            ("raid1", _) => self.members.len(),
            ("raid10", [_, digit]) => usize::from(digit - b'0'),
            _ => return false,
        };
        !self.missing.is_empty() && copies - self.missing.len() < 2
    }

    /// The files of the members that are there, and their sizes in bytes.
    pub(crate) fn images(&self) -> Vec<(String, u64)> {
        let there = |role: &usize| !self.missing.contains(role);
        let members = (0..self.members.len()).filter(there);
        let mut images: Vec<(String, u64)> = members
            .map(|role| (format!("{}.{role}", self.name()), self.members[role] << 20))
            .collect();
        if self.spare {
            images.push((format!("{}.spare", self.name()), self.members[0] << 20));
        }
        images
    }

    /// The files' names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.images().into_iter().map(|(name, _)| name).collect()
    }

    /// Options that mdadm and braid spell alike.
    fn options(&self) -> Vec<String> {
        let mut options = vec![format!("--level={}", self.level)];
        options.push(format!("--metadata={}", self.metadata));
        if !self.layout.is_empty() {
            options.push(format!("--layout={}", self.layout));
        }
        if self.chunk != 0 {
            options.push(format!("--chunk={}K", self.chunk));
        }
        if self.is_redundant() && !self.ppl {
            options.push(format!("--bitmap={}", if self.bitmap { "internal" } else { "none" }));
        }
        options
    }

    /// The arguments of `mdadm --create` in the guest, where the images are `${MEMBERS[0]}` and so on.
    pub(crate) fn mdadm_args(&self) -> String {
        let mut args = self.options();
        args.extend(self.ppl.then(|| "--consistency-policy=ppl".into()));
        args.push(format!("--raid-devices={}", self.members.len()));
        if self.spare {
            args.push("--spare-devices=1".into());
        }
        let mut devices = (0..).map(|index| format!("${{MEMBERS[{index}]}}"));
        for role in 0..self.members.len() {
            args.extend((self.write_mostly == Some(role)).then(|| "--write-mostly".into()));
            args.extend(match self.missing.contains(&role) {
                true => Some("missing".into()),
                false => devices.next(),
            });
        }
        args.extend(devices.take(usize::from(self.spare)));
        args.join(" ")
    }

    /// The arguments after `braid create NAME`. raid4 and raid6 without a bitmap get braid's stripe log if the
    /// metadata leaves room for one; the kernel does not know it.
    pub(crate) fn braid_args(&self) -> Vec<String> {
        let mut args = self.options();
        if self.level == "raid5" && !self.bitmap {
            args.push(format!("--consistency={}", if self.ppl { "ppl" } else { "resync" }));
        }
        let mut names = self.names().into_iter();
        for role in 0..self.members.len() {
            if self.missing.contains(&role) {
                args.push("missing".into());
                continue;
            }
            let name = names.next().unwrap_or_default();
            if self.write_mostly == Some(role) {
                args.push(format!("--write-mostly={name}"));
            }
            args.push(name);
        }
        args.extend(names.map(|spare| format!("--spare={spare}")));
        args
    }

    /// The stack that serves it. The order of the members must not matter.
    pub(crate) fn stack(&self) -> String {
        let mut names: Vec<String> = self.names().iter().map(|name| format!("./{name}")).collect();
        names.reverse();
        format!("md({})", names.join(", "))
    }
}
