//! The text about a volume group.
//!
//! ```text
//!   name { key = 1  key = "text"  key = ["text", 2]  name { .. } }      # a comment
//! ```

use std::collections::BTreeMap;

/// The most bytes of a text that are read.
const LONGEST: usize = 1 << 20;
/// The most sections in each other; a logical volume's segment is in the third.
const DEEPEST: usize = 8;
const SECTOR: u64 = 512;

/// A volume group of LVM2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeGroup {
    /// Its name.
    pub name: String,
    /// The number of this text: the highest is the newest.
    pub seqno: u64,
    /// Bytes of an extent.
    pub extent: u64,
    /// Its physical volumes.
    pub physical: Vec<Physical>,
    /// Its logical volumes.
    pub logical: Vec<Logical>,
}

/// A physical volume in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Physical {
    /// Its name in this text.
    pub name: String,
    /// Its UUID, without dashes.
    pub id: [u8; 32],
    /// Number of bytes.
    pub size: u64,
    /// The byte at which extent 0 begins.
    pub start: u64,
    /// Number of extents.
    pub extents: u64,
}

/// A logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logical {
    /// Its name.
    pub name: String,
    /// False for the parts of which LVM2 composes other volumes.
    pub is_visible: bool,
    /// Its segments, in order.
    pub segments: Vec<Segment>,
}

/// A part of a logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Bytes from the start of the logical volume.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
    /// LVM2's word. A segment of kind `striped` with one stripe is linear.
    pub kind: String,
    /// Names of physical volumes, and bytes from the start of each; none for other kinds than `striped`.
    pub stripes: Vec<(String, u64)>,
    /// Bytes of a chunk; 0 with one stripe.
    pub chunk: u64,
    /// The name of the volume that stores the changes, of a segment of kind `snapshot`.
    pub store: Option<String>,
}

impl Segment {
    /// The physical volume of a linear segment, and bytes from its start.
    pub fn linear(&self) -> Option<(&str, u64)> {
        match self.stripes.as_slice() {
            [(name, offset)] => Some((name, *offset)),
            _ => None,
        }
    }
}

#[derive(Debug)]
enum Value {
    Number(u64),
    Text(String),
    List(Vec<Value>),
    Section(Section),
}

type Section = BTreeMap<String, Value>;

/// Reads the text at the start of `bytes`, if there is one.
pub(crate) fn parse(bytes: &[u8]) -> Option<VolumeGroup> {
    if !bytes.first()?.is_ascii_graphic() {
        return None;
    }
    let head = &bytes[..bytes.len().min(256)];
    let space = head.iter().position(|byte| *byte == b' ')?;
    if !head[space..].starts_with(b" {\nid = \"") {
        return None;
    }
    let mut reader = Reader(&bytes[..bytes.len().min(LONGEST)]);
    let name = reader.word()?;
    reader.take(b'{')?;
    group(name, &reader.section(0)?)
}

/// The rest of a text.
struct Reader<'t>(&'t [u8]);

impl Reader<'_> {
    /// The next byte that is neither space nor in a comment.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.0.first()? {
                b'#' => {
                    let end = self.0.iter().position(|byte| *byte == b'\n')?;
                    self.0 = &self.0[end..];
                }
                byte if byte.is_ascii_whitespace() => self.0 = &self.0[1..],
                byte => return Some(byte),
            }
        }
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.0 = &self.0[1..])
    }

    fn word(&mut self) -> Option<String> {
        self.peek()?;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(byte);
        let length = self.0.iter().take_while(|byte| is_part(byte)).count();
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        (length > 0).then(|| String::from_utf8_lossy(word).into_owned())
    }

    /// The rest of a section, with the bracket that ends it.
    fn section(&mut self, depth: usize) -> Option<Section> {
        let mut section = Section::new();
        while self.peek()? != b'}' {
            let key = self.word()?;
            let value = match self.peek()? {
                b'{' if depth < DEEPEST => {
                    self.take(b'{')?;
                    Value::Section(self.section(depth + 1)?)
                }
                _ => {
                    self.take(b'=')?;
                    self.value()?
                }
            };
            section.insert(key, value);
        }
        self.take(b'}')?;
        Some(section)
    }

    fn value(&mut self) -> Option<Value> {
        if self.peek()? != b'[' {
            return self.scalar();
        }
        self.take(b'[')?;
        let mut list = Vec::new();
        while self.peek()? != b']' {
            list.push(self.scalar()?);
            if self.peek()? != b']' {
                self.take(b',')?;
            }
        }
        self.take(b']')?;
        Some(Value::List(list))
    }

    fn scalar(&mut self) -> Option<Value> {
        if self.peek()? != b'"' {
            let word = self.word()?;
            // Other numbers than whole ones are of no interest, and none is 0.
            return Some(word.parse().map_or(Value::Text(word), Value::Number));
        }
        self.take(b'"')?;
        let mut text = Vec::new();
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match *byte {
                b'"' => return Some(Value::Text(String::from_utf8_lossy(&text).into_owned())),
                b'\\' => {
                    let (byte, rest) = self.0.split_first()?;
                    self.0 = rest;
                    text.push(*byte);
                }
                byte => text.push(byte),
            }
        }
    }
}

fn number(section: &Section, key: &str) -> Option<u64> {
    match section.get(key)? {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn string<'s>(section: &'s Section, key: &str) -> Option<&'s str> {
    match section.get(key)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The sections within a section, with their names.
fn within(section: &Section) -> impl Iterator<Item = (&String, &Section)> {
    section.iter().filter_map(|(name, value)| match value {
        Value::Section(section) => Some((name, section)),
        _ => None,
    })
}

fn part<'s>(section: &'s Section, key: &str) -> Option<&'s Section> {
    within(section).find_map(|(name, section)| (name == key).then_some(section))
}

fn group(name: String, section: &Section) -> Option<VolumeGroup> {
    let extent = number(section, "extent_size")?.checked_mul(SECTOR)?;
    let read = |(name, of): (&String, &Section)| {
        let id: String = string(of, "id")?.split('-').collect();
        Some(Physical {
            name: name.clone(),
            id: id.into_bytes().try_into().ok()?,
            size: number(of, "dev_size")?.checked_mul(SECTOR)?,
            start: number(of, "pe_start")?.checked_mul(SECTOR)?,
            extents: number(of, "pe_count")?,
        })
    };
    let physical = within(part(section, "physical_volumes")?).map(read);
    let physical = physical.collect::<Option<Vec<Physical>>>()?;
    let read = |(name, of): (&String, &Section)| {
        let segments = within(of).map(|(_, of)| segment(of, extent, &physical));
        let mut segments = segments.collect::<Option<Vec<Segment>>>()?;
        segments.sort_by_key(|segment| segment.start);
        let is_visible = match of.get("status") {
            Some(Value::List(flags)) => {
                flags.iter().any(|flag| matches!(flag, Value::Text(text) if text == "VISIBLE"))
            }
            _ => false,
        };
        Some(Logical { name: name.clone(), is_visible, segments })
    };
    // A group without logical volumes has no such section.
    let logical = part(section, "logical_volumes").into_iter().flat_map(within).map(read);
    let logical = logical.collect::<Option<Vec<Logical>>>()?;
    Some(VolumeGroup { name, seqno: number(section, "seqno")?, extent, physical, logical })
}

fn segment(section: &Section, extent: u64, physical: &[Physical]) -> Option<Segment> {
    let bytes = |key: &str| number(section, key)?.checked_mul(extent);
    let kind = string(section, "type")?.to_owned();
    let stripe = |pair: &[Value]| match pair {
        [Value::Text(name), Value::Number(number)] => {
            let of = physical.iter().find(|one| one.name == *name)?;
            let offset = number.checked_mul(extent)?.checked_add(of.start)?;
            Some((name.clone(), offset))
        }
        _ => None,
    };
    let stripes = match section.get("stripes") {
        Some(Value::List(list)) if kind == "striped" => list.chunks(2).map(stripe).collect(),
        _ => Some(Vec::new()),
    };
    Some(Segment {
        start: bytes("start_extent")?,
        length: bytes("extent_count")?,
        kind,
        stripes: stripes?,
        chunk: number(section, "stripe_size")
            .and_then(|size| size.checked_mul(SECTOR))
            .unwrap_or(0),
        store: string(section, "cow_store").map(str::to_owned),
    })
}
