//! mdadm.conf: what it says of arrays and of devices.
//!
//! ```text
//!   # a comment                          DEVICE /dev/sd* partitions
//!   ARRAY /dev/md/home UUID=…            HOMEHOST <system>
//!      devices=/dev/sda1,/dev/sdb1       # this line goes on with the one before
//! ```
//!
//! Invariants: pure; every line is understood, or is an error with its number, but for words of `ARRAY` lines
//! that say nothing of which array is meant.
//!
//! Deliberately absent: mail, policies, what `CREATE` and `AUTO` say: these are mdadm's own matters.
//!
//! Source: mdadm 4.2 `mdadm.conf(5)`, `config.c` (`match_keyword`, `arrayline`), `dlink.c` and `conf_word`.

use braid_md::Uuid;

/// A line that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ConfError {
    /// From 1; of a line that goes on, the first.
    pub line: usize,
    /// The error.
    pub what: String,
}

/// The content of a mdadm.conf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MdadmConf {
    /// Patterns of devices that may be members; `partitions` for all block devices. Empty for the same.
    pub devices: Vec<String>,
    /// The host whose arrays are local, if it is said; `<system>` and the like as they are written.
    pub homehost: Option<String>,
    /// In order.
    pub arrays: Vec<ArrayLine>,
}

/// An `ARRAY` line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayLine {
    /// From 1.
    pub line: usize,
    /// `/dev/md0`, `/dev/md/home`, `home`.
    pub device: Option<String>,
    /// `<ignore>`: mdadm leaves it alone.
    pub is_ignored: bool,
    /// The array's identifier.
    pub uuid: Option<Uuid>,
    /// The array's name, perhaps with its host.
    pub name: Option<String>,
    /// The preferred minor number, for arrays of version 0.90.
    pub super_minor: Option<u32>,
    /// Patterns of the members.
    pub devices: Vec<String>,
    /// Arrays that share their spares.
    pub spare_group: Option<String>,
    /// It is in a container (external metadata), or is one.
    pub is_external: bool,
}

/// The keywords, which may be cut off after three letters.
const KEYWORDS: [&str; 14] = [
    "device",
    "array",
    "mailaddr",
    "mailfrom",
    "program",
    "create",
    "homehost",
    "homecluster",
    "auto",
    "policy",
    "part-policy",
    "sysfs",
    "monitordelay",
    "encryption_no_verify",
];

impl MdadmConf {
    /// Reads the text of a mdadm.conf.
    ///
    /// # Errors
    /// The first line that cannot be understood.
    pub fn parse(text: &str) -> Result<MdadmConf, ConfError> {
        let mut conf = MdadmConf::default();
        for (line, words) in logical_lines(text)? {
            let Some((first, rest)) = words.split_first() else { continue };
            let wrong = |what: String| ConfError { line, what };
            let keyword = keyword(first).ok_or_else(|| {
                wrong(format!("{first:?} is no keyword of mdadm.conf: {}", KEYWORDS.join(", ")))
            })?;
            match keyword {
                "device" => conf.devices.extend(rest.iter().cloned()),
                "homehost" => conf.homehost = rest.first().cloned(),
                "array" => conf.arrays.push(array(line, rest)?),
                _ => {}
            }
        }
        Ok(conf)
    }
}

impl ArrayLine {
    /// The name of a volume for this array: the last part of the device, or of the name.
    pub fn volume(&self) -> Option<String> {
        let last = |text: &String| text.rsplit(['/', ':']).next().map(str::to_owned);
        self.device.as_ref().and_then(last).or_else(|| self.name.as_ref().and_then(last))
    }

    /// True if the line describes an array with this identifier, name, preferred minor and members: every given
    /// condition must match, and there must be at least one.
    pub fn means(
        &self,
        uuid: Uuid,
        name: &str,
        minor: Option<u32>,
        members: &[&str],
        homehost: Option<&str>,
    ) -> bool {
        let fits_name = |wanted: &String| match name.split_once(':') {
            _ if wanted == name => true,
            Some((host, own)) => own == wanted && homehost.is_none_or(|home| home == host),
            None => false,
        };
        let is_one = |member: &&str| self.devices.iter().any(|pattern| matches(pattern, member));
        let says_something = self.uuid.is_some()
            || self.name.is_some()
            || self.super_minor.is_some()
            || !self.devices.is_empty();
        says_something
            && self.uuid.is_none_or(|own| own == uuid)
            && self.name.as_ref().is_none_or(fits_name)
            && self.super_minor.is_none_or(|own| Some(own) == minor)
            && (self.devices.is_empty() || members.iter().all(is_one))
    }
}

/// The line that keeps mdadm from an array.
pub fn fence(uuid: Uuid) -> String {
    format!("ARRAY <ignore> UUID={uuid}")
}

fn keyword(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    KEYWORDS.into_iter().find(|keyword| {
        // mdadm takes the first three letters or more.
        word.len() >= 3 && (keyword.starts_with(&word))
    })
}

fn array(line: usize, words: &[String]) -> Result<ArrayLine, ConfError> {
    let wrong = |what: String| ConfError { line, what };
    let mut array = ArrayLine { line, ..ArrayLine::default() };
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.contains('/')) else {
            match word.as_str() {
                "<ignore>" => array.is_ignored = true,
                _ if array.device.is_none() => array.device = Some(word.clone()),
                _ => return Err(wrong(format!("{word:?} follows the device {:?}", array.device))),
            }
            continue;
        };
        match key.to_ascii_lowercase().as_str() {
            "uuid" => array.uuid = Some(value.parse().map_err(wrong)?),
            "name" => array.name = Some(value.to_owned()),
            "super-minor" => {
                let number = value.parse();
                let number = number.map_err(|_| wrong(format!("{value:?} is no minor number")))?;
                array.super_minor = Some(number);
            }
            "devices" => array.devices.extend(value.split(',').map(str::to_owned)),
            "spare-group" => array.spare_group = Some(value.to_owned()),
            "container" | "member" => array.is_external = true,
            "metadata" => array.is_external |= !is_md_s(value),
            "level" => array.is_external |= value == "container",
            // What the superblocks say, or what mdadm does with it.
            "num-devices" | "raid-devices" | "disks" | "spares" | "auto" | "bitmap"
            | "bitmap-file" | "uuid-for-homehost" => {}
            _ => return Err(wrong(format!("{key:?} is no word of an ARRAY line"))),
        }
    }
    Ok(array)
}

fn is_md_s(metadata: &str) -> bool {
    ["0", "0.90", "0.91", "1", "1.0", "1.1", "1.2", "1.x", "default"].contains(&metadata)
}

/// The words of each line, with those of the lines that go on with it.
fn logical_lines(text: &str) -> Result<Vec<(usize, Vec<String>)>, ConfError> {
    let mut lines: Vec<(usize, Vec<String>)> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let words = words(text).map_err(|what| ConfError { line, what: what.to_owned() })?;
        match lines.last_mut() {
            Some((_, before)) if text.starts_with([' ', '\t']) => before.extend(words),
            _ => lines.push((line, words)),
        }
    }
    Ok(lines)
}

/// Words of one line: quotes of both kinds hold blanks, `#` begins a comment where a word would.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for char in line.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(char),
            (None, '#') if word.is_none() => return Ok(words),
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t' | '\r') => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    match quote {
        None => Ok(words),
        Some(_) => Err("a quote is not closed"),
    }
}

/// True if `text` matches the shell `pattern` of `*`, `?` and `[…]`; `*` also matches slashes, as in mdadm's
/// fnmatch.
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // The last star, and the part of the text that it has matched.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match one(&pattern[p..], text[t]) {
            Some(taken) => (p, t) = (p + taken, t + 1),
            None if pattern.get(p) == Some(&'*') => {
                star = Some((p, t));
                p += 1;
            }
            None => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|char| *char == '*')
}

/// The length of the part of `pattern` that matches the one character; `None` if it does not match, or begins
/// with a star.
fn one(pattern: &[char], char: char) -> Option<usize> {
    match pattern {
        [] | ['*', ..] => None,
        ['?', ..] => Some(1),
        ['[', rest @ ..] => {
            let (is_not, set) = match rest {
                ['!' | '^', set @ ..] => (true, set),
                set => (false, set),
            };
            // A bracket that comes first is one of the set.
            let end = set.iter().skip(1).position(|char| *char == ']')? + 1;
            let mut inside = &set[..end];
            let mut is_in = false;
            while let [first, rest @ ..] = inside {
                inside = match rest {
                    ['-', last, rest @ ..] => {
                        is_in |= (*first..=*last).contains(&char);
                        rest
                    }
                    rest => {
                        is_in |= *first == char;
                        rest
                    }
                };
            }
            (is_in != is_not).then(|| pattern.len() - rest.len() + usize::from(is_not) + end + 1)
        }
        ['\\', escaped, ..] => (*escaped == char).then_some(2),
        [plain, ..] => (*plain == char).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "1c8f6bb4:0a3b2c4d:5e6f7081:92a3b4c5";

    fn uuid() -> Uuid {
        UUID.parse().expect("a UUID")
    }

    #[test]
    fn what_debian_and_administrators_write() {
        let text = format!(
            "# mdadm.conf\n#\nDEVICE partitions containers\nHOMEHOST <system>\nMAILADDR root\n\n\
             # definitions of existing MD arrays\n\
             ARRAY /dev/md/home  metadata=1.2 UUID={UUID} name=host:home\n   spares=1\n\
             array <ignore> uuid={UUID}\nARR /dev/md0 super-minor=0 devices=/dev/sda1,/dev/sdb1 # old\n\
             ARRAY /dev/md/imsm metadata=imsm UUID={UUID}\nARRAY name='a b' spare-group=g\n"
        );
        let conf = MdadmConf::parse(&text).expect("a configuration");
        assert_eq!(conf.devices, ["partitions", "containers"]);
        assert_eq!(conf.homehost.as_deref(), Some("<system>"));
        let [home, ignored, old, imsm, named] = &conf.arrays[..] else { panic!("{conf:?}") };
        assert_eq!((home.line, home.volume().as_deref()), (8, Some("home")));
        assert_eq!((home.uuid, home.name.as_deref()), (Some(uuid()), Some("host:home")));
        assert!(!home.is_ignored && !home.is_external);
        assert!(ignored.is_ignored && ignored.uuid == Some(uuid()) && ignored.device.is_none());
        assert_eq!((old.super_minor, old.volume().as_deref()), (Some(0), Some("md0")));
        assert_eq!(old.devices, ["/dev/sda1", "/dev/sdb1"]);
        assert!(imsm.is_external);
        assert_eq!((named.name.as_deref(), named.spare_group.as_deref()), (Some("a b"), Some("g")));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, line, what) in [
            ("ARRAY /dev/md0 UUID=12", 1, "is no UUID"),
            ("\nARY /dev/md0", 2, "\"ARY\" is no keyword"),
            ("DE x", 1, "no keyword"),
            ("ARRAY /dev/md0 /dev/md1", 1, "follows the device"),
            ("# x\nARRAY /dev/md0\n  uid=3", 2, "\"uid\" is no word"),
            ("ARRAY 'a", 1, "a quote is not closed"),
            ("ARRAY super-minor=x", 1, "no minor number"),
        ] {
            let error = MdadmConf::parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.what.contains(what), "{text}: {error}");
        }
    }

    /// Every ARRAY line that mdadm prints of a golden array is read as that array.
    #[test]
    fn what_is_printed_is_read() {
        use crate::examine::{Written, brief};
        for array in braid_golden::all() {
            let member = &array.members[0];
            let Some(at) = member.super_offset_bytes else { continue };
            let version = array.metadata.parse().expect("a version");
            let image = array.expand_member(0);
            let superblock = &image[at as usize..][..4096];
            let facts = braid_md::Superblock::parse(version, at, member.bytes, superblock);
            let facts = facts.expect("a superblock that holds");
            for verbose in [false, true] {
                let line = brief(&Written::new(version, superblock), verbose);
                let conf = MdadmConf::parse(&line).expect("a line");
                let [array] = &conf.arrays[..] else { panic!("{line}") };
                assert_eq!(array.uuid, Some(facts.array_uuid), "{line}");
                assert!(array.volume().is_some_and(|name| !name.is_empty()), "{line}");
            }
        }
    }

    #[test]
    fn who_is_meant() {
        let line = |text: &str| {
            let conf = MdadmConf::parse(&format!("ARRAY /dev/md/x {text}")).expect(text);
            conf.arrays[0].clone()
        };
        let other = Uuid([7; 16]);
        let members = ["/dev/sda1", "/dev/sdb1"];
        for (text, is_meant) in [
            (String::new(), false),
            (format!("UUID={UUID}"), true),
            (format!("UUID={UUID} name=host:other"), false),
            ("name=host:home".into(), true),
            ("name=home".into(), true),
            ("name=other".into(), false),
            ("devices=/dev/sd?1".into(), true),
            ("devices=/dev/sda1".into(), false),
            ("super-minor=3".into(), true),
            ("super-minor=4".into(), false),
            (format!("UUID={other}"), false),
        ] {
            let means = line(&text).means(uuid(), "host:home", Some(3), &members, None);
            assert_eq!(means, is_meant, "{text}");
        }
        assert!(!line("name=home").means(uuid(), "host:home", None, &members, Some("elsewhere")));
    }

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("/dev/sd*", "/dev/sda", true),
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("sd[a-c]1", "sdb1", true),
            ("sd[!a-c]1", "sdb1", false),
            ("sd[!a-c]1", "sdx1", true),
            ("sd[]x]", "sd]", true),
            ("sd[", "sd[", false),
            ("sd?", "sd", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    /// Whatever the bytes, it is read or refused.
    #[test]
    fn any_text_is_read_or_refused() {
        let alphabet =
            ["ARRAY", " ", "\n", "UUID=", "'", "\"", "#", "=", "<ignore>", "\t", "é", "dev"];
        let mut random = braid_mutate::Random::new(5);
        for _ in 0..2000 {
            let words = random.below(12);
            let text: String = (0..words).map(|_| alphabet[random.below(alphabet.len())]).collect();
            let _ = MdadmConf::parse(&text);
            matches(&text, "dev/x");
        }
    }
}
